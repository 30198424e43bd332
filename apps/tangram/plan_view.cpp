#include "plan_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plan_sentences.hpp"
#include "table.hpp"
#include "tangram/base/at.hpp"

namespace tangram::app {

namespace {

constexpr int kBarWidth = 6;
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kTight = 0.95;  // of the usable memory: worth a color

Cell memory_cell(const plan::PartPrediction& predicted) {
  const double share = predicted.peak_memory.as_double() / predicted.usable_memory.as_double();
  return {fmt::format("{} {:.1f}/{:.1f}", bar(share, kBarWidth), predicted.peak_memory.as_double() / kGiB,
                      predicted.usable_memory.as_double() / kGiB),
          share > kTight ? Style::kYellow : Style::kPlain};
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
  for (const PipelineGroup& group : pipeline_groups(plan)) {
    if (plan.pipelines.size() > 1) out += pipelines_text(group) + ":\n";
    out += stage_table(plan, at(plan.pipelines, group.first), slowest, terminal) + "\n";
  }
  return out;
}

/// "zero3", "zero3/8" where ZeRO shards over 8 of the data-parallel ranks.
std::string zero_text(int zero, const cost::Degrees& degrees) {
  const std::string text = fmt::format("zero{}", zero);
  return zero > 0 && degrees.dp_replicate > 1 ? fmt::format("{}/{}", text, degrees.dp_shard()) : text;
}

/// Of a mixture: how many blocks are under each ZeRO stage and recompute mode.
void add_runs(const cost::Strategy& strategy, std::vector<std::string>& words) {
  const cost::MemoryPolicy& policy = strategy.policy;
  const auto count = [&](const auto& wanted) {
    int blocks = 0;
    for (const cost::BlockRun& run : policy.runs) blocks += wanted(run.policy) ? run.blocks : 0;
    return blocks;
  };
  const int all = count([](const auto&) { return true; });
  for (const int zero : {1, 2, 3}) {
    const int blocks = count([zero](const auto& block) { return block.zero == zero; });
    const std::string text = zero_text(zero, strategy.degrees);
    if (blocks > 0) words.push_back(blocks == all ? text : fmt::format("{}:{}", text, blocks));
  }
  if (count([&](const auto& block) { return block.zero == policy.zero; }) == 0) {
    words.push_back("ends:" + zero_text(policy.zero, strategy.degrees));
  }
  const auto add = [&](model::RecomputeMode mode, const char* word) {
    const int blocks = count([mode](const auto& block) { return block.recompute == mode; });
    if (blocks > 0) words.push_back(fmt::format("{}:{}", word, blocks));
  };
  add(model::RecomputeMode::kSelective, "rc-selective");
  add(model::RecomputeMode::kFull, "rc-full");
}

}  // namespace

Nanoseconds pass_time(const plan::Part& part) { return part.predicted.forward + part.predicted.backward; }

Nanoseconds slowest_pass(const plan::LaunchPlan& plan) {
  Nanoseconds slowest(1);
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) slowest = std::max(slowest, pass_time(part));
  }
  return slowest;
}

std::string pass_text(const plan::PartPrediction& predicted) {
  const double forward = to_seconds(predicted.forward) * 1e3;
  const double backward = to_seconds(predicted.backward) * 1e3;
  const int decimals = backward >= 100 ? 0 : backward >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}+{:.{}f}", forward, decimals, backward, decimals);
}

std::vector<PipelineGroup> pipeline_groups(const plan::LaunchPlan& plan) {
  std::vector<PipelineGroup> groups;
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    if (!groups.empty() && alike(plan, at(plan.pipelines, groups.back().first), at(plan.pipelines, p))) {
      groups.back().last = p;
    } else {
      groups.push_back({p, p});
    }
  }
  return groups;
}

std::string pipelines_text(const PipelineGroup& group) {
  return group.last > group.first ? fmt::format("pipelines {} to {}, each", group.first, group.last)
                                  : fmt::format("pipeline {}", group.first);
}

std::string strategy_text(const cost::Strategy& strategy) {
  const cost::Degrees& d = strategy.degrees;
  std::vector<std::string> words;
  if (d.tp > 1) words.push_back(fmt::format("tp{}{}", d.tp, d.sequence_parallel ? "+sp" : ""));
  if (d.cp > 1) words.push_back(fmt::format("cp{}", d.cp));
  if (d.dp > 1) words.push_back(fmt::format("dp{}", d.dp));
  if (d.ep > 1) words.push_back(fmt::format("ep{}", d.ep));
  if (d.ep > 1 && d.etp > 1) words.push_back(fmt::format("etp{}", d.etp));
  if (strategy.policy.is_mixed()) {
    add_runs(strategy, words);
  } else if (strategy.policy.zero > 0) {
    words.push_back(zero_text(strategy.policy.zero, d));
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

std::string failed_check_text(const plan::CheckReport& judged) {
  if (judged.ok()) return "";
  const plan::Violation& first = judged.violations.front();
  const std::size_t others = judged.violations.size() - 1;
  std::string text = fmt::format("the plan does not pass its check: {}: {}", first.where, first.message);
  if (others > 0) text += fmt::format(", and {} more; see tangram check", others);
  return text;
}

std::string plan_for_people(const plan::LaunchPlan& plan, const Terminal& terminal) {
  const auto lines_of = [&](const std::vector<Sentence>& sentences) {
    std::string lines;
    for (const Sentence& sentence : sentences) lines += labelled(terminal, sentence.label, sentence.text);
    return lines;
  };
  return lines_of(plan_subject(plan)) + "\n" + stage_tables(plan, terminal) + lines_of(plan_outcome(plan));
}

}  // namespace tangram::app
