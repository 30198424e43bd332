#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/disaggregate/adapt.hpp"

namespace tangram::disaggregate {

namespace {

double seconds_of(const MeasuredStep& step, int gpu) {
  double sum = 0;
  for (const Kernel& kernel : step.problem->kernels) {
    if (kernel.phase == step.phase) sum += at(kernel.seconds, gpu);
  }
  return sum;
}

Diagnostics cannot(std::string code, std::string message, std::string hint) {
  return {problem(ErrorKind::kInput, std::move(code), std::move(message), std::move(hint))};
}

Expected<StepTable> table_of(std::span<const MeasuredStep> decodes, int gpu) {
  std::set<double> requests;
  std::set<double> contexts;
  for (const MeasuredStep& step : decodes) {
    requests.insert(step.requests);
    contexts.insert(step.context);
  }
  StepTable table{{requests.begin(), requests.end()}, {contexts.begin(), contexts.end()}, {}};
  table.seconds = Grid<double>(table.requests.size(), table.contexts.size(), -1);
  for (const MeasuredStep& step : decodes) {
    const auto row = std::ranges::find(table.requests, static_cast<double>(step.requests)) - table.requests.begin();
    const auto column = std::ranges::find(table.contexts, static_cast<double>(step.context)) - table.contexts.begin();
    table.seconds(row, column) = seconds_of(step, gpu);
  }
  for (std::size_t i = 0; i < table.requests.size(); ++i) {
    for (std::size_t j = 0; j < table.contexts.size(); ++j) {
      if (table.seconds(i, j) >= 0) continue;
      return fail(cannot("missing-step",
                         fmt::format("no graph decodes {} requests of {} tokens", table.requests[i], table.contexts[j]),
                         "give one for each number of requests with each context"));
    }
  }
  return table;
}

}  // namespace

Expected<ServingModel> serving_model(const MeasuredStep& prefill, std::span<const MeasuredStep> decodes,
                                     double cache_bytes_per_token, int most_requests) {
  const Problem& one = *decodes.front().problem;
  if (one.class_count() != 2) {
    return fail(cannot("gpu-types",
                       fmt::format("the fleet has {} GPU types, and arrivals are served by two", one.class_count()),
                       "take the others out: --drop gpu=NAME"));
  }
  const int fast = seconds_of(decodes.front(), 0) <= seconds_of(decodes.front(), 1) ? 0 : 1;
  ServingModel model;
  model.most_requests = most_requests;
  model.cache_seconds_per_token = cache_bytes_per_token / one.links(1 - fast, fast).bytes_per_second;
  for (int g = 0; g < 2; ++g) {
    const int gpu = g == 0 ? fast : 1 - fast;
    auto table = table_of(decodes, gpu);
    if (!table) return fail(std::move(table.error()));
    const double seconds = seconds_of(prefill, gpu);
    if (std::isinf(seconds) || std::ranges::any_of(table->seconds, [](double s) { return std::isinf(s); })) {
      return fail(cannot("missing-time", fmt::format("{} cannot run all kernels", at(one.classes, gpu).name),
                         "tangram kernels check names those without a time"));
    }
    at(model.gpus, g).prefill_seconds_per_token = seconds / prefill.tokens;
    at(model.gpus, g).decode = *std::move(table);
  }
  return model;
}

}  // namespace tangram::disaggregate
