#include "diff_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "plan_sentences.hpp"
#include "plan_view.hpp"
#include "table.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownTransfers = 8;  // pairs of hosts; the rest is counted (--json has all)

std::string state_text(const evolve::State& state) {
  return fmt::format("{} of parameters, {} of optimizer state", people_bytes(state.parameters),
                     people_bytes(state.optimizer));
}

/// "a" where both are equal, else "a -> b"; one alone where there is no other.
std::string change_text(const std::string& before, const std::string& after) {
  if (before.empty() || after.empty()) return before + after;
  return before == after ? before : fmt::format("{} -> {}", before, after);
}

/// What `text_of` says of each part.
template <class TextOf>
std::string joined(const plan::Stage& stage, std::string_view separator, const TextOf& text_of) {
  std::string text;
  for (const plan::Part& part : stage.parts) {
    if (!text.empty()) text += separator;
    text += text_of(part);
  }
  return text;
}

std::string parallel_text(const plan::Stage& stage) {
  return joined(stage, " | ", [](const plan::Part& part) { return strategy_text(part.strategy); });
}

std::string devices_text(const plan::LaunchPlan& plan, const plan::Stage& stage) {
  return joined(stage, " + ", [&](const plan::Part& part) { return gpus_text(plan, part); });
}

std::string samples_text(const plan::Stage& stage) {
  return joined(stage, "+", [](const plan::Part& part) { return std::to_string(part.samples_per_replica()); });
}

/// What a stage is to people, or nothing where it is not there.
struct StageTexts {
  std::string devices, layers, parallel, samples;
};

StageTexts texts_of(const plan::LaunchPlan& plan, int id) {
  if (id < 0) return {};
  const plan::Stage& stage = plan.stage(id);
  return {devices_text(plan, stage), layers_text(stage), parallel_text(stage), samples_text(stage)};
}

std::string_view mark_of(const evolve::StagePair& pair) {
  if (pair.before < 0) return "+";
  if (pair.after < 0) return "-";
  return pair.same() ? "=" : "~";
}

Style style_of(std::string_view mark) {
  if (mark == "+") return Style::kGreen;
  if (mark == "-") return Style::kRed;
  return mark == "~" ? Style::kYellow : Style::kPlain;
}

std::string hosts_text(const evolve::StagePair& pair) {
  if (pair.before < 0 || pair.after < 0 || !pair.gpus) return "";
  return pair.joined > 0 ? fmt::format("{} other", pair.joined) : "in another order";
}

/// Pipelines that change alike are shown once.
std::string stage_table(const plan::LaunchPlan& before, const plan::LaunchPlan& after,
                        const std::vector<evolve::StagePair>& pairs, const Terminal& terminal) {
  std::vector<std::pair<std::vector<std::string>, int>> rows;  // texts, how often
  for (const evolve::StagePair& pair : pairs) {
    const StageTexts a = texts_of(before, pair.before);
    const StageTexts b = texts_of(after, pair.after);
    const std::vector<std::string> row{
        std::string(mark_of(pair)),      change_text(a.devices, b.devices),   hosts_text(pair),
        change_text(a.layers, b.layers), change_text(a.parallel, b.parallel), change_text(a.samples, b.samples)};
    const auto known = std::ranges::find(rows, row, &std::pair<std::vector<std::string>, int>::first);
    if (known != rows.end()) {
      ++known->second;
    } else {
      rows.emplace_back(row, 1);
    }
  }
  Table table({{""},
               {"stages", true},
               {"GPUs", false, 14},
               {"of them"},
               {"layers", false, 12},
               {"parallel", false, 16},
               {"spl"}});
  for (const auto& [row, times] : rows) {
    const Style style = style_of(row[0]);
    table.add({{row[0], style},
               {std::to_string(times)},
               {row[1], style},
               {row[2], style},
               {row[3], style},
               {row[4], style},
               {row[5], style}});
  }
  return table.render(terminal);
}

std::string speed_line(const plan::LaunchPlan& plan) {
  return fmt::format("{} an iteration, {} tokens/s, {}", people_time(to_seconds(plan.predicted.iteration)),
                     thousands(static_cast<std::int64_t>(plan.predicted.tokens_per_s)),
                     counted(static_cast<std::int64_t>(plan.ranks.size()), "GPU"));
}

double gain_of(const plan::LaunchPlan& before, const plan::LaunchPlan& after) {
  return before.predicted.tokens_per_s > 0 ? after.predicted.tokens_per_s / before.predicted.tokens_per_s - 1 : 0;
}

std::string gpu_line(const evolve::GpuCounts& gpus) {
  return fmt::format("{} go on, {} change their work, {} join, {} leave", thousands(gpus.same), thousands(gpus.changed),
                     thousands(gpus.joined), thousands(gpus.left));
}

std::string moved_text(const evolve::Resharding& r, const std::optional<Nanoseconds>& time) {
  if (r.moved() == Bytes(0) && r.checkpoint.total() == Bytes(0))
    return "moves     nothing: every GPU has what it needs\n";
  std::string out;
  const auto add = [&](const char* where, const evolve::State& state) {
    if (state.total() == Bytes(0)) return;
    out += fmt::format("{} {} {}\n", out.empty() ? "moves    " : "         ", where, state_text(state));
  };
  add("between hosts", r.between);
  add("inside hosts", r.within);
  if (r.checkpoint.total() > Bytes(0)) {
    out += fmt::format("reads     {} from a checkpoint: no GPU left has it\n", state_text(r.checkpoint));
  }
  if (time && *time > Nanoseconds(0))
    out += fmt::format("takes     {} at the links' speed\n", people_time(to_seconds(*time)));
  return out;
}

std::string transfer_table(const evolve::Resharding& resharding, const Terminal& terminal) {
  std::vector<evolve::HostTransfer> largest;
  for (const evolve::HostTransfer& t : resharding.transfers) {
    if (t.from != t.to) largest.push_back(t);
  }
  if (largest.empty()) return "";
  std::ranges::stable_sort(largest, std::greater<>(), [](const auto& t) { return t.state.total(); });
  Table table({{"from"}, {"to"}, {"parameters", true}, {"optimizer state", true}});
  for (std::size_t i = 0; i < largest.size() && i < kShownTransfers; ++i) {
    const evolve::HostTransfer& t = largest[i];
    table.add({{t.from}, {t.to}, {people_bytes(t.state.parameters)}, {people_bytes(t.state.optimizer)}});
  }
  std::string out = "\n" + table.render(terminal);
  if (largest.size() > kShownTransfers) {
    out += fmt::format("and {} more pairs of hosts\n",
                       thousands(static_cast<std::int64_t>(largest.size() - kShownTransfers)));
  }
  return out;
}

Json state_json(const evolve::State& state) {
  return {{"parameter_bytes", state.parameters.value()}, {"optimizer_bytes", state.optimizer.value()}};
}

Json prediction_json(const plan::LaunchPlan& plan) {
  return {{"plan_id", plan::plan_digest(plan)},
          {"iteration_s", to_seconds(plan.predicted.iteration)},
          {"tokens_per_s", plan.predicted.tokens_per_s},
          {"gpus", plan.ranks.size()}};
}

Json stage_json(const plan::LaunchPlan& plan, int id) {
  if (id < 0) return nullptr;
  const plan::Stage& stage = plan.stage(id);
  Json json{{"id", id},
            {"pipeline", stage.pipeline},
            {"blocks", {stage.first(), stage.last()}},
            {"gpus", devices_text(plan, stage)},
            {"parallel", parallel_text(stage)}};
  if (stage.chunks.size() > 1) {
    for (const model::BlockRange& chunk : stage.chunks) json["chunks"].push_back({chunk.first, chunk.last});
  }
  return json;
}

Json resharding_json(const evolve::Resharding& r, const std::optional<Nanoseconds>& time) {
  Json json;
  json["kept"] = state_json(r.kept);
  json["within_hosts"] = state_json(r.within);
  json["between_hosts"] = state_json(r.between);
  json["from_checkpoint"] = state_json(r.checkpoint);
  json["seconds"] = time ? Json(to_seconds(*time)) : Json(nullptr);
  json["transfers"] = Json::array();
  for (const evolve::HostTransfer& t : r.transfers) {
    Json entry{{"from", t.from}, {"to", t.to}};
    entry.update(state_json(t.state));
    json["transfers"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace

std::string switch_for_people(const plan::LaunchPlan& before, const plan::LaunchPlan& after,
                              const evolve::Switch& change, const Terminal& terminal) {
  const evolve::Difference& d = change.difference;
  if (d.same_body) return "the plans do the same\n";
  std::string out = fmt::format("old       {}\nnew       {}\ngain      {:+.2f} % tokens/s\n", speed_line(before),
                                speed_line(after), gain_of(before, after) * 100);
  if (!d.same_model) out += "model     another one: nothing that GPUs hold is of use\n";
  if (!d.other_job.empty()) out += fmt::format("job       {}\n", d.other_job);
  if (before.schedule() != after.schedule()) {
    out += fmt::format("schedule  {}, before {}\n", to_string(after.schedule()), to_string(before.schedule()));
  } else if (before.group != after.group) {
    out += "schedule  other groups of microbatches in interleaved chunks\n";
  } else if (!d.same_schedule) {
    out += fmt::format("encoders  {}, before {}\n", encoder_line(after), encoder_line(before));
  }
  if (!d.same_batching) out += "batches   other pipelines or microbatches\n";
  if (d.same_structure()) return out + "changes   predictions alone: every GPU goes on as it is\n";
  out += fmt::format("GPUs      {}\n", gpu_line(d.gpus));
  if (change.resharding) out += moved_text(*change.resharding, change.time);
  out += "\n" + stage_table(before, after, d.stages, terminal);
  if (change.resharding) out += transfer_table(*change.resharding, terminal);
  return out;
}

Json switch_json(const plan::LaunchPlan& before, const plan::LaunchPlan& after, const evolve::Switch& change) {
  const evolve::Difference& d = change.difference;
  Json json;
  json["same_body"] = d.same_body;
  json["same_structure"] = d.same_structure();
  json["same_model"] = d.same_model;
  json["same_job"] = d.other_job.empty();
  json["same_batching"] = d.same_batching;
  json["old"] = prediction_json(before);
  json["new"] = prediction_json(after);
  json["gain"] = gain_of(before, after);
  json["gpus"] = {{"same", d.gpus.same}, {"changed", d.gpus.changed}, {"joined", d.gpus.joined}, {"left", d.gpus.left}};
  json["stages"] = Json::array();
  for (const evolve::StagePair& pair : d.stages) {
    json["stages"].push_back({{"old", stage_json(before, pair.before)},
                              {"new", stage_json(after, pair.after)},
                              {"same", pair.same()},
                              {"other_layers", pair.layers},
                              {"other_gpus", pair.gpus},
                              {"joined_gpus", pair.joined},
                              {"other_parallelism", pair.inside}});
  }
  json["resharding"] = change.resharding ? resharding_json(*change.resharding, change.time) : Json(nullptr);
  return json;
}

}  // namespace tangram::app
