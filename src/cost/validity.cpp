#include "tangram/cost/validity.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::cost {
namespace {

std::string indivisible(std::int64_t value, const char* what, std::int64_t divisor, const char* degree) {
  return std::to_string(value) + " " + what + " cannot be divided by " + degree + " " + std::to_string(divisor);
}

/// Ranks that share heads, and how people are told.
struct Sharers {
  std::int64_t ranks = 1;
  const char* name = "tp";
};
Sharers sharers_of(const Degrees& degrees, bool context_shares) {
  if (degrees.cp == 1 || !context_shares) return {degrees.tp};
  return {std::int64_t{degrees.tp} * degrees.cp, "tp x cp ="};
}

std::string why_heads_indivisible(const model::BlockType& block, const model::Job& job, const Degrees& degrees) {
  if (!block.attends()) return {};
  const model::Attention& attention = block.attention;
  const auto [ranks, name] = sharers_of(degrees, job.context_exchange == model::ContextExchange::kAllToAll);
  if (attention.heads % ranks != 0) return indivisible(attention.heads, "attention heads", ranks, name);
  if (attention.kind == model::AttentionKind::kLatent) return {};
  if (attention.kv_heads % ranks == 0 || ranks % attention.kv_heads == 0) return {};
  return indivisible(attention.kv_heads, "key-value heads", ranks, name);
}

std::string why_recurrence_indivisible(const model::Recurrence& recurrence, const Degrees& degrees) {
  const auto [ranks, divisor] = sharers_of(degrees, true);
  if (recurrence.heads % ranks != 0) return indivisible(recurrence.heads, "heads of a recurrence", ranks, divisor);
  if (recurrence.groups % ranks == 0) return {};
  return indivisible(recurrence.groups, "groups of a recurrence", ranks, divisor);
}

std::string why_block_indivisible(const model::BlockType& block, const model::Job& job, const Degrees& degrees) {
  std::string reason = block.recurrence ? why_recurrence_indivisible(*block.recurrence, degrees)
                                        : why_heads_indivisible(block, job, degrees);
  if (!reason.empty()) return reason;
  if (block.feed_forward.is_moe() && block.feed_forward.experts % degrees.ep != 0) {
    return indivisible(block.feed_forward.experts, "experts", degrees.ep, "ep");
  }
  return {};
}

/// Any stage may receive what any layer hands over.
std::string why_positions_indivisible(const model::Model& model, const Degrees& degrees) {
  const std::int64_t ranks = std::int64_t{degrees.tp} * degrees.cp;
  for (const model::BlockType& block : model.types) {
    if (block.tokens >= ranks) continue;
    return std::to_string(block.tokens) + " positions of a sample are too few for tp x cp = " + std::to_string(ranks) +
           ": every rank hands over some";
  }
  return {};
}

std::string why_feed_forward_unsupported(const model::BlockType& block, const Degrees& degrees) {
  const model::FeedForward& feed_forward = block.feed_forward;
  if (feed_forward.hidden % degrees.tp != 0) {
    return indivisible(feed_forward.hidden, "feed-forward columns", degrees.tp, "tp");
  }
  if (!feed_forward.is_moe()) return {};
  if (feed_forward.shared_hidden % degrees.tp != 0) {
    return indivisible(feed_forward.shared_hidden, "shared-expert columns", degrees.tp, "tp");
  }
  if (feed_forward.expert_hidden % degrees.etp != 0) {
    return indivisible(feed_forward.expert_hidden, "expert columns", degrees.etp, "expert-tp");
  }
  if (degrees.tp > 1 && !degrees.sequence_parallel) return "experts with tp > 1 need sequence parallelism";
  return {};
}

/// A group that ZeRO shards inside holds whole sets of experts, or a set is spread over whole groups.
std::string why_groups_indivisible(const Degrees& degrees) {
  if (degrees.dp % degrees.dp_replicate != 0) {
    return indivisible(degrees.dp, "data-parallel ranks", degrees.dp_replicate, "dp_replicate");
  }
  const int edp = degrees.edp();
  if (edp % degrees.expert_replicate() == 0 && degrees.dp_replicate % degrees.expert_replicate() == 0) return {};
  return indivisible(edp, "replicas of an expert", degrees.dp_replicate, "dp_replicate");
}

std::string why_sequence_unsupported(std::int64_t tokens, const Degrees& degrees) {
  if (degrees.cp > 1 && tokens % (2LL * degrees.cp) != 0) {
    return indivisible(tokens, "tokens", 2LL * degrees.cp, "2 cp =");
  }
  if (degrees.sequence_parallel && (tokens / degrees.cp) % degrees.tp != 0) {
    return indivisible(tokens / degrees.cp, "tokens of a sample", degrees.tp, "sequence-parallel tp");
  }
  return {};
}

std::string why_not_as_asked(const model::BlockType& block, const Degrees& degrees) {
  const model::ModuleConstraint& asked = block.constraint;
  const auto differs = [&](int degree, int wanted, const char* name) {
    if (wanted == 0 || degree == wanted) return std::string{};
    return std::string(name) + " " + std::to_string(degree) + " is not the " + std::to_string(wanted) + " asked of \"" +
           block.name + "\" blocks";
  };
  std::string why = differs(degrees.tp, asked.tp, "tp");
  if (why.empty()) why = differs(degrees.cp, asked.cp, "cp");
  if (why.empty() && block.feed_forward.is_moe()) why = differs(degrees.ep, asked.ep, "ep");
  return why;
}

std::string why_block_unsupported(const model::BlockType& block, const model::Job& job, const Degrees& degrees) {
  std::string reason = why_block_indivisible(block, job, degrees);
  if (reason.empty()) reason = why_feed_forward_unsupported(block, degrees);
  if (reason.empty()) reason = why_sequence_unsupported(block.tokens, degrees);
  if (reason.empty()) reason = why_not_as_asked(block, degrees);
  return reason;
}

std::string why_group_unsupported(const model::Model& model, const Degrees& degrees) {
  if (degrees.sequence_parallel && degrees.tp == 1) return "sequence parallelism needs tp > 1";
  if (degrees.cp > 1 && !model.job.flash_attention) return "context parallelism needs fused attention";
  if (std::int64_t{degrees.ep} * degrees.etp == 1) return {};
  for (const model::BlockType& block : model.types) {
    if (block.feed_forward.is_moe()) return {};
  }
  return "expert parallelism needs experts";
}

/// What no slice can be run at.
std::string why_all_indivisible(const model::Model& model, const Degrees& degrees, int samples) {
  for (const int degree :
       {degrees.tp, degrees.cp, degrees.dp, degrees.ep, degrees.etp, degrees.dp_replicate, samples}) {
    if (degree < 1) return "degrees and samples must be at least 1";
  }
  if (samples < degrees.dp) {
    return std::to_string(samples) + " samples are too few for dp " + std::to_string(degrees.dp);
  }
  const std::int64_t expert_ranks = std::int64_t{degrees.ep} * degrees.etp;
  if (degrees.gpus() % expert_ranks != 0) {
    return indivisible(degrees.gpus(), "GPUs", expert_ranks, "ep * expert-tp =");
  }
  std::string why = why_groups_indivisible(degrees);
  return why.empty() ? why_positions_indivisible(model, degrees) : why;
}

}  // namespace

namespace {

const std::string kNothing;

}  // namespace

const std::string& Unsupported::of_type(std::size_t type) const { return types.empty() ? kNothing : at(types, type); }

const std::string& Unsupported::of(const model::SliceSignature& slice) const {
  if (!any.empty()) return any;
  if ((slice.embedding || slice.head) && !ends.empty()) return ends;
  if (types.empty()) return kNothing;
  const auto found = std::ranges::find_if(slice.runs, [&](const auto& run) { return !at(types, run.first).empty(); });
  return found == slice.runs.end() ? kNothing : at(types, found->first);
}

const std::string& Unsupported::of(std::span<const model::SliceSignature> chunks) const {
  for (const model::SliceSignature& chunk : chunks) {
    if (const std::string& why = of(chunk); !why.empty()) return why;
  }
  return kNothing;
}

const std::string& Unsupported::of_model() const {
  if (!any.empty()) return any;
  const auto reason = std::ranges::find_if_not(types, &std::string::empty);
  return reason == types.end() ? ends : *reason;
}

std::string Unsupported::of_all_types() const {
  if (!any.empty()) return any;
  const bool all = !types.empty() && std::ranges::none_of(types, &std::string::empty);
  return all ? types.front() : std::string{};
}

Unsupported unsupported(const model::Model& model, const Degrees& degrees, int samples) {
  Unsupported found;
  found.any = why_all_indivisible(model, degrees, samples);
  if (found.any.empty()) found.any = why_group_unsupported(model, degrees);
  if (!found.any.empty()) return found;
  for (std::size_t type = 0; type < model.types.size(); ++type) {
    std::string why = why_block_unsupported(model.types[type], model.job, degrees);
    if (why.empty()) continue;
    found.types.resize(model.types.size());
    found.types[type] = std::move(why);
  }
  found.ends = why_sequence_unsupported(model.job.sequence_length, degrees);
  return found;
}

Unsupported unsupported(const model::Model& model, const Degrees& degrees, int samples, std::string_view gpu_type) {
  Unsupported found = unsupported(model, degrees, samples);
  if (!found.any.empty()) return found;
  for (std::size_t type = 0; type < model.types.size(); ++type) {
    const model::BlockType& block = model.types[type];
    if (block.constraint.allows(gpu_type) || !found.of_type(type).empty()) continue;
    found.types.resize(model.types.size());
    found.types[type] = "\"" + block.name + "\" blocks may not run on " + std::string(gpu_type);
  }
  return found;
}

bool repeats_heads(const model::Model& model, const Degrees& degrees) {
  if (degrees.cp == 1 || model.job.context_exchange != model::ContextExchange::kAllToAll) return false;
  return std::ranges::any_of(model.types, [&](const model::BlockType& block) {
    const bool latent = block.attention.kind == model::AttentionKind::kLatent;
    return block.attends() && !latent && block.attention.kv_heads < degrees.tp * degrees.cp;
  });
}

std::string why_indivisible(const model::Model& model, const model::SliceSignature& slice, const Degrees& degrees,
                            int samples) {
  std::string why = why_all_indivisible(model, degrees, samples);
  for (const auto& [type, count] : slice.runs) {
    if (why.empty()) why = why_block_indivisible(at(model.types, type), model.job, degrees);
  }
  return why;
}

std::string why_unsupported(const model::Model& model, const model::SliceSignature& slice, const Degrees& degrees,
                            int samples) {
  return unsupported(model, degrees, samples).of(slice);
}

std::string why_unsupported(const model::Model& model, const Degrees& degrees, int samples) {
  return unsupported(model, degrees, samples).of_model();
}

}  // namespace tangram::cost
