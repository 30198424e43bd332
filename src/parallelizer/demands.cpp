#include <algorithm>

#include "tangram/base/at.hpp"
#include "tangram/parallelizer/degrees.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

namespace {

bool is_encoder(const model::Model& model, int type) { return !at(model.types, type).attention.causal; }

std::int64_t encoder_blocks(const model::Model& model, const model::SliceSignature& slice) {
  std::int64_t count = 0;
  for (const auto& [type, blocks] : slice.runs) count += is_encoder(model, type) ? blocks : 0;
  return count;
}

}  // namespace

bool are_inherited(const Demands& demands) {
  return !demands.whole_modules && !demands.whole_stage_experts && demands.tp_at_ends == 0;
}

bool admits(const Demands& demands, const model::Model& model, const model::SliceSignature& slice) {
  if (!demands.whole_modules) return true;
  const std::int64_t inside = encoder_blocks(model, slice);
  if (inside == 0) return true;
  const auto all = std::ranges::count_if(model.blocks, [&](int type) { return is_encoder(model, type); });
  return inside == all && (slice.block_count() == all || all == model.block_count());
}

bool admits(const Demands& demands, const model::Model& model, const model::SliceSignature& slice,
            const cost::Degrees& degrees) {
  if (demands.sequence_parallel && degrees.tp > 1 && !degrees.sequence_parallel) return false;
  if (demands.tp_at_ends > 0 && (slice.embedding || slice.head) && degrees.tp != demands.tp_at_ends) return false;
  if (demands.whole_stage_experts && degrees.ep > 1 && !slice.embedding && degrees.edp() > 1) return false;
  if (!demands.degrees) return true;
  cost::Degrees wanted = *demands.degrees;
  if (traits_of(model, slice).experts == 0) wanted.ep = wanted.etp = 1;
  return degrees == wanted;
}

}  // namespace tangram::parallelizer
