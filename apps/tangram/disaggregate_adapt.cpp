#include "disaggregate_adapt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "table.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/disaggregate/adapt.hpp"

namespace tangram::app {

namespace {

using namespace disaggregate;
using Json = nlohmann::ordered_json;

/// A rule of the monitor, and what came of it.
struct MonitorRow {
  MonitorRule rule;
  Adaptation result;
};

struct Adapted {
  std::vector<MonitorRow> rows;
  std::vector<Recovery> recoveries;
};

std::string_view mode_name(ServingMode mode) {
  constexpr std::array<std::string_view, kServingModeCount> kNames{"one GPU", "replicas", "prefill/decode"};
  return at(kNames, mode);
}

/// Bytes of the cache for one token, from what a decode step keeps.
double cache_bytes_per_token(const kernels::KernelGraph& graph, const kernels::Phase& decode) {
  double bytes = 0;
  for (const kernels::Buffer& buffer : graph.buffers) {
    if (buffer.kind == kernels::BufferKind::kKv) bytes += buffer.bytes.as_double() * static_cast<double>(buffer.copies);
  }
  return bytes / static_cast<double>(std::max<std::int64_t>(1, decode.requests * decode.context));
}

Expected<ServingModel> model_of(const AdaptTo& what) {
  std::optional<MeasuredStep> prefill;
  std::vector<MeasuredStep> decodes;
  double cache = 0;
  int most = 1;
  for (std::size_t g = 0; g < what.graphs.size(); ++g) {
    const kernels::KernelGraph& graph = what.graphs[g];
    for (int f = 0; f < static_cast<int>(graph.phases.size()); ++f) {
      const kernels::Phase& phase = at(graph.phases, f);
      const MeasuredStep step{&what.batches[g].problem, f, static_cast<int>(phase.requests),
                              static_cast<int>(phase.context), static_cast<double>(phase.tokens)};
      if (phase.name == "prefill") prefill = step;
      if (phase.name != "decode") continue;
      decodes.push_back(step);
      most = std::max(most, step.requests);
      cache = cache_bytes_per_token(graph, phase);
    }
  }
  if (!prefill || decodes.empty()) {
    return fail(problem(ErrorKind::kInput, "missing-phase",
                        "arrivals need a graph of prefill, and at least one of decode",
                        "tangram kernels synth MODEL --phase prefill, and --phase decode for several --requests"));
  }
  return serving_model(*prefill, decodes, cache, most);
}

Expected<Adapted> adapted(const AdaptTo& what) {
  const auto model = model_of(what);
  if (!model) return fail(model.error());
  Adapted result;
  for (const double window : {0.03, 0.3, 1.5}) {
    // No hysteresis, 0.8 of the threshold, and no way back before what is under way has drained: two seconds are 129
    // tokens, the median of conversations, at 15 ms.
    for (const auto& [hysteresis, stay] : {std::pair(1.0, 0.0), std::pair(0.8, 0.0), std::pair(0.8, 2.0)}) {
      MonitorRule rule;
      rule.window = window;
      rule.down = hysteresis * rule.up;
      rule.least_stay = stay;
      result.rows.push_back({rule, judge(what.arrivals, *model, rule)});
    }
  }
  constexpr int kDraws = 5;
  const auto decode = std::ranges::find_if(what.graphs, [](const kernels::KernelGraph& graph) {
    return std::ranges::find(graph.phases, "decode", &kernels::Phase::name) != graph.phases.end();
  });
  const Problem& placed = what.batches[static_cast<std::size_t>(decode - what.graphs.begin())].problem;
  for (const double noise : {0.05, 0.1, 0.2}) {
    result.recoveries.push_back(recovery_from(placed, noise, kDraws, what.seed));
  }
  return result;
}

std::string loss_text(double value, double over) { return fmt::format("{:+.1f} %", 100 * (value / over - 1)); }

std::string adapted_for_people(const Adapted& adapted, std::size_t requests, const Terminal& terminal) {
  const Adaptation& any = adapted.rows.front().result;
  std::string out = labelled(terminal, "requests",
                             fmt::format("{}, mean time per token:", thousands(static_cast<std::int64_t>(requests))));
  for (int m = 0; m < kServingModeCount; ++m) {
    const auto mode = static_cast<ServingMode>(m);
    out += labelled(terminal, "",
                    fmt::format("{:<15}{}{}", mode_name(mode), people_time(at(any.statics, m)),
                                mode == any.best ? ", the best static mode" : ""));
  }
  Table table({{"window", true},
               {"hysteresis", true},
               {"stay", true},
               {"monitor", true},
               {"over best static", true},
               {"oracle", true},
               {"over oracle", true},
               {"switches", true}});
  for (const MonitorRow& row : adapted.rows) {
    const Adaptation& result = row.result;
    table.add({{people_time(row.rule.window), Style::kBold},
               {fmt::format("{:.1f}", row.rule.down / row.rule.up)},
               {row.rule.least_stay > 0 ? people_time(row.rule.least_stay) : "-"},
               {people_time(result.monitor)},
               {loss_text(result.monitor, at(result.statics, result.best))},
               {people_time(result.oracle)},
               {loss_text(result.monitor, result.oracle)},
               {thousands(result.switches)}});
  }
  Table times({{"times off by", true}, {"period lost", true}, {"after re-balancing", true}});
  for (const Recovery& r : adapted.recoveries) {
    times.add({{people_percent(r.noise), Style::kBold}, {people_percent(r.lost)}, {people_percent(r.left)}});
  }
  return out + '\n' + table.render(terminal) + '\n' + times.render(terminal);
}

Json adapted_document(const Adapted& adapted, std::size_t requests) {
  const Adaptation& any = adapted.rows.front().result;
  Json statics = Json::array();
  for (int m = 0; m < kServingModeCount; ++m) {
    statics.push_back({{"mode", mode_name(static_cast<ServingMode>(m))}, {"token_s", at(any.statics, m)}});
  }
  Json monitors = Json::array();
  for (const MonitorRow& row : adapted.rows) {
    monitors.push_back({{"window_s", row.rule.window},
                        {"up", row.rule.up},
                        {"down", row.rule.down},
                        {"least_stay_s", row.rule.least_stay},
                        {"token_s", row.result.monitor},
                        {"oracle_token_s", row.result.oracle},
                        {"switches", row.result.switches}});
  }
  Json recoveries = Json::array();
  for (const Recovery& r : adapted.recoveries) {
    recoveries.push_back({{"noise", r.noise}, {"lost", r.lost}, {"left", r.left}});
  }
  return {{"schema", "tangram.disaggregation_adaptation/1"},
          {"requests", requests},
          {"static", std::move(statics)},
          {"best_static", mode_name(any.best)},
          {"monitor", std::move(monitors)},
          {"rebalance", std::move(recoveries)}};
}

}  // namespace

ExitCode adapt_to(const AdaptTo& what, const Context& context) {
  const auto result = adapted(what);
  if (!result) return report(context.terminal, context.json, result.error());
  const std::size_t requests = what.arrivals.size();
  return print_result(context, adapted_for_people(*result, requests, context.terminal),
                      adapted_document(*result, requests));
}

}  // namespace tangram::app
