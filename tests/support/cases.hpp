// How many random cases a test tries.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace tangram::testing {

/// `usual` times TANGRAM_TEST_SHARE, where that is set: 0.15 in .ci/run, 0.1 under the sanitizers, 10 for a long look.
inline int cases(int usual) {
  const char* share = std::getenv("TANGRAM_TEST_SHARE");
  return share == nullptr ? usual : std::max(1, static_cast<int>(usual * std::atof(share)));
}

/// What a count over cases(...) must reach where the usual number of cases reaches `usual`: half of its share when
/// fewer are tried, because few cases scatter more.
inline int enough(int usual) { return cases(usual) < usual ? cases(usual) / 2 : usual; }

}  // namespace tangram::testing
