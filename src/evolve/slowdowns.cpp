// Why a plan takes longer than it was written to.
#include <algorithm>
#include <array>
#include <map>

#include "fleet_gpus.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/evolve/refit.hpp"

namespace tangram::evolve {

namespace {

constexpr double kAsFast = 0.97;  // of the best host of a part: no reason to name it

using Speeds = std::array<double, 4>;

/// Products, memory, the link inside and the network: more is better.
Speeds speeds_of(const cluster::Node& node, const cluster::DeviceGroup& group, DType precision) {
  return {cost::matrix_peak(group.device, precision).value() * group.device.compute.gemm_efficiency,
          group.device.memory_bandwidth.value(), group.link.bandwidth.value(), node.network.bandwidth.value()};
}

/// Hosts of a stage that are slower in something than the best of their part.
std::vector<std::string> laggards(const plan::LaunchPlan& plan, const plan::Stage& stage, const cluster::Fleet& fleet,
                                  const FleetGpus& gpus) {
  std::vector<std::string> names;
  for (const plan::Part& part : stage.parts) {
    std::map<std::string, Speeds> hosts;
    Speeds best{};
    for (int i = 0; i < part.strategy.degrees.gpus(); ++i) {
      const plan::Rank& rank = plan.rank(part, i);
      const auto where = gpus.find({rank.host, rank.gpu});
      if (!where) continue;
      const cluster::Node& node = fleet.nodes[where->node];
      const Speeds speeds = speeds_of(node, node.groups[where->group], plan.model.job.precision);
      hosts[rank.host] = speeds;
      for (std::size_t k = 0; k < best.size(); ++k) best[k] = std::max(best[k], speeds[k]);
    }
    for (const auto& [host, speeds] : hosts) {
      bool slow = false;
      for (std::size_t k = 0; k < best.size(); ++k) slow |= speeds[k] < kAsFast * best[k];
      if (slow) names.push_back(host);
    }
  }
  return names;
}

Nanoseconds pass_time(const plan::Stage& stage) {
  Nanoseconds longest(1);
  for (const plan::Part& part : stage.parts) {
    longest = std::max(longest, part.predicted.forward + part.predicted.backward);
  }
  return longest;
}

}  // namespace

std::vector<Slowdown> slowdowns(const plan::LaunchPlan& old, const plan::LaunchPlan& now, const cluster::Fleet& fleet,
                                double tolerance) {
  const FleetGpus gpus(fleet);
  std::vector<Slowdown> found;
  for (std::size_t s = 0; s < std::min(old.stages.size(), now.stages.size()); ++s) {
    const double factor = pass_time(now.stages[s]).as_double() / pass_time(old.stages[s]).as_double();
    if (factor <= 1 + tolerance) continue;
    found.push_back({static_cast<int>(s), factor, laggards(now, now.stages[s], fleet, gpus)});
  }
  std::ranges::stable_sort(found, std::greater<>(), &Slowdown::factor);
  return found;
}

}  // namespace tangram::evolve
