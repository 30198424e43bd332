#include "blueprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "canonical.hpp"
#include "graph.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::model {

namespace {

// A window that spans the sequence hides nothing; without this, blocks that cost the same would be two types.
void fit_to_sequence(BlockType& block, std::int64_t sequence_length) {
  if (block.tokens == 0) block.tokens = sequence_length;
  if (block.attention.sliding_window >= block.tokens) block.attention.sliding_window = 0;
}

std::string own_name(const BlockType& block) {
  std::string name;
  if (block.recurrence) name = block.recurrence->kind == RecurrenceKind::kMamba2 ? "mamba2" : "gated-delta";
  if (block.attends() && !block.feeds_forward()) name = "attention";
  if (block.feeds_forward()) {
    if (!name.empty()) name += "-";
    name += block.feed_forward.is_moe() ? "moe" : "dense";
  }
  if (block.attention.sliding_window > 0) name += "-window";
  return name;
}

bool has_type(const std::vector<BlockType>& types, std::string_view name) {
  return std::any_of(types.begin(), types.end(), [&](const BlockType& t) { return t.name == name; });
}

double parameter_estimate(const Blueprint& blueprint) {
  double total = static_cast<double>(blueprint.frame.embedding_parameters() + blueprint.frame.head_parameters());
  for (const BlockType& block : blueprint.chain) total += static_cast<double>(parameters(block).total());
  return total;
}

// Tokens of the sequence that encoders make, of those that say what they make.
std::int64_t tokens_of_encoders(const ModuleGraph& graph) {
  std::int64_t tokens = 0;
  for (const Module& module : graph.modules) {
    if (says_tokens(module) && module.kind == ModuleKind::kEncoder) tokens += module.sample_tokens_out();
  }
  return tokens;
}

}  // namespace

std::vector<Conflict> conflicts(const Blueprint& blueprint, const Job& job) {
  std::vector<Conflict> found;
  const std::int64_t rows = blueprint.frame.learned_positions;
  const std::int64_t limit = blueprint.max_positions > 0 ? std::min(rows, blueprint.max_positions) : rows;
  if (rows > 0 && job.sequence_length > limit) {
    found.push_back(
        {"sequence_length",
         fmt::format("sequence length {} is longer than the {} learned positions", job.sequence_length, limit),
         fmt::format("use at most {}", limit)});
  }
  if (job.microbatch > job.global_batch) {
    found.push_back(
        {"microbatch",
         fmt::format("microbatch {} is larger than the global batch of {} samples", job.microbatch, job.global_batch),
         fmt::format("use at most {}", job.global_batch)});
  }
  const ModuleGraph& graph = blueprint.frame.graph;
  const bool quantized = !graph.empty() && graph.language().adapters.base != BaseQuantization::kNone;
  if (quantized && (is_narrow(job.precision) || job.parameter_bytes != 2)) {
    found.push_back(
        {"precision",
         fmt::format("adapters beside a quantized base compute in bf16 or fp16, not in {}", to_string(job.precision)),
         "use bf16, or leave base_quantization out"});
  }
  const std::int64_t inside = tokens_of_encoders(blueprint.frame.graph);
  if (inside > job.sequence_length) {
    found.push_back(
        {"sequence_length",
         fmt::format("encoders make {} tokens of a sample, which are among its {}", inside, job.sequence_length),
         fmt::format("use {} at least, or fewer items in \"data\"", inside)});
  }
  const double total = parameter_estimate(blueprint);
  if (total > kMaxParameters) {
    found.push_back({"", fmt::format("the model would have {:.3g} parameters", total),
                     "check hidden, layers, experts and vocabulary"});
  }
  return found;
}

int add_type(std::vector<BlockType>& types, BlockType block) {
  if (block.name.empty()) block.name = own_name(block);
  const std::string base = block.name;
  for (int copy = 2;; ++copy) {
    const auto same = std::find(types.begin(), types.end(), block);
    if (same != types.end()) return static_cast<int>(same - types.begin());
    if (!has_type(types, block.name)) break;
    block.name = fmt::format("{}-{}", base, copy);
  }
  types.push_back(std::move(block));
  return static_cast<int>(types.size()) - 1;
}

Model assemble(Blueprint blueprint, Job job) {
  Model model = std::move(blueprint.frame);
  if (!says_more(model.graph)) model.graph = {};
  apply_graph(model.graph, blueprint.chain);
  for (BlockType& block : blueprint.chain) {
    fit_to_sequence(block, job.sequence_length);
    model.blocks.push_back(add_type(model.types, std::move(block)));
  }
  model.job = std::move(job);
  set_wide_layers(model);
  set_packing(model);
  model.digest = digest(io::write_compact(canonical(model)));
  return model;
}

void report(io::ObjectReader& at_fault, const std::vector<Conflict>& conflicts) {
  for (const Conflict& conflict : conflicts) {
    at_fault.error_at(conflict.key, "inconsistent-value", conflict.message, conflict.hint);
  }
}

void report_item(io::ObjectReader& reader, std::string_view key, const std::string& item, const std::string& what,
                 const std::string& hint) {
  const io::Node& list = *reader.raw(key);
  const auto found = std::ranges::find(list.items, item, &io::Node::text);
  reader.error_at(found == list.items.end() ? list : *found, fmt::format("{}/{}", reader.pointer(), key),
                  "unknown-name", what, hint);
}

void check_expert_groups(io::ObjectReader& reader, const GroupKeys& keys, const FeedForward& experts) {
  const auto mistake = [&](std::string_view key, std::string message) {
    reader.error_at(key, "inconsistent-value", std::move(message));
  };
  if (experts.experts % experts.expert_groups != 0) {
    return mistake(keys.groups,
                   fmt::format("{} experts do not divide into {} groups", experts.experts, experts.expert_groups));
  }
  if (experts.groups_per_token > experts.expert_groups) {
    return mistake(keys.chosen, fmt::format("a token's experts are in {} groups, but there are only {}",
                                            experts.groups_per_token, experts.expert_groups));
  }
  const int choice = experts.groups_per_token * (experts.experts / experts.expert_groups);
  if (experts.experts_per_token > choice) {
    mistake(keys.chosen, fmt::format("a token goes to {} experts, and the groups that they are in have {}",
                                     experts.experts_per_token, choice));
  }
}

bool require_multiple(io::ObjectReader& reader, std::string_view key, std::int64_t value, std::string_view divisor_key,
                      std::int64_t divisor, std::string hint) {
  if (divisor > 0 && value % divisor == 0) return true;
  reader.error_at(key, "inconsistent-value",
                  fmt::format("\"{}\" ({}) is not a multiple of \"{}\" ({})", key, value, divisor_key, divisor),
                  std::move(hint));
  return false;
}

}  // namespace tangram::model
