#include "objective_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "output.hpp"
#include "tangram/planner/plan.hpp"

namespace tangram::app {

namespace {

using objective::Objective;

/// The name was checked where it was written.
Objective objective_of(const Settings& settings) {
  return std::ranges::find(objective::objective_names(), settings.text("objective"), &objective::ObjectiveName::name)
      ->objective;
}

}  // namespace

std::optional<Diagnostics> request_conflict(const Settings& settings) {
  if (objective_of(settings) != Objective::kThroughput && settings.share("accept-gap") > 0) {
    return usage_mistake("bad-value",
                         "--accept-gap is a share of the iteration time: it goes with --objective throughput",
                         "limit the effort of other searches with --time-budget");
  }
  // Bounds on money and GPUs, and those of trade-offs, are of 1F1B.
  const bool by_time = objective_of(settings) == Objective::kThroughput && !settings.count("pareto");
  if (!by_time && settings.text("schedule") == "zero-bubble") {
    return usage_mistake("bad-value",
                         "--schedule zero-bubble is for the fastest plan: it goes with --objective throughput alone",
                         "leave out --objective and --pareto, or --schedule");
  }
  if (objective_of(settings) != Objective::kGpus) return std::nullopt;
  if (!settings.amount("min-throughput")) {
    return usage_mistake("no-throughput", "--objective gpus asks for the fewest GPUs that reach a throughput",
                         "say which with --min-throughput TOKENS_PER_SECOND");
  }
  if (settings.amount("budget")) {
    return usage_mistake("two-limits", "--objective gpus takes no --budget",
                         "ask for the least money with --objective cost, or leave out --budget");
  }
  return std::nullopt;
}

Expected<objective::Request> request_of_settings(const Settings& settings, const cluster::Fleet& fleet,
                                                 const model::Model& model) {
  objective::Request request;
  request.objective = objective_of(settings);
  if (const auto budget = settings.amount("budget"))
    request.budget = compose::MicroDollarsPerHour(std::llround(*budget * 1e6));
  if (auto checked = planner::check_prices(request, fleet); !checked) return fail(std::move(checked.error()));
  if (const auto least = settings.amount("min-throughput")) {
    const double tokens = static_cast<double>(model.job.global_batch) * static_cast<double>(model.job.sequence_length);
    request.longest_iteration =
        Nanoseconds(static_cast<std::int64_t>(std::floor(std::min(tokens / *least * 1e9, 9e18))));
  }
  return request;
}

}  // namespace tangram::app
