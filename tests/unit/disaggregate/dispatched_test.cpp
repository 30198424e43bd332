// Placements as schedules: what the planner counts is what streams do.
#include "tangram/disaggregate/dispatched.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/disaggregate/bind.hpp"
#include "tangram/disaggregate/timeline.hpp"
#include "tangram/dispatch/emulate.hpp"
#include "tangram/dispatch/timeline.hpp"
#include "tangram/io/file.hpp"
#include "tangram/kernels/synth.hpp"
#include "tangram/kernels/unroll.hpp"

using namespace tangram;
using namespace tangram::disaggregate;

namespace {

std::string text_of_file(const std::string& name) {
  auto text = io::read_file(TANGRAM_SOURCE_DIR "/configs/" + name);
  REQUIRE(text);
  return *std::move(text);
}

kernels::KernelGraph llama(const std::vector<kernels::PhaseLoad>& loads) {
  const auto model = model::read_any_model(text_of_file("models/llama-3-8b.yaml"),
                                           TANGRAM_SOURCE_DIR "/configs/models/llama-3-8b.yaml");
  if (!model) FAIL(render(model.error()));
  std::vector<cluster::GpuType> gpus;
  for (const std::string name : {"A100-80GB-SXM", "L40S"}) {
    gpus.push_back(*std::ranges::find(cluster::catalogue(), name, &cluster::GpuType::name));
  }
  static const kernels::KernelCosts costs(kernels::shipped_tables());
  const auto graph = kernels::synthesize(*model, loads, gpus, costs);
  REQUIRE(graph);
  return *graph;
}

Problem placed_on_fleet(const kernels::KernelGraph& graph) {
  const auto fleet = cluster::read_fleet(text_of_file("clusters/a100-l40s.json"), "a100-l40s.json");
  REQUIRE(fleet);
  const auto problem = problem_of(*fleet, graph, {});
  REQUIRE(problem);
  return *problem;
}

std::size_t messages_sent(const Problem& problem, const Placement& placement) {
  std::size_t count = 0;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.kind != BufferKind::kMessage) continue;
    std::vector<int> to;
    for (const int reader : buffer.readers) to.push_back(at(placement, reader));
    std::ranges::sort(to);
    to.erase(std::ranges::unique(to).begin(), to.end());
    count +=
        static_cast<std::size_t>(std::ranges::count_if(to, [&](int c) { return c != at(placement, buffer.writer); }));
  }
  return count;
}

}  // namespace

TEST_CASE("disaggregate dispatched: messages, periods and numbers are those of the planner") {
  const std::vector<std::vector<kernels::PhaseLoad>> cases{
      {{kernels::PhaseKind::kDecode, 32, 2048}},
      {{kernels::PhaseKind::kPrefill, 1, 1024}, {kernels::PhaseKind::kDecode, 32, 1024}}};
  for (const auto& loads : cases) {
    const auto graph = llama(loads);
    const Problem problem = placed_on_fleet(graph);
    const auto found = solve_simulated(problem);
    REQUIRE(found.solution.found);
    const Placement& placement = found.solution.placement;
    const dispatch::Schedule schedule = dispatched(problem, placement, graph);
    CHECK(schedule.copies.size() == messages_sent(problem, placement));
    const dispatch::Periods periods = dispatch::periods_of(schedule);
    CHECK(periods.allowed == Approx(usage_of(problem, placement).period).epsilon(1e-9));
    CHECK(periods.simulated ==
          Approx(std::max(simulated_period(problem, {{1, placement}}), periods.allowed)).epsilon(1e-9));
    const auto result = dispatch::emulate(kernels::unrolled(graph), schedule, {.timings = 5});
    REQUIRE(result);
    CHECK_FALSE(result->finding);
  }
}
