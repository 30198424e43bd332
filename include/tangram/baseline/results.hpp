// What the published programs themselves printed or wrote. Goes in: one file of one of them. Comes out: its plans,
// judged like all others, with labels. The formats but AMP's are those of import (import.hpp).
#pragma once

#include <string>

#include "tangram/base/expected.hpp"
#include "tangram/baseline/baseline.hpp"

namespace tangram::baseline {

struct Results {
  std::string program;  ///< "metis", "sailor", "amp", "flashflex"
  Verdict verdict;
};

/// The program is told by the content. Of a ranked list plans are tried from its top. A plan that Metis lists twice
/// with different times was costed wrongly once: the shorter claim is labelled so.
[[nodiscard]] Expected<Results> judge_results(const std::string& text, const std::string& file,
                                              const PlannerInput& input, const Judge& by, std::int64_t most = 5000);

}  // namespace tangram::baseline
