#include "plan_sentences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "plan_view.hpp"
#include "table.hpp"
#include "tangram/base/at.hpp"
#include "tangram/export/export.hpp"
#include "tangram/multimodal/uneven.hpp"
#include "tangram/planner/plan.hpp"

namespace tangram::app {

namespace {

std::string billions(std::int64_t parameters) {
  const auto p = static_cast<double>(parameters);
  return p >= 1e12  ? fmt::format("{:.2f} T", p / 1e12)
         : p >= 1e9 ? fmt::format("{:.1f} B", p / 1e9)
         : p >= 1e6 ? fmt::format("{:.0f} M", p / 1e6)
                    : fmt::format("{:.0f} k", p / 1e3);
}

std::string model_line(const model::Model& model) {
  std::string text =
      fmt::format("{}: {} layers, {} parameters", model.name, model.block_count(), billions(model.total_parameters()));
  if (model.active_parameters() != model.total_parameters()) {
    text += fmt::format(" ({} active)", billions(model.active_parameters()));
  }
  if (const auto adapters = model::adapters_of(model)) {
    if (const auto bytes = quantized_bytes(adapters->base)) text += fmt::format(", layers in {:.2f} bits", 8 * *bytes);
  }
  const std::int64_t trained = model.trained_parameters();
  if (trained != model.total_parameters()) text += fmt::format(", {} trained", billions(trained));
  return text +
         fmt::format("; {} tokens a sample, {}", thousands(model.job.sequence_length), to_string(model.job.precision));
}

std::string batch_line(const plan::LaunchPlan& plan) {
  const plan::Pipeline& first = plan.pipelines.front();
  std::int64_t fewest = first.last_microbatch();
  for (const plan::Pipeline& pipeline : plan.pipelines) fewest = std::min(fewest, pipeline.last_microbatch());
  const std::string last = fewest < first.microbatch ? fmt::format(", the last of {}", fewest) : "";
  return fmt::format("{} = {} x {} of {}{}", counted(plan.model.job.global_batch, "sample"),
                     counted(static_cast<std::int64_t>(plan.pipelines.size()), "pipeline"),
                     counted(first.microbatches, "microbatch"), first.microbatch, last);
}

std::string islands_line(const plan::LaunchPlan& plan) {
  struct Use {
    int islands = 0;
    std::int64_t gpus = 0;
  };
  std::map<std::string, Use> by_class;
  std::vector<std::string> order;
  for (const plan::PlanIsland& island : plan.islands) {
    Use& use = by_class[island.island_class];
    if (use.islands++ == 0) order.push_back(island.island_class);
    for (const plan::HostGpus& node : island.nodes) use.gpus += static_cast<std::int64_t>(node.gpus.size());
  }
  std::vector<std::string> parts;
  for (const std::string& alias : order) {
    const Use& use = by_class[alias];
    parts.push_back(fmt::format("{} ({} in {})", alias, counted(use.gpus, "GPU"), counted(use.islands, "island")));
  }
  return fmt::format("level \"{}\": {}", plan.provenance.level, fmt::join(parts, ", "));
}

std::string result_line(const plan::Predicted& p) {
  std::string text = fmt::format("{} an iteration, {} tokens/s, MFU {:.1f} %", people_time(to_seconds(p.iteration)),
                                 thousands(static_cast<std::int64_t>(p.tokens_per_s)), p.mfu * 100);
  if (p.mfu_fleet < p.mfu * 0.999) text += fmt::format(" ({:.1f} % of the whole fleet's peak)", p.mfu_fleet * 100);
  if (p.cost_per_mtoken > 0) text += fmt::format(", ${:.3f} per million tokens", p.cost_per_mtoken);
  return text;
}

std::string own_runs_line(const plan::Predicted& p) {
  return fmt::format("{} an iteration are to be expected, give or take {:.1f} %: {:.2f} times the prediction ({})",
                     people_time(p.expected_s()), 100 * p.own_runs->deviation, p.own_runs->ratio,
                     counted(p.own_runs->runs, "run"));
}

std::string order_text(const plan::LaunchPlan& plan) {
  switch (plan.schedule()) {
    case runtime::Schedule::k1F1B: break;
    case runtime::Schedule::kInterleaved:
      return fmt::format("interleaved 1F1B ({} model chunks a stage, groups of {})", plan.chunks(), plan.group);
    case runtime::Schedule::kZeroBubble: {
      std::int64_t most = 0;
      for (const plan::Stage& stage : plan.stages) most = std::max(most, stage.put_off);
      if (most == 0) return "zero bubble (holds no more microbatches than 1F1B)";
      return fmt::format("zero bubble (for weight gradients a stage holds up to {} more)", counted(most, "microbatch"));
    }
  }
  if (!plan.colocated) return "1F1B";
  return plan.colocated->each_microbatch() ? "one microbatch after the other" : "three phases, 1F1B in the second";
}

/// What the times are promised for.
std::string schedule_line(const plan::LaunchPlan& plan) {
  const runtime::Semantics semantics = plan.semantics();
  const std::string text = fmt::format("{}, {} transfers, {} warm-up", order_text(plan), to_string(semantics.transfers),
                                       to_string(semantics.warmup));
  if (plan.runtime == runtime::Target::kGeneric) {
    return text + (exporting::torch_refusals(plan).empty() ? ", as `export --to torch` runs it"
                                                           : ": on paper; no runtime runs it so");
  }
  return fmt::format("{}, as {} runs it", text, runtime::runtime_of(plan.runtime).title);
}

/// Whether somebody looked, or would have on a smaller fleet.
bool says_what_runs_it(const plan::LaunchPlan& plan) {
  const bool searched = plan.provenance.search_bound > Nanoseconds(0);
  const bool large = plan.fleet_gpus > planner::kMostGpusLookedAt;
  return !plan.provenance.runs_on.empty() || (searched && large && plan.runtime == runtime::Target::kGeneric);
}

std::string runs_on_line(const plan::LaunchPlan& plan) {
  if (plan.provenance.runs_on.empty()) return "--target says: no look is taken at fleets as large";
  std::string text;
  for (const plan::RuntimeLook& look : plan.provenance.runs_on) {
    const auto target = runtime::target_named(look.runtime);
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ",
                        target ? runtime::runtime_of(*target).title : std::string_view(look.runtime),
                        look.why_not.empty() ? people_time(to_seconds(look.iteration)) : look.why_not);
  }
  return text + " (a first look; --target finds the best)";
}

std::string bottleneck_line(const plan::LaunchPlan& plan) {
  const plan::Breakdown& b = plan.predicted.breakdown;
  const plan::Stage& stage = plan.stage(plan.predicted.bottleneck_stage);
  const auto& stages = at(plan.pipelines, stage.pipeline).stages;
  const auto index = std::find(stages.begin(), stages.end(), stage.id) - stages.begin();
  const double total = to_seconds(plan.predicted.iteration);
  const auto percent = [&](double seconds) { return fmt::format("{:.1f} %", 100 * seconds / total); };
  return fmt::format("stage {}: computes {}, bubble {}, exposed gradient sync {}, optimizer {}", index,
                     percent(b.compute), percent(b.bubble), percent(b.exposed_sync), percent(b.optimizer));
}

std::string space_name(const std::string& space) {
  const auto parsed = nlohmann::json::parse(space, nullptr, false);
  return parsed.is_object() && parsed.contains("name") ? parsed["name"].get<std::string>() : "its space";
}

std::string gap_line(const plan::LaunchPlan& plan) {
  const plan::PlanProvenance& p = plan.provenance;
  if (p.objective != "throughput") {
    return fmt::format("{} in {}; objective {}", p.optimal ? "optimal" : "best that was found", space_name(p.space),
                       p.objective);
  }
  std::string text = p.optimal ? fmt::format("optimal in {}", space_name(p.space))
                               : fmt::format("by closed form at most {} slower than the best of {}",
                                             people_percent(p.search_gap), space_name(p.space));
  text += fmt::format("; at most {} slower than any plan of the listed degrees", people_percent(p.relaxed_gap));
  return text;
}

/// "12 out-of-memory, 3 negative (forward_ns is -1)": each with how often, the first with its example.
std::string reasons_text(const std::vector<parallelizer::CountedReason>& reasons) {
  std::string text;
  for (const parallelizer::CountedReason& reason : reasons) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", thousands(reason.count), reason.code);
    if (&reason == &reasons.front()) text += fmt::format(" ({})", reason.example);
  }
  return text;
}

std::string outsider_line(const parallelizer::Tally& tally) {
  std::string text = fmt::format("{} {}: {}, {} accepted", tally.info.name, tally.info.version,
                                 thousands(tally.queries) + " queries", counted(tally.plans, "plan"));
  if (!tally.info.deterministic) text += ", not deterministic";
  if (!tally.rejected.empty()) text += fmt::format("; rejected: {}", reasons_text(tally.rejected));
  if (!tally.failed.empty()) text += fmt::format("; failed: {}", reasons_text(tally.failed));
  return text;
}

std::string layout_text(const cost::EncoderLayout& layout) {
  cost::Strategy strategy;
  strategy.degrees.tp = layout.tp;
  strategy.degrees.sequence_parallel = layout.sequence_parallel;
  strategy.policy.zero = layout.zero1 ? 1 : 0;
  std::string text = strategy_text(strategy);
  if (layout.recompute == model::RecomputeMode::kSelective) text += " rc-selective";
  if (layout.recompute == model::RecomputeMode::kFull) text += " rc-full";
  return text;
}

/// On the part whose encoders take longest.
const plan::EncoderPrediction& slowest_encoders(const plan::LaunchPlan& plan) {
  const auto time = [](const plan::Stage& s) {
    return s.parts.front().encoders->forward + s.parts.front().encoders->backward;
  };
  return *std::ranges::max_element(plan.stages, {}, time)->parts.front().encoders;
}

std::string encoder_times_text(const plan::LaunchPlan& plan) {
  const plan::EncoderPrediction& slowest = slowest_encoders(plan);
  const bool each = plan.colocated->each_microbatch();
  return fmt::format("{} forward and {} backward{}", people_time(to_seconds(slowest.forward)),
                     people_time(to_seconds(slowest.backward)), each ? " for each microbatch" : "");
}

/// Ranks that have samples of their own, as the first stages of the pipelines split them.
std::int64_t data_parallel_ranks(const plan::LaunchPlan& plan) {
  std::int64_t ranks = 0;
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    for (const plan::Part& part : at(plan.stages, pipeline.stages.front()).parts) ranks += part.strategy.degrees.dp;
  }
  return ranks;
}

/// What attention works out of packed samples, and of whom most.
std::string packing_line(const plan::LaunchPlan& plan) {
  const model::Job& job = plan.model.job;
  const double variation = model::packing_variation(job.packing, job.sequence_length);
  const std::int64_t ranks = data_parallel_ranks(plan);
  const std::int64_t samples = std::max<std::int64_t>(1, job.global_batch / ranks);
  const double slowest = multimodal::slowest_lane({variation, 0}, ranks, samples);
  std::string text = fmt::format(
      "tokens are in sequences of {} tokens in the mean",
      thousands(static_cast<std::int64_t>(std::round(model::attended_length(job.packing, job.sequence_length)))));
  if (variation <= 0) return text;
  return text + fmt::format("; attention of a sample varies by {:.0f} %, the slowest of {} has {:.0f} % more of it",
                            100 * variation, counted(ranks, "data-parallel rank"), 100 * (slowest - 1));
}

}  // namespace

std::string options_line(const std::vector<plan::ChosenOption>& options) {
  std::string text;
  for (const plan::ChosenOption& chosen : options) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", to_string(chosen.option), chosen.value,
                        chosen.gain ? fmt::format("{:.1f} %", *chosen.gain * -100) : "(cannot run without)");
  }
  return text;
}

std::string encoder_line(const plan::LaunchPlan& plan) {
  if (!plan.colocated) return "in the pipelines";
  std::string text = "on all GPUs, ";
  text += plan.colocated->each_microbatch() ? "in turn with the language model" : "before and after the language model";
  const char* separator = ": ";
  for (const plan::ColocatedEncoders::Encoder& encoder : plan.colocated->encoders) {
    const plan::EncoderLanes lanes = plan.lanes_of(encoder.layout);
    text += fmt::format("{}{} {}, {} of {}", separator, encoder.module, layout_text(encoder.layout),
                        counted(lanes.of_plan, "lane"), counted(lanes.samples, "sample"));
    separator = "; ";
  }
  return text;
}

std::vector<Sentence> plan_subject(const plan::LaunchPlan& plan) {
  std::vector<Sentence> subject{
      {"fleet", fmt::format("{}: {}, the plan uses {}", plan.fleet_name, counted(plan.fleet_gpus, "GPU"),
                            thousands(static_cast<std::int64_t>(plan.ranks.size())))},
      {"model", model_line(plan.model)},
      {"batch", batch_line(plan)},
      {"islands", islands_line(plan)}};
  if (plan.model.job.packing.any()) subject.push_back({"packing", packing_line(plan)});
  if (plan.colocated) {
    subject.push_back({"encoders", encoder_line(plan) + "; " + encoder_times_text(plan)});
  }
  return subject;
}

/// Of the stages at this place in all pipelines, what is farthest from a measurement.
cost::Provenance provenance_of(const plan::LaunchPlan& plan, std::size_t place) {
  cost::Provenance weakest = cost::Provenance::kMeasured;
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    if (place >= pipeline.stages.size()) continue;
    for (const plan::Part& part : at(plan.stages, pipeline.stages[place]).parts) {
      weakest = std::max(weakest, part.predicted.provenance);
    }
  }
  return weakest;
}

/// Where the times of stages are from: "measured", "stages 0, 2 measured; stage 1 modelled".
std::string times_line(const plan::LaunchPlan& plan) {
  std::map<cost::Provenance, std::vector<std::string>> stages;
  for (std::size_t place = 0; place < plan.pipelines.front().stages.size(); ++place) {
    stages[provenance_of(plan, place)].push_back(std::to_string(place));
  }
  if (stages.size() == 1) return std::string(to_string(stages.begin()->first));
  std::string text;
  for (const auto& [provenance, numbers] : stages) {
    text += fmt::format("{}stage{} {} {}", text.empty() ? "" : "; ", numbers.size() == 1 ? "" : "s",
                        fmt::join(numbers, ", "), to_string(provenance));
  }
  return text;
}

std::vector<Sentence> plan_outcome(const plan::LaunchPlan& plan) {
  std::vector<Sentence> out{{"result", result_line(plan.predicted)}};
  if (plan.predicted.own_runs) out.push_back({"own runs", own_runs_line(plan.predicted)});
  out.push_back({"schedule", schedule_line(plan)});
  const std::vector<plan::ChosenOption>& options = plan.provenance.options;
  if (!options.empty()) out.push_back({"options", options_line(options)});
  if (says_what_runs_it(plan)) out.push_back({"runs on", runs_on_line(plan)});
  out.push_back({"slowest", bottleneck_line(plan)});
  if (!plan.profiles.empty()) out.push_back({"times", times_line(plan)});
  // An imported plan was not searched for: nothing bounds it.
  if (plan.provenance.search_bound > Nanoseconds(0)) out.push_back({"gap", gap_line(plan)});
  for (const parallelizer::Tally& tally : plan.provenance.outsiders) out.push_back({"outside", outsider_line(tally)});
  for (const plan::IdleGpus& idle : plan.idle) {
    out.push_back({"idle", fmt::format("{} x {}{}{}", idle.gpus, idle.island_class, idle.reason.empty() ? "" : ": ",
                                       idle.reason)});
  }
  if (!plan.provenance.note.empty()) out.push_back({"note", plan.provenance.note});
  return out;
}

}  // namespace tangram::app
