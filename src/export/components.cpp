#include "components.hpp"

#include <algorithm>
#include <array>

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
  struct Row {
    Format format;
    Expected<Export> (*files)(const plan::LaunchPlan&);
    Launch (*launch)(const plan::LaunchPlan&);
    const char* arguments;
  };
  static constexpr std::array kRows{
      Row{Format::kGeneric, export_generic, generic_launch, "PROGRAM.py"},
      Row{Format::kTorch, export_torch, torch_launch, "[OPTION...]"},
      Row{Format::kMegatron, export_megatron, megatron_launch,
          "[ARGUMENT...], with MEGATRON_LM set to the folder of pretrain_gpt.py"},
  };
  const Row& row = *std::ranges::find(kRows, program, &Row::format);
  auto files = row.files(plan);
  if (!files) return fail(std::move(files.error()));
  return Wrapped{std::move(*files), row.launch(plan), row.arguments};
}

}  // namespace tangram::exporting
