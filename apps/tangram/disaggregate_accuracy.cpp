#include "disaggregate_accuracy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "inputs.hpp"
#include "table.hpp"
#include "tangram/disaggregate/measured.hpp"
#include "tangram/io/file.hpp"
#include "tangram/kernels/operator_table.hpp"
#include "tangram/kernels/synth.hpp"

namespace tangram::app {

namespace {

using disaggregate::ArmKind;
using disaggregate::MeasuredArm;
using disaggregate::ServingCase;
using Json = nlohmann::ordered_json;

/// A row with its prediction, tokens a second, and with both over those of the fastest GPU alone (0: none is measured).
struct PredictedArm {
  const MeasuredArm* of = nullptr;
  double predicted = 0;
  double measured_gain = 0;
  double predicted_gain = 0;

  [[nodiscard]] double error() const { return predicted / of->measured - 1; }
  [[nodiscard]] double gain_error() const { return predicted_gain / measured_gain - 1; }
  [[nodiscard]] bool is_alone() const { return of->kind == ArmKind::kOneGpu; }
};

struct PredictedCase {
  const ServingCase* of = nullptr;
  std::vector<PredictedArm> arms;
};

/// A file that is beside the measurements, else one of that name.
std::string beside(const std::string& measurements, const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(measurements).parent_path() / name;
  return std::filesystem::exists(path) ? path.string() : name;
}

Expected<kernels::KernelGraph> synthesized(const ServingCase& of, const model::Model& model,
                                           const cluster::Fleet& fleet) {
  std::vector<cluster::GpuType> gpus;
  std::set<std::string> names;
  for (const cluster::Node& node : fleet.nodes) {
    for (const cluster::DeviceGroup& group : node.groups) {
      if (names.insert(group.device.name).second) gpus.push_back(group.device);
    }
  }
  // Requests of decode are, in the mean, half-way through their answers.
  const std::array loads{kernels::PhaseLoad{kernels::PhaseKind::kPrefill, of.requests, of.prompt},
                         kernels::PhaseLoad{kernels::PhaseKind::kDecode, of.requests, of.prompt + of.generated / 2}};
  return kernels::synthesize(model, loads, gpus, kernels::KernelCosts(kernels::shipped_tables()));
}

Expected<kernels::KernelGraph> graph_of(const ServingCase& of, const std::string& file, const cluster::Fleet& fleet) {
  if (!of.graph.empty()) {
    auto recorded = load_kernel_graph(beside(file, of.graph));
    if (!recorded) return fail(std::move(recorded.error()));
    return std::move(recorded->graph);
  }
  const auto model = load_model(beside(file, of.model));
  if (!model) return fail(model.error());
  return synthesized(of, *model, fleet);
}

/// What is wrong with a case as a whole.
Diagnostics of_case(Diagnostics mistakes, const ServingCase& of, const std::string& file) {
  for (Diagnostic& mistake : mistakes) {
    if (mistake.where.file.empty()) mistake.where.file = file;
    mistake.message = fmt::format("{}: {}", of.name, mistake.message);
  }
  return mistakes;
}

/// Beside the fastest GPU that was measured alone.
void compare_with_one_gpu(std::vector<PredictedArm>& arms) {
  const auto speed = [](const PredictedArm& arm) { return arm.is_alone() ? arm.of->measured : 0; };
  const auto alone = std::ranges::max_element(arms, {}, speed);
  if (alone == arms.end() || speed(*alone) <= 0 || alone->predicted <= 0) return;
  const double measured = alone->of->measured;
  const double predicted = alone->predicted;
  for (PredictedArm& arm : arms) {
    arm.measured_gain = arm.of->measured / measured;
    arm.predicted_gain = arm.predicted / predicted;
  }
}

Expected<PredictedCase> predicted_case(const ServingCase& of, const std::string& file) {
  const auto fleet = load_fleet(beside(file, of.cluster));
  if (!fleet) return fail(fleet.error());
  const auto graph = graph_of(of, file, *fleet);
  if (!graph) return fail(graph.error());
  auto problem = disaggregate::problem_of(*fleet, *graph, of.deployment);
  if (!problem) return fail(of_case(std::move(problem.error()), of, file));
  const disaggregate::Batch batch{disaggregate::requests_of(*graph), std::move(*problem)};
  PredictedCase result{&of, {}};
  for (const MeasuredArm& arm : of.arms) {
    const auto tokens = disaggregate::predicted_tokens(batch, arm);
    if (!tokens) return fail(of_case(tokens.error(), of, file));
    result.arms.push_back({&arm, *tokens});
  }
  compare_with_one_gpu(result.arms);
  return result;
}

std::string name_of(const MeasuredArm& arm) {
  std::string name(to_string(arm.kind));
  if (arm.kind == ArmKind::kOneGpu) name = arm.gpu;
  return arm.in_flight > 1 ? fmt::format("{}, {} in flight", name, arm.in_flight) : name;
}

std::string tokens_text(double value) { return thousands(std::llround(value)); }

std::string case_for_people(const PredictedCase& of, const Terminal& terminal) {
  Table table({{"tokens/s"},
               {"measured", true},
               {"predicted", true},
               {"error", true},
               {"over one GPU", true},
               {"predicted", true},
               {"error", true},
               {"published", true}});
  for (const PredictedArm& arm : of.arms) {
    const bool compared = arm.measured_gain > 0 && !arm.is_alone();
    table.add({{name_of(*arm.of)},
               {tokens_text(arm.of->measured)},
               {arm.predicted > 0 ? tokens_text(arm.predicted) : "cannot run"},
               {signed_percent(arm.error())},
               {compared ? fmt::format("{:.2f}", arm.measured_gain) : ""},
               {compared ? fmt::format("{:.2f}", arm.predicted_gain) : ""},
               {compared ? signed_percent(arm.gain_error()) : ""},
               {arm.of->published > 0 ? tokens_text(arm.of->published) : ""}});
  }
  return fmt::format("{}: {} tokens in, {} out, micro-batches of {}\n{}\n", of.of->name, thousands(of.of->prompt),
                     thousands(of.of->generated), thousands(of.of->requests), table.render(terminal));
}

struct Means {
  double error = 0;
  double gain_error = 0;
};

Means means_of(const std::vector<PredictedCase>& cases) {
  Means sums;
  double rows = 0;
  double gains = 0;
  for (const PredictedCase& of : cases) {
    for (const PredictedArm& arm : of.arms) {
      sums.error += std::abs(arm.error());
      rows += 1;
      if (arm.measured_gain <= 0 || arm.is_alone()) continue;
      sums.gain_error += std::abs(arm.gain_error());
      gains += 1;
    }
  }
  return {sums.error / std::max(rows, 1.0), sums.gain_error / std::max(gains, 1.0)};
}

std::string for_people(const std::vector<PredictedCase>& cases, const Terminal& terminal) {
  std::string out;
  for (const PredictedCase& of : cases) out += case_for_people(of, terminal);
  const Means means = means_of(cases);
  return out +
         fmt::format("mean error {:.1f} %, of ratios to one GPU {:.1f} %\n", 100 * means.error, 100 * means.gain_error);
}

Json arm_document(const PredictedArm& arm) {
  Json row{{"arm", to_string(arm.of->kind)}};
  if (!arm.of->gpu.empty()) row["gpu"] = arm.of->gpu;
  row.update({{"in_flight", arm.of->in_flight},
              {"tokens_s", arm.of->measured},
              {"predicted_tokens_s", arm.predicted},
              {"error", arm.error()}});
  if (arm.of->published > 0) row["published_tokens_s"] = arm.of->published;
  if (arm.measured_gain > 0) {
    row.update({{"over_one_gpu", arm.measured_gain}, {"predicted_over_one_gpu", arm.predicted_gain}});
  }
  return row;
}

Json document(const disaggregate::ServingMeasurements& measurements, const std::vector<PredictedCase>& cases) {
  Json all = Json::array();
  for (const PredictedCase& of : cases) {
    Json rows = Json::array();
    for (const PredictedArm& arm : of.arms) rows.push_back(arm_document(arm));
    all.push_back({{"name", of.of->name}, {"rows", std::move(rows)}});
  }
  const Means means = means_of(cases);
  return {{"schema", "tangram.serving_accuracy/1"},
          {"status", "ok"},
          {"source", measurements.source},
          {"cases", std::move(all)},
          {"mean_error", means.error},
          {"mean_error_over_one_gpu", means.gain_error}};
}

}  // namespace

ExitCode serving_accuracy(const std::string& file, const Context& context) {
  auto text = io::read_file(file);
  if (!text) return report(context.terminal, context.json, text.error());
  const auto measurements = disaggregate::read_serving_measurements(std::move(*text), file);
  if (!measurements) return report(context.terminal, context.json, measurements.error());
  std::vector<PredictedCase> cases;
  for (const ServingCase& of : measurements->cases) {
    auto predicted = predicted_case(of, file);
    if (!predicted) return report(context.terminal, context.json, predicted.error());
    cases.push_back(std::move(*predicted));
  }
  return print_result(context, for_people(cases, context.terminal), document(*measurements, cases));
}

}  // namespace tangram::app
