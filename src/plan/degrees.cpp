#include "tangram/plan/degrees.hpp"

#include "tangram/cost/validity.hpp"

namespace tangram::plan {

std::string why_unsupported(const model::Model& model, const Stage& stage, const Part& part) {
  const cost::Unsupported found = cost::unsupported(model, part.strategy.degrees, static_cast<int>(part.samples));
  for (const model::SliceSignature& chunk : stage.signatures(model)) {
    if (const std::string& why = found.of(chunk); !why.empty()) return why;
  }
  return {};
}

}  // namespace tangram::plan
