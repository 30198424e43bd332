#include "components.hpp"

#include "tangram/base/at.hpp"

namespace tangram::exporting {

std::vector<Component> components_of(const plan::LaunchPlan& plan, const plan::LaunchOrder& order) {
  std::vector<Component> components;
  for (std::size_t h = 0; h < order.hosts.size(); ++h) {
    const plan::HostRanks& host = order.hosts[h];
    const int first = at(order.plan_rank, host.ranks.front());
    const int island = at(plan.ranks, first).island;
    const auto gpus = static_cast<int>(host.ranks.size());
    if (components.empty() || components.back().island != island || components.back().gpus != gpus) {
      components.push_back({island, gpus, {}});
    }
    components.back().hosts.push_back(h);
  }
  return components;
}

Expected<Wrapped> wrapped(const plan::LaunchPlan& plan, Format program) {
  const bool megatron = program == Format::kMegatron;
  auto files = megatron ? export_megatron(plan) : export_generic(plan);
  if (!files) return fail(std::move(files.error()));
  return Wrapped{std::move(*files), megatron ? megatron_launch(plan) : generic_launch(plan)};
}

}  // namespace tangram::exporting
