#include "plan_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "table.hpp"
#include "tangram/base/at.hpp"
#include "tangram/export/export.hpp"
#include "tangram/planner/plan.hpp"

namespace tangram::app {

namespace {

constexpr int kBarWidth = 6;
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kTight = 0.95;  // of the usable memory: worth a color

std::string billions(std::int64_t parameters) {
  const auto p = static_cast<double>(parameters);
  return p >= 1e12  ? fmt::format("{:.2f} T", p / 1e12)
         : p >= 1e9 ? fmt::format("{:.1f} B", p / 1e9)
                    : fmt::format("{:.0f} M", p / 1e6);
}

std::string model_line(const model::Model& model) {
  std::string text =
      fmt::format("{}: {} layers, {} parameters", model.name, model.block_count(), billions(model.total_parameters()));
  if (model.active_parameters() != model.total_parameters()) {
    text += fmt::format(" ({} active)", billions(model.active_parameters()));
  }
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

Nanoseconds pass_time(const plan::Part& part) { return part.predicted.forward + part.predicted.backward; }

/// The longest T of all stages: what the others are measured against.
Nanoseconds slowest_pass(const plan::LaunchPlan& plan) {
  Nanoseconds slowest(1);
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) slowest = std::max(slowest, pass_time(part));
  }
  return slowest;
}

Cell memory_cell(const plan::PartPrediction& predicted) {
  const double share = predicted.peak_memory.as_double() / predicted.usable_memory.as_double();
  return {fmt::format("{} {:.1f}/{:.1f}", bar(share, kBarWidth), predicted.peak_memory.as_double() / kGiB,
                      predicted.usable_memory.as_double() / kGiB),
          share > kTight ? Style::kYellow : Style::kPlain};
}

std::string pass_text(const plan::PartPrediction& predicted) {
  const double forward = to_seconds(predicted.forward) * 1e3;
  const double backward = to_seconds(predicted.backward) * 1e3;
  const int decimals = backward >= 100 ? 0 : backward >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}+{:.{}f}", forward, decimals, backward, decimals);
}

std::string stage_table(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline, Nanoseconds slowest,
                        const Terminal& terminal) {
  Table table({{"#", true},
               {"GPUs", false, 14},
               {"layers", false},
               {"parallel", false, 12},
               {"spl", true},
               {"memory GiB", false},
               {"fwd+bwd ms", true},
               {"load"}});
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const plan::Stage& stage = plan.stage(pipeline.stages[s]);
    const bool bottleneck = stage.id == plan.predicted.bottleneck_stage;
    const Style style = bottleneck ? Style::kBold : Style::kPlain;
    const auto slowest_part = std::ranges::max_element(stage.parts, {}, pass_time);
    for (std::size_t p = 0; p < stage.parts.size(); ++p) {
      const plan::Part& part = stage.parts[p];
      const bool slowest_here = bottleneck && &part == &*slowest_part;
      const double load = pass_time(part).as_double() / slowest.as_double();
      table.add(
          {{p == 0 ? fmt::format("{}", s) : "+", style},
           {gpus_text(plan, part), style},
           {p == 0 ? layers_text(stage) : "", style},
           {strategy_text(part.strategy), style},
           {fmt::format("{}", part.samples_per_replica()), style},
           memory_cell(part.predicted),
           {pass_text(part.predicted), style},
           {fmt::format("{:3.0f}%{}", load * 100, slowest_here ? " <" : ""), slowest_here ? Style::kRed : style}});
    }
  }
  return table.render(terminal);
}

/// Pipelines with equal stages are shown once.
bool alike(const plan::LaunchPlan& plan, const plan::Pipeline& a, const plan::Pipeline& b) {
  if (a.stages.size() != b.stages.size() || a.microbatch != b.microbatch || a.microbatches != b.microbatches)
    return false;
  for (std::size_t s = 0; s < a.stages.size(); ++s) {
    const plan::Stage& x = plan.stage(a.stages[s]);
    const plan::Stage& y = plan.stage(b.stages[s]);
    if (x.chunks != y.chunks || x.parts.size() != y.parts.size()) return false;
    for (std::size_t p = 0; p < x.parts.size(); ++p) {
      if (x.parts[p].strategy != y.parts[p].strategy || x.parts[p].predicted != y.parts[p].predicted) return false;
    }
  }
  return true;
}

std::string stage_tables(const plan::LaunchPlan& plan, const Terminal& terminal) {
  const Nanoseconds slowest = slowest_pass(plan);
  std::string out;
  for (std::size_t p = 0; p < plan.pipelines.size();) {
    std::size_t end = p + 1;
    while (end < plan.pipelines.size() && alike(plan, plan.pipelines[p], plan.pipelines[end])) ++end;
    if (plan.pipelines.size() > 1) {
      out += end - p > 1 ? fmt::format("pipelines {} to {}, each:\n", p, end - 1) : fmt::format("pipeline {}:\n", p);
    }
    out += stage_table(plan, plan.pipelines[p], slowest, terminal) + "\n";
    p = end;
  }
  return out;
}

std::string result_line(const plan::Predicted& p) {
  std::string text = fmt::format("{} an iteration, {} tokens/s, MFU {:.1f} %", people_time(to_seconds(p.iteration)),
                                 thousands(static_cast<std::int64_t>(p.tokens_per_s)), p.mfu * 100);
  if (p.mfu_fleet < p.mfu * 0.999) text += fmt::format(" ({:.1f} % of the whole fleet's peak)", p.mfu_fleet * 100);
  if (p.cost_per_mtoken > 0) text += fmt::format(", ${:.3f} per million tokens", p.cost_per_mtoken);
  return text;
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
  return "1F1B";
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

/// Under zero bubble the search's own bound is another schedule's.
std::string gap_line(const plan::LaunchPlan& plan) {
  const plan::PlanProvenance& p = plan.provenance;
  if (plan.zero_bubble) {
    return fmt::format("at most {} slower than any plan of the listed degrees, under zero bubble or 1F1B",
                       people_percent(p.relaxed_gap));
  }
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

}  // namespace

namespace {

/// Of a mixture: how many blocks are under each ZeRO stage and recompute mode.
void add_runs(const cost::MemoryPolicy& policy, std::vector<std::string>& words) {
  const auto count = [&](const auto& wanted) {
    int blocks = 0;
    for (const cost::BlockRun& run : policy.runs) blocks += wanted(run.policy) ? run.blocks : 0;
    return blocks;
  };
  const int all = count([](const auto&) { return true; });
  for (const int zero : {1, 2, 3}) {
    const int blocks = count([zero](const auto& block) { return block.zero == zero; });
    if (blocks > 0)
      words.push_back(blocks == all ? fmt::format("zero{}", zero) : fmt::format("zero{}:{}", zero, blocks));
  }
  if (count([&](const auto& block) { return block.zero == policy.zero; }) == 0) {
    words.push_back(fmt::format("ends:zero{}", policy.zero));
  }
  const auto add = [&](model::RecomputeMode mode, const char* word) {
    const int blocks = count([mode](const auto& block) { return block.recompute == mode; });
    if (blocks > 0) words.push_back(fmt::format("{}:{}", word, blocks));
  };
  add(model::RecomputeMode::kSelective, "rc-selective");
  add(model::RecomputeMode::kFull, "rc-full");
}

}  // namespace

std::string strategy_text(const cost::Strategy& strategy) {
  const cost::Degrees& d = strategy.degrees;
  std::vector<std::string> words;
  if (d.tp > 1) words.push_back(fmt::format("tp{}{}", d.tp, d.sequence_parallel ? "+sp" : ""));
  if (d.cp > 1) words.push_back(fmt::format("cp{}", d.cp));
  if (d.dp > 1) words.push_back(fmt::format("dp{}", d.dp));
  if (d.ep > 1) words.push_back(fmt::format("ep{}", d.ep));
  if (d.ep > 1 && d.etp > 1) words.push_back(fmt::format("etp{}", d.etp));
  if (strategy.policy.is_mixed()) {
    add_runs(strategy.policy, words);
  } else if (strategy.policy.zero > 0) {
    words.push_back(fmt::format("zero{}", strategy.policy.zero));
  }
  switch (strategy.policy.recompute) {
    case model::RecomputeMode::kNone: break;
    case model::RecomputeMode::kSelective: words.emplace_back("rc-selective"); break;
    case model::RecomputeMode::kFull:
      words.push_back(fmt::format("rc-full:{}", strategy.policy.recompute_layers));
      break;
  }
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, " "));
}

std::string gpus_text(const plan::LaunchPlan& plan, const plan::Part& part) {
  return fmt::format("{} x {}", part.strategy.degrees.gpus(), plan.island(part.island).device.name);
}

std::string layers_text(const plan::Stage& stage) {
  std::string layers;
  for (const model::BlockRange& chunk : stage.chunks) layers += to_string(chunk) + " ";
  return fmt::format("{}({})", layers, stage.block_count());
}

std::string plan_for_people(const plan::LaunchPlan& plan, const Terminal& terminal) {
  std::string out;
  out += labelled(terminal, "fleet",
                  fmt::format("{}: {}, the plan uses {}", plan.fleet_name, counted(plan.fleet_gpus, "GPU"),
                              thousands(static_cast<std::int64_t>(plan.ranks.size()))));
  out += labelled(terminal, "model", model_line(plan.model));
  out += labelled(terminal, "batch", batch_line(plan));
  out += labelled(terminal, "islands", islands_line(plan)) + "\n";
  out += stage_tables(plan, terminal);
  out += labelled(terminal, "result", result_line(plan.predicted));
  out += labelled(terminal, "schedule", schedule_line(plan));
  if (says_what_runs_it(plan)) out += labelled(terminal, "runs on", runs_on_line(plan));
  out += labelled(terminal, "slowest", bottleneck_line(plan));
  // An imported plan was not searched for: nothing bounds it.
  if (plan.provenance.search_bound > Nanoseconds(0)) out += labelled(terminal, "gap", gap_line(plan));
  for (const parallelizer::Tally& tally : plan.provenance.outsiders) {
    out += labelled(terminal, "outside", outsider_line(tally));
  }
  for (const plan::IdleGpus& idle : plan.idle) {
    out += labelled(
        terminal, "idle",
        fmt::format("{} x {}{}{}", idle.gpus, idle.island_class, idle.reason.empty() ? "" : ": ", idle.reason));
  }
  if (!plan.provenance.note.empty()) out += labelled(terminal, "note", plan.provenance.note);
  return out;
}

}  // namespace tangram::app
