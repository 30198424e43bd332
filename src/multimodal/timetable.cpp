#include "tangram/multimodal/timetable.hpp"

#include <algorithm>

#include "blocking_run.hpp"
#include "overlapped_run.hpp"
#include "pass_times.hpp"
#include "tangram/base/at.hpp"

namespace tangram::multimodal {

namespace {

template <class Run>
std::optional<std::vector<std::int64_t>> ends_under(const StageGraph& graph, std::span<const std::int64_t> in_flight,
                                                    std::int64_t start, const Loads& loads) {
  Run run(graph, in_flight, start, PassTimes(graph, loads));
  if (!run.run()) return std::nullopt;
  return run.ends();
}

}  // namespace

std::optional<std::vector<std::int64_t>> ends_of(const StageGraph& graph, std::span<const std::int64_t> in_flight,
                                                 std::int64_t start, const Loads& loads) {
  return graph.blocking_transfers ? ends_under<BlockingRun>(graph, in_flight, start, loads)
                                  : ends_under<OverlappedRun>(graph, in_flight, start, loads);
}

std::optional<std::int64_t> timetable(const StageGraph& graph, std::span<const std::int64_t> in_flight,
                                      const Loads& loads) {
  const auto ends = ends_of(graph, in_flight, 0, loads);
  if (!ends) return std::nullopt;
  std::int64_t synchronised = 0;
  std::int64_t step = 0;
  for (std::size_t s = 0; s < ends->size(); ++s) {
    const Candidate& plan = graph.stages[s].plan;
    synchronised = std::max(synchronised, (*ends)[s] + plan.A - plan.T);
    step = std::max(step, plan.o);
  }
  return synchronised + step;
}

}  // namespace tangram::multimodal
