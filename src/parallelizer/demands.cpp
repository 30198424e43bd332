#include <algorithm>
#include <bit>

#include "tangram/base/at.hpp"
#include "tangram/parallelizer/degrees.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

namespace {

/// Blocks of a slice that are not causal: those of encoders, where the model has any.
int encoder_blocks(const model::Model& model, const model::SliceSignature& slice) {
  int count = 0;
  for (const auto& [type, blocks] : slice.runs) count += at(model.types, type).attention.causal ? 0 : blocks;
  return count;
}

bool is_whole_encoder(const model::Model& model, const model::SliceSignature& slice) {
  const int blocks = slice.block_count();
  return std::ranges::any_of(model::encoder_ranges(model), [&](const model::BlockRange& encoder) {
    return encoder.count() == blocks && model::signature(model, encoder).runs == slice.runs;
  });
}

/// One of the other, or the other of it.
bool divide(int a, int b) { return std::max(a, b) % std::min(a, b) == 0; }

}  // namespace

bool are_inherited(const Demands& demands) {
  return !demands.whole_modules && !demands.encoders_together && !demands.whole_stage_experts;
}

bool depend_on_ends(const Demands& demands) { return !are_inherited(demands) || demands.tp_at_ends > 0; }

bool admits(const Demands& demands, const model::Model& model, const model::SliceSignature& slice) {
  if (!demands.whole_modules && !demands.encoders_together) return true;
  const int all = model::encoder_blocks(model);
  const int inside = encoder_blocks(model, slice);
  if (all == 0 || inside == 0) return true;
  return demands.whole_modules ? is_whole_encoder(model, slice) : inside == all;
}

bool admits(const Demands& demands, const model::Model& model, const model::SliceSignature& slice,
            const cost::Degrees& degrees) {
  if (demands.sequence_parallel && degrees.tp > 1 && !degrees.sequence_parallel) return false;
  if (demands.tp_at_ends > 0 && (slice.embedding || slice.head) && degrees.tp != demands.tp_at_ends) return false;
  if (demands.whole_stage_experts && degrees.ep > 1 && !slice.embedding && degrees.edp() > 1) return false;
  if (demands.power_of_two_tp && !std::has_single_bit(static_cast<unsigned>(degrees.tp))) return false;
  if (!demands.degrees) return true;
  cost::Degrees wanted = *demands.degrees;
  if (demands.whole_modules && encoder_blocks(model, slice) > 0) return divide(degrees.dp, wanted.dp);
  if (traits_of(model, slice).experts == 0) wanted.ep = wanted.etp = 1;
  return degrees == wanted;
}

}  // namespace tangram::parallelizer
