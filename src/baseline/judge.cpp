// From a draft to a launch plan, and what is wrong with it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "node_assignment.hpp"
#include "tangram/base/at.hpp"
#include "tangram/baseline/baseline.hpp"
#include "tangram/import/import.hpp"
#include "tangram/import/job.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::baseline {

namespace {

/// Rules of our own plans that others need not keep: their times are estimated all the same.
constexpr std::array kHarmless{"shape-invalid",         "member-split",       "cost-differs",   "closed-form-differs",
                               "boundary-latency",      "boundary-occupancy", "target-differs", "price-below-fleet",
                               "provenance-impossible", "runtime-refuses"};

/// What can be told from the cuts alone.
void judge_cuts(Candidate& candidate, const DraftPipeline& pipeline, int units) {
  int next = 0;
  for (const DraftStage& stage : pipeline.stages) {
    if (stage.last <= stage.first) {
      candidate.label = Label::kStageEmpty;
      candidate.reason = "a stage holds nothing";
    } else if (stage.first != next) {
      candidate.label = Label::kLayersMissing;
      candidate.reason = fmt::format("units {} to {} are in no stage", next, stage.first - 1);
    } else if (stage.first == units - 1 || stage.last == 1) {
      candidate.label = Label::kInexpressible;
      candidate.reason = stage.last == 1 ? "a stage of the embedding alone" : "a stage of the head alone";
    }
    if (candidate.label != Label::kOk && candidate.label != Label::kMisCosted) return;
    next = stage.last;
  }
  if (next == units) return;
  candidate.label = Label::kLayersMissing;
  candidate.reason = fmt::format("units {} to {} are in no stage", next, units - 1);
}

/// Experts are sharded like the rest of a replica, where all replicas of the stage are alike in that.
cost::Degrees common_of(const Draft& draft, const DraftStage& stage) {
  cost::Degrees common = draft.common;
  if (common.etp == 1) return common;
  const int tp = stage.replicas.front().tp;
  const bool alike = std::ranges::all_of(stage.replicas, [&](const Replica& replica) { return replica.tp == tp; });
  common.etp = alike ? tp : 1;
  return common;
}

importing::JobStage job_stage(const Draft& draft, const DraftStage& from, const PlannerInput& input,
                              const StageNodes& nodes) {
  importing::JobStage stage;
  stage.first = std::max(from.first - 1, 0);
  stage.last = std::min(from.last - 1, input.blocks);
  stage.common = common_of(draft, from);
  stage.policy = draft.policy;
  if (draft.policy.recompute == cost::RecomputeMode::kFull) {
    stage.policy.recompute_layers = static_cast<int>(stage.last - stage.first);
  }
  for (std::size_t r = 0; r < from.replicas.size(); ++r) {
    const Replica& replica = from.replicas[r];
    if (replica.samples == 0) continue;
    importing::Replica placed{replica.tp, replica.samples, {}};
    for (const NodeIndex node : nodes[r]) {
      placed.gpus.push_back({at(input.kinds, replica.kind).name, node});
    }
    stage.replicas.push_back(std::move(placed));
  }
  return stage;
}

importing::Job job_of(const Draft& draft, const PlannerInput& input, const std::vector<std::vector<StageNodes>>& nodes,
                      runtime::Target runtime) {
  importing::Job job;
  job.runtime = runtime;
  for (std::size_t p = 0; p < draft.pipelines.size(); ++p) {
    const DraftPipeline& from = draft.pipelines[p];
    importing::JobPipeline pipeline{from.microbatch, from.microbatches, {}};
    for (std::size_t s = 0; s < from.stages.size(); ++s) {
      pipeline.stages.push_back(job_stage(draft, from.stages[s], input, nodes[p][s]));
    }
    job.pipelines.push_back(std::move(pipeline));
  }
  return job;
}

Label label_of(const plan::Violation& violation) {
  if (violation.code == "blocks-not-covered") return Label::kLayersMissing;
  if (violation.code == "batch-sum") return Label::kOtherBatch;
  return violation.code == "memory-exceeded" ? Label::kOutOfMemory : Label::kInexpressible;
}

/// What is worst counts: layers that are missing, then samples, then memory.
void judge_plan(Candidate& candidate, const plan::LaunchPlan& plan, const Judge& by) {
  const auto weight = [](Label label) {
    return label == Label::kLayersMissing   ? 4
           : label == Label::kOtherBatch    ? 3
           : label == Label::kOutOfMemory   ? 2
           : label == Label::kInexpressible ? 1
                                            : 0;
  };
  for (const plan::Violation& violation : plan::check(plan, by.fleet, &by.model).violations) {
    if (std::ranges::find(kHarmless, violation.code) != kHarmless.end()) continue;
    const Label label = label_of(violation);
    if (weight(label) <= weight(candidate.label)) continue;
    candidate.label = label;
    candidate.reason = fmt::format("{} {}", violation.where, violation.message);
  }
}

/// Under the semantics of the runtime, where that takes the plan.
void judge_runtime(Candidate& candidate, plan::LaunchPlan& plan, runtime::Target runtime) {
  const auto refused = plan::reasons_against(plan, runtime);
  if (refused.empty()) {
    plan.runtime = runtime;
  } else {
    candidate.label = Label::kInexpressible;
    candidate.reason = fmt::format("{} cannot run it: {}", to_string(runtime), refused.front().text);
  }
}

/// "4 x V100 tp1 [0, 9)"; equal replicas are counted.
std::string text_of(const DraftStage& stage, const PlannerInput& input) {
  std::string text;
  for (std::size_t r = 0; r < stage.replicas.size();) {
    const Replica& replica = stage.replicas[r];
    std::size_t end = r;
    while (end < stage.replicas.size() && stage.replicas[end].kind == replica.kind &&
           stage.replicas[end].tp == replica.tp && stage.replicas[end].samples == replica.samples) {
      ++end;
    }
    text += fmt::format("{}{} x {} tp{} b{}", text.empty() ? "" : " + ", end - r, at(input.kinds, replica.kind).name,
                        replica.tp, replica.samples);
    r = end;
  }
  return fmt::format("[{}: {}]", stage.last - stage.first, text);
}

std::string text_of(const Draft& draft, const PlannerInput& input) {
  std::string text;
  for (const DraftPipeline& pipeline : draft.pipelines) {
    if (!text.empty()) text += " | ";
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      text += (s == 0 ? "" : " ") + text_of(pipeline.stages[s], input);
    }
  }
  return text;
}

void give_plan(Candidate& candidate, const Draft& draft, const PlannerInput& input, const Judge& by) {
  const auto nodes = assign_nodes(draft, input);
  if (!nodes) {
    candidate.label = Label::kInexpressible;
    candidate.reason = "it uses more GPUs than there are";
    return;
  }
  importing::Options options;
  options.profiles = by.profiles;
  options.hierarchy = &by.hierarchy;
  const importing::ReadJob job(std::make_unique<const importing::Job>(job_of(draft, input, *nodes, by.runtime)));
  auto made = importing::make_plan(job, by.fleet, by.model, options);
  if (!made) {
    candidate.label = Label::kInexpressible;
    candidate.reason = made.error().front().message;
    return;
  }
  plan::LaunchPlan& plan = candidate.plan.emplace(std::move(made->plan));
  judge_plan(candidate, plan, by);
  if (candidate.rank > 1 && !candidate.runs()) return;  // nobody looks at it again
  const simulate::Result result = simulate::simulate(simulate::schedule_of(plan));
  simulate::predict(plan, result, by.fleet_peak);
}

bool says_the_same(const Candidate& candidate) {
  return candidate.label == Label::kOk || candidate.label == Label::kMisCosted;
}

}  // namespace

Candidate judge(const Draft& draft, std::int64_t rank, const PlannerInput& input, const Judge& by) {
  Candidate candidate{rank, draft.claimed, draft.label, draft.reason, text_of(draft, input), std::nullopt};
  for (const DraftPipeline& pipeline : draft.pipelines) {
    if (says_the_same(candidate)) judge_cuts(candidate, pipeline, input.units());
  }
  if (says_the_same(candidate)) give_plan(candidate, draft, input, by);
  return candidate;
}

Candidate judge(plan::LaunchPlan given, const Judge& by) {
  Candidate candidate;
  candidate.claimed = to_seconds(given.predicted.iteration);
  candidate.text = fmt::format("{} stages", given.stages.size());
  plan::LaunchPlan& plan = candidate.plan.emplace(std::move(given));
  if (by.runtime != runtime::Target::kGeneric) judge_runtime(candidate, plan, by.runtime);
  judge_plan(candidate, plan, by);
  const simulate::Result result = simulate::simulate(simulate::schedule_of(plan));
  simulate::predict(plan, result, by.fleet_peak);
  return candidate;
}

Verdict first_usable(const Proposals& proposals, const PlannerInput& input, const Judge& by, std::int64_t most) {
  Verdict verdict;
  const auto count = static_cast<std::int64_t>(proposals.drafts.size());
  std::int64_t planned = 0;
  for (std::int64_t i = 0; i < count && planned < most; ++i) {
    verdict.judged.push_back(judge(at(proposals.drafts, i), i + 1, input, by));
    verdict.left = count - i - 1;
    if (verdict.judged.back().runs()) break;
    if (verdict.judged.back().plan) ++planned;
    if (i > 0) verdict.judged.back().plan.reset();  // only the first and the one that runs are looked at again
  }
  return verdict;
}

}  // namespace tangram::baseline
