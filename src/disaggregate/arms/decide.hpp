// Which arm to run, and by which rule.
#pragma once

#include <span>
#include <vector>

#include "tangram/disaggregate/compare.hpp"

namespace tangram::disaggregate {

struct Question {
  std::span<const Batch> batches;
  const Terms& terms;
  const std::vector<Arm>& arms;  ///< by ArmKind
};

[[nodiscard]] Decision decide(const Question& question);

}  // namespace tangram::disaggregate
