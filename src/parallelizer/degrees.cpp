#include "tangram/parallelizer/degrees.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/sharding.hpp"

namespace tangram::parallelizer {
namespace {

using cost::Degrees;

std::vector<int> divisors(int number) {
  std::vector<int> out;
  for (int d = 1; d <= number; ++d) {
    if (number % d == 0) out.push_back(d);
  }
  return out;
}

bool context_fits(int cp, bool one_sample_each, const SliceTraits& traits, const model::Techniques& allow) {
  if (cp == 1) return true;
  return allow.cp && traits.tokens / (2 * cp) >= (one_sample_each ? 1 : kMinChunkTokens);
}

/// Appends `dense` with every way to lay out the experts, or `dense` alone where there are none.
void add_expert_layouts(const Degrees& dense, const SliceTraits& traits, const model::Techniques& allow,
                        std::vector<Degrees>& out) {
  if (traits.experts == 0) {
    out.push_back(dense);
    return;
  }
  for (const int etp : {1, dense.tp}) {
    for (const int ep : divisors(std::gcd(traits.experts, dense.gpus() / etp))) {
      if (ep > 1 && !allow.ep) break;
      Degrees degrees = dense;
      degrees.etp = etp;
      degrees.ep = ep;
      out.push_back(degrees);
    }
    if (dense.tp == 1) break;
  }
}

}  // namespace

SliceTraits traits_of(const model::Model& model, const model::SliceSignature& slice) {
  SliceTraits traits;
  traits.tokens = std::numeric_limits<std::int64_t>::max();
  for (const auto& [type, count] : slice.runs) {
    const model::BlockType& block = at(model.types, type);
    traits.experts = std::gcd(traits.experts, block.feed_forward.experts);
    traits.tokens = std::min(traits.tokens, block.tokens);
  }
  return traits;
}

std::vector<Degrees> enumerate_degrees(const cluster::DeviceShape& shape, int samples, const SliceTraits& traits,
                                       const model::Techniques& allow) {
  TANGRAM_ASSERT(shape.nodes >= 1 && shape.per_node >= 1 && samples >= 1);
  std::vector<Degrees> out;
  const int gpus = shape.gpus();
  for (const int tp : divisors(shape.per_node)) {
    if (tp > 1 && !allow.tp) break;
    for (int cp = 1; gpus % (tp * cp) == 0; cp *= 2) {
      const int dp = gpus / (tp * cp);
      if (!context_fits(cp, dp == samples, traits, allow)) continue;
      if (samples < dp || (dp > 1 && !allow.dp)) continue;
      Degrees degrees{.tp = tp, .cp = cp, .dp = dp, .ep = 1, .etp = 1, .sequence_parallel = false};
      add_expert_layouts(degrees, traits, allow, out);
      if (tp > 1 && allow.sp) {
        degrees.sequence_parallel = true;
        add_expert_layouts(degrees, traits, allow, out);
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Degrees> with_sharding_groups(std::vector<Degrees> degrees, const cluster::DeviceShape& shape,
                                          const SliceTraits& traits, const model::Techniques& allow,
                                          const model::ShardingGroup& wanted) {
  const bool free = wanted.kind == model::ShardingGroup::Kind::kAny;
  if (free && (shape.nodes == 1 || !allow.zero3)) return degrees;
  const std::size_t plain = degrees.size();
  for (std::size_t i = 0; i < plain; ++i) {
    Degrees own = degrees[i];
    const auto groups = free ? cost::replicate_of_nodes(own, shape) : cost::replicate_of(wanted, own, shape);
    own.dp_replicate = groups.value_or(1);
    if (own.dp_replicate > 1 && cost::has_shards(own, traits.experts > 0)) degrees.push_back(own);
  }
  std::sort(degrees.begin(), degrees.end());
  return degrees;
}

std::vector<int> zero_stages(const Degrees& degrees, const cluster::DeviceShape& shape, const SliceTraits& traits,
                             const model::Techniques& allow, const model::ShardingGroup& wanted) {
  const bool free = wanted.kind == model::ShardingGroup::Kind::kAny;
  if (free && degrees.dp_replicate > 1) return {3};
  const bool shards = cost::has_shards(degrees, traits.experts > 0) &&
                      cost::replicate_of(wanted, degrees, shape) == degrees.dp_replicate;
  std::vector<int> out;
  if (degrees.dp_replicate == 1) out.push_back(0);
  if (shards && allow.zero1) out.push_back(1);
  if (shards && allow.zero2) out.push_back(2);
  if (shards && allow.zero3) out.push_back(3);
  return out;
}

}  // namespace tangram::parallelizer
