#include "objective_settings.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "commands.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::app {

namespace {

using compose::Objective;

Objective objective_of(const Settings& settings) {
  for (const Objective objective : {Objective::kCost, Objective::kGpus}) {
    if (settings.text("objective") == to_string(objective)) return objective;
  }
  return Objective::kThroughput;
}

std::set<std::string> types_without_price(const cluster::Fleet& fleet) {
  std::set<std::string> names;
  for (const cluster::Node& node : fleet.nodes) {
    if (node.price_per_hour.value() > 0) continue;
    for (const cluster::DeviceGroup& group : node.groups) {
      if (!(group.device.price_per_hour.value() > 0)) names.insert(group.device.name);
    }
  }
  return names;
}

}  // namespace

std::optional<Diagnostics> wish_complaint(const Settings& settings) {
  if (objective_of(settings) != Objective::kThroughput && settings.share("accept-gap") > 0) {
    return usage_mistake("bad-value",
                         "--accept-gap is a share of the iteration time: it goes with --objective throughput",
                         "limit the effort of other searches with --time-budget");
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

Expected<compose::Wish> wish_of(const Settings& settings, const cluster::Fleet& fleet, const model::Model& model) {
  compose::Wish wish;
  wish.objective = objective_of(settings);
  const auto budget = settings.amount("budget");
  if (budget) wish.budget = compose::MicroDollarsPerHour(std::llround(*budget * 1e6));
  if (budget || wish.objective == Objective::kCost) {
    if (const auto names = types_without_price(fleet); !names.empty()) {
      return fail(
          problem(ErrorKind::kInput, "no-price", fmt::format("no price is known of {}", fmt::join(names, ", ")),
                  "give the nodes a \"price_per_hour_usd\" in the cluster file, or --set 'gpu(TYPE).price=DOLLARS'"));
    }
  }
  if (const auto least = settings.amount("min-throughput")) {
    const double tokens = static_cast<double>(model.job.global_batch) * static_cast<double>(model.job.sequence_length);
    wish.longest_iteration = Nanoseconds(static_cast<std::int64_t>(std::floor(std::min(tokens / *least * 1e9, 9e18))));
  }
  return wish;
}

}  // namespace tangram::app
