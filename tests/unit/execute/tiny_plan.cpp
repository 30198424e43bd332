#include "unit/execute/tiny_plan.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "tangram/model/slice.hpp"
#include "tangram/plan/assemble.hpp"

namespace tangram::execute::tiny {

namespace {

constexpr std::int64_t kTokens = 64;
constexpr std::int64_t kPatches = 50;

/// "M", "D": a recurrence alone; "q": the gated delta rule with experts in a latent width; "a", "f": attention with a
/// gate and a feed-forward, alone. All degrees of random plans divide heads and groups.
void make_hybrid(char letter, model::BlockType& type) {
  if (letter == 'M' || letter == 'D' || letter == 'q') {
    const bool mamba = letter == 'M';
    type.attention = {};
    type.recurrence = model::Recurrence{};
    type.recurrence->kind = mamba ? model::RecurrenceKind::kMamba2 : model::RecurrenceKind::kGatedDelta;
    type.recurrence->groups = 288;
    type.recurrence->heads = letter == 'D' ? 288 : 576;
    type.recurrence->head_dim = 64;
    type.recurrence->key_dim = 16;
  }
  if (letter == 'a') type.attention.output_gate = true;
  if (letter == 'f') type.attention = {};
  if (letter == 'M' || letter == 'D' || letter == 'a') type.feed_forward = {};
  if (letter == 'q') {
    type.feed_forward = {};
    type.feed_forward.experts = 12;
    type.feed_forward.experts_per_token = 2;
    type.feed_forward.expert_hidden = 96;
    type.feed_forward.latent_hidden = 128;
  } else {
    type.norms = 1;
  }
}

model::BlockType make_type(char letter) {
  model::BlockType type;
  type.name = std::string(1, letter);
  type.hidden = 512;
  type.tokens = letter == 'e' ? kPatches : kTokens;
  type.attention.heads = 24;
  type.attention.kv_heads = letter == 'g' ? 2 : 24;
  type.attention.head_dim = 64;
  type.attention.causal = letter != 'e';
  type.attention.sliding_window = letter == 'w' ? 16 : 0;
  if (letter == 'k') type.attention.packed_length = 16;
  if (letter == 'l') type.attention.kind = model::AttentionKind::kLatent;
  type.parallel_attention = letter == 'p';
  type.feed_forward.gated = letter != 'e' && letter != 'p';
  if (letter == 'm' || letter == 's') {
    type.feed_forward.experts = 12;
    type.feed_forward.experts_per_token = 2;
    type.feed_forward.expert_hidden = 96;
    if (letter == 's') {
      type.feed_forward.shared_hidden = 96;
      type.feed_forward.expert_groups = 4;
      type.feed_forward.groups_per_token = 2;
    }
  } else {
    type.feed_forward.hidden = 2048;
  }
  if (std::string_view("MDaqf").find(letter) != std::string_view::npos) make_hybrid(letter, type);
  return type;
}

void add_ranks(plan::LaunchPlan& plan, const plan::Stage& stage, int p) {
  const cost::Degrees& d = stage.parts[static_cast<std::size_t>(p)].strategy.degrees;
  for (int i = 0; i < d.gpus(); ++i) {
    plan::Rank rank;
    rank.rank = static_cast<int>(plan.ranks.size());
    rank.host = "h";
    rank.local_rank = rank.gpu = rank.rank;
    rank.stage = stage.id;
    rank.part = p;
    rank.replica = stage.pipeline;
    rank.tp = i % d.tp;
    rank.cp = i / d.tp % d.cp;
    rank.dp = i / (d.tp * d.cp);
    rank.etp = i % d.etp;
    rank.ep = i / d.etp % d.ep;
    rank.edp = i / (d.etp * d.ep);
    plan.ranks.push_back(rank);
  }
}

void add_pipeline(plan::LaunchPlan& plan, const PipelineSpec& spec) {
  plan::Pipeline pipeline;
  pipeline.id = static_cast<int>(plan.pipelines.size());
  pipeline.microbatch = spec.microbatch;
  pipeline.microbatches = spec.microbatches;
  pipeline.samples = spec.microbatch * spec.microbatches - spec.missing;
  int first = 0;
  for (std::size_t s = 0; s < spec.stages.size(); ++s) {
    plan::Stage stage;
    stage.id = static_cast<int>(plan.stages.size());
    stage.pipeline = pipeline.id;
    stage.chunks = {{first, spec.stages[s].last}};
    first = spec.stages[s].last;
    stage.embedding = stage.first() == 0;
    stage.head = stage.last() == plan.model.block_count();
    const auto classic = static_cast<std::int64_t>(spec.stages.size() - 1 - s);
    stage.warmup = std::min(classic + spec.stages[s].extra, spec.microbatches - 1);
    for (const PartSpec& part_spec : spec.stages[s].parts) {
      plan::Part part;
      part.samples = part_spec.samples;
      part.strategy = {part_spec.degrees, part_spec.policy};
      part.first_rank = static_cast<int>(plan.ranks.size());
      part.predicted.in_flight = stage.warmup + 1;
      stage.parts.push_back(part);
      add_ranks(plan, stage, static_cast<int>(stage.parts.size()) - 1);
    }
    if (s > 0) {
      plan::Boundary boundary;
      boundary.from = stage.id - 1;
      boundary.to = stage.id;
      boundary.transfers =
          plan::boundary_transfers(plan.stages.back(), stage, plan.model.block(stage.first() - 1).tokens,
                                   Bytes(model::cut_bytes(plan.model, stage.first())));
      plan.boundaries.push_back(boundary);
    }
    pipeline.stages.push_back(stage.id);
    plan.stages.push_back(stage);
  }
  plan.pipelines.push_back(pipeline);
}

}  // namespace

model::Model make_model(const std::string& types, bool tied) {
  model::Model model;
  model.name = types;
  for (const char letter : types) {
    const auto known = std::ranges::find(model.types, std::string(1, letter), &model::BlockType::name);
    model.blocks.push_back(static_cast<int>(known - model.types.begin()));
    if (known == model.types.end()) model.types.push_back(make_type(letter));
  }
  model.vocabulary = 32'000;
  model.hidden = 512;
  model.tied_embeddings = tied;
  model.job.sequence_length = kTokens;
  return model;
}

model::Model with_adapters(model::Model model, model::AdapterTargets targets) {
  set_adapters(model, {4, 4, targets});
  return model;
}

plan::LaunchPlan make_plan(model::Model model, const std::vector<PipelineSpec>& pipelines) {
  plan::LaunchPlan plan;
  plan.model = std::move(model);
  plan.islands.emplace_back();
  for (const PipelineSpec& pipeline : pipelines) {
    plan.model.job.global_batch += pipeline.microbatch * pipeline.microbatches - pipeline.missing;
    add_pipeline(plan, pipeline);
  }
  return plan;
}

plan::LaunchPlan interleaved(plan::LaunchPlan plan, int chunks, std::int64_t group) {
  plan.group = group;
  for (plan::Stage& stage : plan.stages) stage.chunks.clear();
  const int blocks = plan.model.block_count();
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    const auto stages = static_cast<int>(pipeline.stages.size());
    const int places = stages * chunks;
    int first = 0;
    for (int place = 0; place < places; ++place) {
      const int s = place % stages;
      plan::Stage& stage = plan.stages[static_cast<std::size_t>(pipeline.stages[static_cast<std::size_t>(s)])];
      const int last = first + blocks / places + (place < blocks % places ? 1 : 0);
      stage.chunks.push_back({first, last});
      first = last;
      stage.warmup = std::min(2 * (stages - 1 - s) + (chunks - 1) * group, pipeline.microbatches * chunks - 1);
      for (plan::Part& part : stage.parts) part.predicted.in_flight = stage.warmup + 1;
    }
    const plan::Stage& from = plan.stage(pipeline.stages.back());
    plan::Boundary round;
    round.from = from.id;
    round.to = pipeline.stages.front();
    round.transfers =
        plan::boundary_transfers(from, plan.stage(round.to), plan.model.block(from.first_cut() - 1).tokens,
                                 Bytes(model::cut_bytes(plan.model, from.first_cut())));
    plan.boundaries.push_back(round);
  }
  return plan;
}

}  // namespace tangram::execute::tiny
