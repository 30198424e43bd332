// Small random slices with random techniques, and every set of degrees that they can have.
#pragma once

#include <algorithm>
#include <vector>

#include "support/property.hpp"
#include "unit/parallelizer/fixtures.hpp"

namespace tangram::parallelizer::random_queries {

inline bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

inline bool considered(const cost::Degrees& d, const Query& q, const model::Model& model) {
  bool moe = false;
  for (const auto& [type, count] : q.slice.runs) {
    const auto& block = model.types[static_cast<std::size_t>(type)];
    moe = moe || block.feed_forward.is_moe();
    if (block.feed_forward.is_moe() && block.feed_forward.experts % d.ep != 0) return false;
    if (d.cp > 1 && block.tokens < (d.dp == q.samples ? 2 : 2048) * d.cp) return false;
  }
  const auto& allow = q.allow;
  return (allow.tp || d.tp == 1) && (allow.cp || d.cp == 1) && (allow.dp || d.dp == 1) && (allow.ep || d.ep == 1) &&
         (allow.sp || !d.sequence_parallel) && (d.tp > 1 || !d.sequence_parallel) && (d.etp == 1 || d.etp == d.tp) &&
         (moe || (d.ep == 1 && d.etp == 1)) && q.shape.per_node % d.tp == 0 && is_power_of_two(d.cp) &&
         q.samples >= d.dp && d.gpus() % (d.ep * d.etp) == 0;
}

inline std::vector<cost::Degrees> all_degrees(const Query& q, const model::Model& model) {
  std::vector<cost::Degrees> out;
  const int gpus = q.shape.gpus();
  for (int tp = 1; tp <= gpus; ++tp) {
    for (int cp = 1; tp * cp <= gpus; ++cp) {
      if (gpus % (tp * cp) != 0) continue;
      for (int ep = 1; ep <= gpus; ++ep) {
        for (int etp = 1; etp <= gpus; ++etp) {
          for (const bool sp : {false, true}) {
            cost::Degrees d{tp, cp, gpus / (tp * cp), ep, etp, sp};
            if (!considered(d, q, model)) continue;
            for (; d.dp_replicate <= d.dp; ++d.dp_replicate) {
              if (d.dp % d.dp_replicate == 0) out.push_back(d);
            }
          }
        }
      }
    }
  }
  return out;
}

inline bool has_experts(const Query& q, const model::Model& model) {
  return std::ranges::any_of(q.slice.runs, [&](const auto& run) {
    return model.types[static_cast<std::size_t>(run.first)].feed_forward.is_moe();
  });
}

/// Whether the ranks of each sharding group are as the job wants them at this ZeRO stage.
inline bool is_wanted(const cost::Degrees& d, int zero, const Query& q, const model::ShardingGroup& group) {
  using Kind = model::ShardingGroup::Kind;
  const bool one = d.dp_replicate == 1;
  const bool inside = q.shape.nodes > 1 ? d.gpus() / d.dp_replicate == q.shape.per_node : one;
  switch (group.kind) {
    case Kind::kAny: return one || (inside && zero == 3);
    case Kind::kAll: return one;
    case Kind::kNode: return inside;
    case Kind::kRanks: break;
  }
  return d.dp <= group.ranks ? one : d.dp == group.ranks * d.dp_replicate;
}

/// Whether a stage at these degrees may be under this ZeRO stage.
inline bool may_use(const cost::Degrees& d, int zero, const Query& q, const model::Model& model) {
  if (zero == 0) return d.dp_replicate == 1;
  const bool shards =
      d.dp / d.dp_replicate * d.cp > 1 || (has_experts(q, model) && d.edp() / std::min(d.edp(), d.dp_replicate) > 1);
  const bool allowed = zero == 1 ? q.allow.zero1 : zero == 2 ? q.allow.zero2 : q.allow.zero3;
  return shards && allowed && is_wanted(d, zero, q, model.job.sharding_group);
}

inline model::ShardingGroup random_sharding_group() {
  using Kind = model::ShardingGroup::Kind;
  const Kind kind = *rc::gen::element(Kind::kAny, Kind::kAny, Kind::kAny, Kind::kAll, Kind::kNode, Kind::kRanks);
  return {kind, kind == Kind::kRanks ? *rc::gen::element(1, 2, 3, 4) : 0};
}

/// So small that the latency of a collective outweighs its bytes.
inline model::BlockType tiny_block() {
  auto block = fixtures::dense_block();
  block.hidden = 256;
  block.tokens = 64;
  block.attention.heads = 8;
  block.attention.head_dim = 32;
  block.feed_forward.hidden = 512;
  return block;
}

/// Runs of dense and MoE blocks in any order; the widths differ, so that where a run begins the buffers jump.
inline model::Model random_model() {
  std::vector<model::BlockType> types{fixtures::dense_block(), fixtures::moe_block(), fixtures::dense_block()};
  const auto tokens = *rc::gen::element<std::int64_t>(2048, 4096, 8192);
  types[0].tokens = tokens;
  types[0].feed_forward.hidden = *rc::gen::element(2048, 14336, 65536);
  types[1].tokens = tokens;
  types[1].feed_forward.expert_hidden = 2048;  // small enough to fit somewhere
  types[1].feed_forward.experts = *rc::gen::element(2, 6, 8);
  types[2].name = "short";
  types[2].tokens = 2048;
  types[2].feed_forward.hidden = *rc::gen::element(2048, 14336);
  if (*rc::gen::element(0, 0, 0, 1) == 1) types.assign(1, tiny_block());
  std::vector<int> blocks;
  for (int runs = *rc::gen::element(1, 2, 3); runs > 0; --runs) {
    const int type = *rc::gen::element(0, 1, 2) % static_cast<int>(types.size());
    blocks.insert(blocks.end(), *rc::gen::element<std::size_t>(1, 2, 4, 6), type);
  }
  auto model = fixtures::model_of(std::move(types), std::move(blocks));
  model.job.flash_attention = *rc::gen::element(true, true, false);
  model.job.sharding_group = random_sharding_group();
  return model;
}

/// The same, some layers of which few degrees suit: like those of an encoder.
inline model::Model model_with_odd_layers() {
  model::Model model = random_model();
  model::BlockType& odd = model.types.back();
  odd.attention.heads = odd.attention.kv_heads = *rc::gen::element(25, 12, 6);
  odd.tokens = *rc::gen::element<std::int64_t>(577, 1025, 1026);
  model.types.front().tokens = *rc::gen::element<std::int64_t>(2048, 4098);
  model.job.sequence_length = *rc::gen::element<std::int64_t>(2048, 2050, 4096);
  return model;
}

inline model::Techniques random_techniques() {
  model::Techniques allow;
  for (bool model::Techniques::* technique :
       {&model::Techniques::tp, &model::Techniques::sp, &model::Techniques::cp, &model::Techniques::ep,
        &model::Techniques::dp, &model::Techniques::zero1, &model::Techniques::zero2, &model::Techniques::zero3,
        &model::Techniques::recompute_selective, &model::Techniques::recompute_full}) {
    allow.*technique = *rc::gen::element(true, true, true, true, true, true, true, false);
  }
  return allow;
}

inline Query random_query(const model::Model& model) {
  const int blocks = model.block_count();
  const int first = *rc::gen::element(0, 0, 1, 3) % blocks;
  const int last = blocks - *rc::gen::element(0, 0, 1, 2) % (blocks - first);
  const Bytes memory(
      (*rc::gen::element(6, 8, 12, 16, 24, 40, 80, 160) * std::int64_t{1024} - *rc::gen::inRange(0, 2048)) << 20);
  const auto shape = fixtures::shape(*rc::gen::element(1, 1, 2), *rc::gen::element(1, 2, 4, 4, 4, 6, 8), memory);
  auto q = fixtures::query(model, shape, *rc::gen::element(1, 3, 4, 6, 8, 8, 12, 16));
  q.slice = model::signature(model, first, last);
  q.allow = random_techniques();
  return q;
}

}  // namespace tangram::parallelizer::random_queries
