#include "tangram/plan/launch_order.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "tangram/base/at.hpp"

namespace tangram::plan {

namespace {

LaunchOrder with_hosts(const LaunchPlan& plan, std::vector<int> plan_rank) {
  LaunchOrder order;
  std::map<std::string, std::size_t> position;
  for (std::size_t r = 0; r < plan_rank.size(); ++r) {
    const Rank& rank = at(plan.ranks, plan_rank[r]);
    const auto [entry, fresh] = position.try_emplace(rank.host, order.hosts.size());
    if (fresh) order.hosts.push_back({rank.host, {}, {}});
    HostRanks& host = order.hosts[entry->second];
    host.gpus.push_back(rank.gpu);
    host.ranks.push_back(static_cast<int>(r));
  }
  order.plan_rank = std::move(plan_rank);
  return order;
}

std::vector<int> identity(std::size_t size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Position of every stage in its pipeline, from the first.
std::vector<int> depths(const LaunchPlan& plan) {
  std::vector<int> depth(plan.stages.size(), 0);
  for (const Pipeline& pipeline : plan.pipelines) {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      at(depth, pipeline.stages[s]) = static_cast<int>(s);
    }
  }
  return depth;
}

}  // namespace

bool LaunchOrder::host_by_host() const {
  return std::ranges::all_of(hosts, [](const HostRanks& host) {
    return host.ranks.back() - host.ranks.front() + 1 == static_cast<int>(host.ranks.size());
  });
}

LaunchOrder plan_order(const LaunchPlan& plan) { return with_hosts(plan, identity(plan.ranks.size())); }

LaunchOrder stage_order(const LaunchPlan& plan) {
  const std::vector<int> depth = depths(plan);
  std::vector<int> order = identity(plan.ranks.size());
  std::ranges::sort(order, {}, [&](int r) {
    const Rank& rank = at(plan.ranks, r);
    return std::tuple(at(depth, rank.stage), rank.replica, rank.rank);
  });
  return with_hosts(plan, std::move(order));
}

}  // namespace tangram::plan
