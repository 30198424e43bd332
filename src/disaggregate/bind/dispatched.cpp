#include "tangram/disaggregate/dispatched.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"
#include "tangram/dispatch/lower.hpp"
#include "tangram/kernels/unroll.hpp"

namespace tangram::disaggregate {

namespace {

/// By kernel of the graph: where the kernel of the problem runs that it is, or is merged into ("a+b").
std::vector<int> classes_of_kernels(const Problem& problem, const Placement& placement,
                                    const kernels::KernelGraph& unrolled) {
  std::vector<int> on;
  for (int k = 0; k < problem.kernel_count(); ++k) {
    const std::string& name = at(problem.kernels, k).name;
    std::string joined;
    while (joined != name) {
      TANGRAM_ASSERT(on.size() < unrolled.kernels.size() && joined.size() < name.size());
      if (!joined.empty()) joined += '+';
      joined += at(unrolled.kernels, on.size()).id;
      on.push_back(at(placement, k));
    }
  }
  return on;
}

double seconds_on(const kernels::KernelGraph& graph, int kernel, const std::string& gpu) {
  const auto found = std::ranges::find(graph.gpus, gpu);
  const auto& time = at(at(graph.kernels, kernel).times, found - graph.gpus.begin());
  return time ? to_seconds(time->time) : 0;
}

void add_seconds(const Problem& problem, const kernels::KernelGraph& unrolled, dispatch::Schedule& schedule) {
  std::unordered_map<std::string, int> named;
  for (int k = 0; k < unrolled.kernel_count(); ++k) named.emplace(at(unrolled.kernels, k).id, k);
  for (dispatch::Segment& segment : schedule.segments) {
    const std::string& gpu = at(schedule.devices, segment.device).name;
    for (const std::string& kernel : segment.kernels) segment.seconds += seconds_on(unrolled, named.at(kernel), gpu);
  }
  for (dispatch::Copy& copy : schedule.copies) {
    const Link& link = problem.links(copy.from, copy.to);
    copy.seconds = link.seconds(static_cast<double>(copy.bytes()));
    copy.gpu_seconds = link.gpu_seconds;
  }
}

}  // namespace

dispatch::Schedule dispatched(const Problem& problem, const Placement& placement, const kernels::KernelGraph& graph) {
  const kernels::KernelGraph unrolled = kernels::unrolled(graph);
  std::vector<dispatch::Device> devices;
  for (const GpuClass& c : problem.classes) devices.push_back({c.name, c.count});
  const std::vector<int> on = classes_of_kernels(problem, placement, unrolled);
  dispatch::Schedule schedule = dispatch::lowered(unrolled, on, std::move(devices));
  for (std::size_t f = 0; f < problem.phases.size(); ++f) {
    schedule.phases[f] = {problem.phases[f].name, problem.phases[f].passes, problem.phases[f].in_flight};
  }
  for (int from = 0; from < problem.class_count(); ++from) {
    for (int to = 0; to < problem.class_count(); ++to) {
      const int lanes = problem.links(from, to).lanes;
      if (from != to && lanes > 1) schedule.links.push_back({from, to, lanes});
    }
  }
  add_seconds(problem, unrolled, schedule);
  return schedule;
}

}  // namespace tangram::disaggregate
