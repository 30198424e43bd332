// How many random cases a test tries.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace tangram::testing {

/// `usual` times TANGRAM_TEST_SHARE, where that is set: 0.25 under the sanitizers, 10 for a long look.
inline int cases(int usual) {
  const char* share = std::getenv("TANGRAM_TEST_SHARE");
  return share == nullptr ? usual : std::max(1, static_cast<int>(usual * std::atof(share)));
}

}  // namespace tangram::testing
