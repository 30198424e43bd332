#include "disaggregation_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "table.hpp"
#include "tangram/base/at.hpp"
#include "tangram/dispatch/document.hpp"

namespace tangram::app {

namespace {

using namespace disaggregate;
using Json = nlohmann::ordered_json;

/// Four digits, the others rounded away.
std::string rate_text(double rate) {
  if (rate <= 0) return "-";
  if (rate < 1000) return fmt::format("{:.4g}", rate);
  const double unit = std::pow(10.0, std::floor(std::log10(rate)) - 3);
  return thousands(std::llround(std::round(rate / unit) * unit));
}

std::string bytes_text(double bytes) { return people_bytes(ceil_to_bytes(bytes)); }

double memory_limit(const GpuClass& c) { return std::isinf(c.memory) ? 0 : c.memory; }

/// Kernels of one phase and layer, and where they are.
struct LayerPattern {
  int phase = 0;
  std::vector<int> kernels;  // of the first such layer
  std::vector<int> classes;
  std::vector<int> layers;
};

/// Layers of a phase whose kernels have the same names but for their numbers, on the same classes.
std::vector<LayerPattern> patterns_of(const Problem& problem, const Placement& placement) {
  std::vector<LayerPattern> patterns;
  for (int first = 0; first < problem.kernel_count();) {
    const Kernel& kernel = at(problem.kernels, first);
    LayerPattern here{kernel.phase, {}, {}, {kernel.layer}};
    int k = first;
    for (; k < problem.kernel_count(); ++k) {
      const Kernel& other = at(problem.kernels, k);
      if (other.phase != kernel.phase || other.layer != kernel.layer) break;
      here.kernels.push_back(k);
      here.classes.push_back(at(placement, k));
    }
    first = k;
    const auto same = std::ranges::find_if(patterns, [&](const LayerPattern& p) {
      return p.phase == here.phase && p.classes == here.classes && p.kernels.size() == here.kernels.size() &&
             at(problem.kernels, p.kernels.front()).seconds == at(problem.kernels, here.kernels.front()).seconds;
    });
    if (same == patterns.end()) {
      patterns.push_back(std::move(here));
    } else {
      same->layers.push_back(kernel.layer);
    }
  }
  return patterns;
}

/// "qkv[3]" is the qkv of any layer.
std::string without_number(const std::string& name) { return name.substr(0, name.find('[')); }

/// "A100: norm qkv rope; L40S: attention"
std::string pattern_text(const Problem& problem, const LayerPattern& pattern) {
  std::map<int, std::vector<std::string>> names;
  for (std::size_t i = 0; i < pattern.kernels.size(); ++i) {
    std::string name = without_number(at(problem.kernels, pattern.kernels[i]).name);
    name = name.substr(name.rfind('.') + 1);
    names[pattern.classes[i]].push_back(name.substr(name.rfind('/') + 1));
  }
  if (names.size() == 1) return at(problem.classes, names.begin()->first).name + ": all";
  std::vector<std::string> parts;
  for (const auto& [c, of_class] : names) {
    parts.push_back(fmt::format("{}: {}", at(problem.classes, c).name, fmt::join(of_class, " ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string gpus_table(const PlacedKernels& placed, const Terminal& terminal) {
  const Usage& usage = placed.found.solution.usage;
  Table table({{"GPU"}, {"count", true}, {"busy", true}, {"of period", true}, {"memory", true}, {"usable", true}});
  for (int c = 0; c < placed.problem.class_count(); ++c) {
    const GpuClass& of = at(placed.problem.classes, c);
    table.add({{of.name, Style::kBold},
               {std::to_string(of.count)},
               {people_time(at(usage.gpu, c))},
               {people_percent(at(usage.gpu, c) / usage.period)},
               {bytes_text(at(usage.memory, c))},
               {std::isinf(of.memory) ? "-" : bytes_text(of.memory)}});
  }
  return table.render(terminal);
}

std::string patterns_table(const PlacedKernels& placed, const Terminal& terminal) {
  constexpr std::size_t kLeast = 30;
  Table table({{"phase"}, {"layers", true}, {"which"}, {"kernels", false, kLeast}});
  for (const LayerPattern& pattern : patterns_of(placed.problem, placed.found.solution.placement)) {
    table.add({{at(placed.problem.phases, pattern.phase).name},
               {std::to_string(pattern.layers.size())},
               {pattern.layers.front() < 0 ? "front" : compact_ranges(pattern.layers)},
               {pattern_text(placed.problem, pattern)}});
  }
  return table.render(terminal);
}

Json patterns_json(const PlacedKernels& placed) {
  Json patterns = Json::array();
  for (const LayerPattern& pattern : patterns_of(placed.problem, placed.found.solution.placement)) {
    Json kernels = Json::array();
    for (std::size_t i = 0; i < pattern.kernels.size(); ++i) {
      kernels.push_back({{"kernel", without_number(at(placed.problem.kernels, pattern.kernels[i]).name)},
                         {"gpu", at(placed.problem.classes, pattern.classes[i]).name}});
    }
    patterns.push_back({{"phase", at(placed.problem.phases, pattern.phase).name},
                        {"layers", pattern.layers},
                        {"kernels", std::move(kernels)}});
  }
  return patterns;
}

Json gpus_json(const Problem& problem, const Usage& usage) {
  Json gpus = Json::array();
  for (int c = 0; c < problem.class_count(); ++c) {
    const GpuClass& of = at(problem.classes, c);
    gpus.push_back({{"gpu", of.name},
                    {"count", of.count},
                    {"busy_s", at(usage.gpu, c)},
                    {"memory", static_cast<std::int64_t>(at(usage.memory, c))},
                    {"usable_memory", static_cast<std::int64_t>(memory_limit(of))}});
  }
  return gpus;
}

Json phases_json(const Problem& problem, const Usage& usage) {
  Json phases = Json::array();
  for (std::size_t f = 0; f < problem.phases.size(); ++f) {
    phases.push_back({{"phase", problem.phases[f].name},
                      {"passes", problem.phases[f].passes},
                      {"in_flight", problem.phases[f].in_flight},
                      {"latency_s", usage.latency[f]}});
  }
  return phases;
}

std::string_view name_of(Objective objective) { return objective == Objective::kThroughput ? "throughput" : "latency"; }

}  // namespace

std::string placement_for_people(const PlacedKernels& placed, const Terminal& terminal) {
  const Solution& solution = placed.found.solution;
  std::string out;
  const auto line = [&](std::string_view label, const std::string& text) { out += labelled(terminal, label, text); };
  const Phase& last = placed.problem.phases.back();
  line("kernels", fmt::format("{} on {}, {} of {}, {} in flight", thousands(placed.problem.kernel_count()),
                              counted(placed.problem.class_count(), "GPU type"), counted(placed.requests, "request"),
                              last.name, last.in_flight));
  if (placed.objective == Objective::kLatency) {
    line("latency", fmt::format("{} a round, {} at best ({} above)", people_time(solution.value),
                                people_time(solution.bound), people_percent(solution.gap())));
  } else {
    line("period", fmt::format("{}, no placement is below {} ({} above)", people_time(solution.value),
                               people_time(solution.bound), people_percent(solution.gap())));
  }
  line("simulated",
       fmt::format("{} from round to round, {} requests/s through one", people_time(placed.found.simulated),
                   rate_text(placed.requests / placed.found.simulated)));
  return out + '\n' + gpus_table(placed, terminal) + '\n' + patterns_table(placed, terminal);
}

Json placement_document(const PlacedKernels& placed) {
  const Solution& solution = placed.found.solution;
  return {{"schema", "tangram.disaggregation/1"},
          {"cluster", {{"name", placed.fleet}, {"digest", placed.fleet_digest}}},
          {"kernels", placed.graphs},
          {"objective", name_of(placed.objective)},
          {"requests_per_micro_batch", placed.requests},
          {"predicted",
           {{"period_s", solution.usage.period},
            {"bound_s", solution.bound},
            {"gap", solution.gap()},
            {"simulated_period_s", placed.found.simulated}}},
          {"phases", phases_json(placed.problem, solution.usage)},
          {"gpus", gpus_json(placed.problem, solution.usage)},
          {"links", dispatch::links_json(placed.schedule)},
          {"patterns", patterns_json(placed)},
          {"segments", dispatch::segments_json(placed.schedule)},
          {"copies", dispatch::copies_json(placed.schedule)}};
}

std::string comparison_for_people(const Comparison& comparison, const Terminal& terminal) {
  Table table({{"arm"},
               {"requests/s", true},
               {"simulated", true},
               {"at most", true},
               {"errors", true},
               {"micro-batches", true},
               {"in memory", true},
               {"token", true}});
  for (const Arm& arm : comparison.arms) {
    const std::string name(to_string(arm.kind));
    const Style style = arm.kind == comparison.decision.arm && arm.fits ? Style::kBold : Style::kPlain;
    if (!arm.fits) {
      table.add({{name, style}, {"does not fit"}, {""}, {""}, {""}, {""}, {""}, {""}});
      continue;
    }
    table.add({{name, style},
               {rate_text(arm.rate)},
               {rate_text(arm.simulated)},
               {rate_text(arm.bound)},
               {rate_text(arm.low) + "-" + rate_text(arm.high)},
               {fmt::format("{} x {}", arm.in_flight, arm.requests)},
               {thousands(arm.requests_in_memory)},
               {people_time(arm.token_seconds)}});
  }
  const Decision& decision = comparison.decision;
  std::string out = table.render(terminal) + '\n';
  out +=
      labelled(terminal, "run", std::string(decision.rule == Rule::kNothingFits ? "nothing" : to_string(decision.arm)));
  return out + labelled(terminal, "because", decision.why);
}

Json comparison_document(const Comparison& comparison) {
  Json arms = Json::array();
  for (const Arm& arm : comparison.arms) {
    Json added{{"arm", to_string(arm.kind)}, {"fits", arm.fits}};
    if (arm.fits) {
      added.update({{"rate", arm.rate},
                    {"bound", arm.bound},
                    {"simulated", arm.simulated},
                    {"low", arm.low},
                    {"high", arm.high},
                    {"requests", arm.requests},
                    {"in_flight", arm.in_flight},
                    {"requests_in_memory", arm.requests_in_memory},
                    {"token_s", arm.token_seconds},
                    {"memory", arm.memory}});
      Json shares = Json::array();
      for (const Share& share : arm.placements) shares.push_back(share.share);
      added["shares"] = std::move(shares);
    }
    arms.push_back(std::move(added));
  }
  const Decision& decision = comparison.decision;
  Json decided{{"rule", to_string(decision.rule)}, {"why", decision.why}};
  if (decision.rule != Rule::kNothingFits) {
    decided.update({{"arm", to_string(decision.arm)}, {"simpler", to_string(decision.simpler)}});
    if (std::isfinite(decision.number)) decided["number"] = decision.number;
  }
  return {{"schema", "tangram.disaggregation_comparison/1"}, {"arms", std::move(arms)}, {"decision", decided}};
}

std::string in_flight_for_people(const std::vector<InFlight>& rows, int requests, const Terminal& terminal) {
  Table table({{"in flight", true},
               {"period", true},
               {"simulated", true},
               {"requests/s", true},
               {"of what resources allow", true}});
  for (const InFlight& row : rows) {
    table.add({{std::to_string(row.in_flight), Style::kBold},
               {people_time(row.period)},
               {people_time(row.simulated)},
               {rate_text(requests / row.simulated)},
               {people_percent(row.period / row.simulated)}});
  }
  return table.render(terminal);
}

Json in_flight_document(const std::vector<InFlight>& rows, int requests) {
  Json simulated = Json::array();
  for (const InFlight& row : rows) {
    simulated.push_back(
        {{"in_flight", row.in_flight}, {"period_s", row.period}, {"simulated_period_s", row.simulated}});
  }
  return {{"schema", "tangram.disaggregation_simulation/1"},
          {"requests_per_micro_batch", requests},
          {"in_flight", std::move(simulated)}};
}

}  // namespace tangram::app
