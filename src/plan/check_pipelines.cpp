// The plan's structure from above: does every pipeline train the whole model on its share of the batch?
#include <algorithm>
#include <string>

#include "findings.hpp"
#include "saturating.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/sharding.hpp"
#include "tangram/cost/validity.hpp"
#include "tangram/plan/gpu_places.hpp"

namespace tangram::plan {

namespace {

std::string text_of(const model::BlockRange& blocks) {
  return "[" + std::to_string(blocks.first) + ", " + std::to_string(blocks.last) + ")";
}

void check_ends(const LaunchPlan& plan, const Stage& stage, Findings& findings) {
  if (stage.embedding != (stage.first() == 0)) {
    findings.add("embedding-misplaced", at_stage(stage.id), "the embedding belongs to the stage of block 0 alone");
  }
  if (stage.head != (stage.last() == plan.pipelined().block_count())) {
    findings.add("head-misplaced", at_stage(stage.id), "the head belongs to the stage of the last block alone");
  }
}

/// In the order of the chain: the first chunks of all stages, then the second ones, and so on.
void check_blocks(const LaunchPlan& plan, const Pipeline& pipeline, Findings& findings) {
  int next = 0;
  for (std::size_t c = 0; c < plan.chunks(); ++c) {
    for (const int id : pipeline.stages) {
      const Stage& stage = plan.stage(id);
      if (c == 0 && stage.pipeline != pipeline.id) {
        findings.add(
            "stage-pipeline", at_stage(id),
            "is listed in " + at_pipeline(pipeline.id) + " but says it belongs to " + std::to_string(stage.pipeline));
      }
      const model::BlockRange& chunk = stage.chunks[c];
      if (chunk.first != next) {
        findings.add("blocks-not-covered", at_stage(id),
                     "holds blocks " + text_of(chunk) + ", block " + std::to_string(next) + " is next in " +
                         at_pipeline(pipeline.id));
      }
      next = chunk.last;
      if (c == 0) check_ends(plan, stage, findings);
    }
  }
  if (next != plan.pipelined().block_count()) {
    findings.add("blocks-not-covered", at_pipeline(pipeline.id),
                 "ends before block " + std::to_string(next) + " of " + std::to_string(plan.pipelined().block_count()));
  }
}

void check_batch(const LaunchPlan& plan, Findings& findings) {
  std::int64_t total = 0;
  for (const auto& pipeline : plan.pipelines) {
    total = sum(total, pipeline.samples);
    // Of the last one any number of samples may be missing, but not all.
    const std::int64_t whole = product(pipeline.microbatch, pipeline.microbatches);
    if (whole < pipeline.samples || whole - pipeline.microbatch >= pipeline.samples) {
      findings.add("batch-microbatches", at_pipeline(pipeline.id),
                   std::to_string(pipeline.microbatches) + " microbatches of " + std::to_string(pipeline.microbatch) +
                       " are not its " + std::to_string(pipeline.samples) + " samples");
    }
    if (plan.model.job.microbatch != 0 && pipeline.microbatch != plan.model.job.microbatch) {
      findings.add("microbatch-fixed", at_pipeline(pipeline.id),
                   "the job asks for microbatches of " + std::to_string(plan.model.job.microbatch));
    }
  }
  if (total != plan.model.job.global_batch) {
    findings.add("batch-sum", "plan",
                 "pipelines process " + std::to_string(total) + " samples, the global batch is " +
                     std::to_string(plan.model.job.global_batch));
  }
}

void check_samples(const LaunchPlan& plan, const Stage& stage, Findings& findings) {
  const std::int64_t microbatch = at(plan.pipelines, stage.pipeline).microbatch;
  std::int64_t total = 0;
  for (std::size_t p = 0; p < stage.parts.size(); ++p) {
    const auto& part = stage.parts[p];
    total = sum(total, part.samples);
    if (part.samples < part.strategy.degrees.dp) {
      findings.add(
          "samples-dp", at_part(stage.id, p),
          std::to_string(part.samples) + " samples are too few for dp " + std::to_string(part.strategy.degrees.dp));
    }
  }
  if (total != microbatch) {
    findings.add(
        "samples-sum", at_stage(stage.id),
        "its parts take " + std::to_string(total) + " samples of a microbatch of " + std::to_string(microbatch));
  }
}

void check_degrees(const LaunchPlan& plan, const Stage& stage, const Part& part, const std::string& where,
                   Findings& findings) {
  const model::Model& model = plan.pipelined();
  const auto& d = part.strategy.degrees;
  if (part.samples % d.dp == 0) {  // else it is reported as such
    const std::string why =
        cost::unsupported(model, d, static_cast<int>(part.samples), plan.island(part.island).device.name)
            .of(stage.signatures(model));
    if (!why.empty()) findings.add("degrees-invalid", where, why);
  }
  const auto& policy = part.strategy.policy;
  const auto is_stage = [](int zero) { return zero >= 0 && zero <= 3; };
  if (!is_stage(policy.zero) ||
      !std::ranges::all_of(policy.runs, [&](const cost::BlockRun& run) { return is_stage(run.policy.zero); })) {
    findings.add("degrees-invalid", where, "ZeRO stages go from 0 to 3");
  }
  if (d.dp_replicate > 1 && !policy.shards()) {
    findings.add("degrees-invalid", where, "dp_replicate says what ZeRO shards over, and there is no ZeRO");
  }
  if (policy.recompute_layers != 0 && policy.recompute != cost::RecomputeMode::kFull) {
    findings.add("recompute-layers", where, "layers are counted for full recompute alone");
  }
}

void check_recompute(const Stage& stage, const Part& part, const std::string& where, Findings& findings) {
  const auto& policy = part.strategy.policy;
  if (policy.recompute_layers < 0 || policy.recompute_layers > stage.most_chunk_blocks()) {
    findings.add("recompute-layers", where,
                 "recomputes " + std::to_string(policy.recompute_layers) + " layers of " +
                     std::to_string(stage.most_chunk_blocks()));
  }
  if (!policy.is_mixed()) return;
  if (stage.chunks.size() > 1) {
    findings.add("block-runs", where, "blocks of interleaved chunks are treated alike");
    return;
  }
  std::int64_t blocks = 0;
  for (const cost::BlockRun& run : policy.runs) blocks = sum(blocks, run.blocks);
  if (blocks != stage.block_count()) {
    findings.add("block-runs", where,
                 "tells of " + std::to_string(blocks) + " blocks of " + std::to_string(stage.block_count()));
  }
  if (policy.recompute != cost::RecomputeMode::kNone) {
    findings.add("block-runs", where, "recompute is told of the stage and of its blocks");
  }
}

/// What ZeRO shards over, against what the job wants.
void check_sharding_group(const LaunchPlan& plan, const Part& part, const std::string& where, Findings& findings) {
  const model::ShardingGroup& wanted = plan.model.job.sharding_group;
  if (wanted.kind == model::ShardingGroup::Kind::kAny || !part.strategy.policy.shards()) return;
  const auto replicate = cost::replicate_of(wanted, part.strategy.degrees, shape_of(plan, part));
  if (replicate == part.strategy.degrees.dp_replicate) return;
  findings.add("sharding-group", where,
               "the job wants another sharding group than " + std::to_string(part.strategy.degrees.dp_shard()) +
                   " of " + std::to_string(part.strategy.degrees.dp) + " data-parallel ranks");
}

void check_allowed(const LaunchPlan& plan, const Part& part, const std::string& where, Findings& findings) {
  const auto& allow = plan.model.job.allow;
  const auto& d = part.strategy.degrees;
  const auto& policy = part.strategy.policy;
  const auto forbid = [&](bool allowed, bool used, const char* technique) {
    if (used && !allowed)
      findings.add("technique-forbidden", where, std::string(technique) + " is not allowed by the job");
  };
  forbid(allow.tp, d.tp > 1, "tensor parallelism");
  forbid(allow.sp, d.sequence_parallel, "sequence parallelism");
  forbid(allow.cp, d.cp > 1, "context parallelism");
  forbid(allow.ep, d.ep > 1, "expert parallelism");
  forbid(allow.dp, d.dp > 1, "data parallelism inside a stage");
  const auto zero = [&](int stage) {
    const auto has = [&](const cost::BlockRun& run) { return run.policy.zero == stage; };
    return policy.zero == stage || std::ranges::any_of(policy.runs, has);
  };
  const auto recompute = [&](cost::RecomputeMode mode) {
    const auto has = [&](const cost::BlockRun& run) { return run.policy.recompute == mode; };
    return policy.recompute == mode || std::ranges::any_of(policy.runs, has);
  };
  forbid(allow.zero1, zero(1), "ZeRO-1");
  forbid(allow.zero2, zero(2), "ZeRO-2");
  forbid(allow.zero3, zero(3), "ZeRO-3");
  forbid(allow.recompute_selective, recompute(cost::RecomputeMode::kSelective), "selective recompute");
  forbid(allow.recompute_full, recompute(cost::RecomputeMode::kFull), "full recompute");
}

void check_stages_listed(const LaunchPlan& plan, Findings& findings) {
  std::vector<int> listed(plan.stages.size(), 0);
  for (const auto& pipeline : plan.pipelines) {
    for (const int id : pipeline.stages) ++at(listed, id);
  }
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (listed[i] != 1) {
      findings.add("stage-pipeline", at_stage(static_cast<int>(i)),
                   "is listed " + std::to_string(listed[i]) + " times in pipelines");
    }
  }
}

/// Of the whole plan.
void check_techniques(const LaunchPlan& plan, Findings& findings) {
  const auto& allow = plan.model.job.allow;
  if (!allow.replicas && plan.pipelines.size() > 1) {
    findings.add("technique-forbidden", "plan", "several pipelines are not allowed by the job");
  }
  if (!allow.pipeline && plan.pipelines.front().stages.size() > 1) {
    findings.add("technique-forbidden", "plan", "more than one stage is not allowed by the job");
  }
  if (!allow.interleaving && plan.is_interleaved()) {
    findings.add("technique-forbidden", "plan", "several model chunks a stage are not allowed by the job");
  }
  if (!allow.zero_bubble && plan.zero_bubble) {
    findings.add("technique-forbidden", "plan", "the job does not allow that weight gradients are put off");
  }
}

void check_runtime(const LaunchPlan& plan, Findings& findings) {
  const runtime::Runtime& runtime = runtime::runtime_of(plan.runtime);
  if (runtime.knows(plan.schedule())) return;
  findings.add("schedule-unknown", "execution",
               std::string(runtime.title) + " has no schedule " + std::string(to_string(plan.schedule())));
}

}  // namespace

void check_pipelines(const LaunchPlan& plan, Findings& findings) {
  check_batch(plan, findings);
  check_stages_listed(plan, findings);
  for (const auto& pipeline : plan.pipelines) check_blocks(plan, pipeline, findings);
  check_techniques(plan, findings);
  for (const auto& stage : plan.stages) {
    check_samples(plan, stage, findings);
    if (!plan.model.job.allow.mixed_stages && stage.parts.size() > 1) {
      findings.add("technique-forbidden", at_stage(stage.id), "mixed stages are not allowed by the job");
    }
    for (std::size_t p = 0; p < stage.parts.size(); ++p) {
      const std::string where = at_part(stage.id, p);
      check_degrees(plan, stage, stage.parts[p], where, findings);
      check_recompute(stage, stage.parts[p], where, findings);
      check_allowed(plan, stage.parts[p], where, findings);
      check_sharding_group(plan, stage.parts[p], where, findings);
    }
  }
  check_runtime(plan, findings);
}

}  // namespace tangram::plan
