#include "schedules.hpp"

#include <string>

#include "random.hpp"

namespace tangram::testing {

std::vector<dispatch::Device> devices(int count) {
  std::vector<dispatch::Device> result;
  for (int d = 0; d < count; ++d) result.push_back({std::string(1, static_cast<char>('A' + d)), 1});
  return result;
}

std::vector<int> random_placement(const kernels::KernelGraph& graph, int devices, std::mt19937_64& random) {
  std::vector<int> on;
  for (int k = 0; k < graph.kernel_count(); ++k) on.push_back(pick(random, 0, devices - 1));
  return on;
}

std::vector<dispatch::Schedule> without_each_wait(const dispatch::Schedule& schedule) {
  std::vector<dispatch::Schedule> mutants;
  for (std::size_t s = 0; s < schedule.segments.size(); ++s) {
    for (std::size_t w = 0; w < schedule.segments[s].waits.size(); ++w) {
      auto& waits = mutants.emplace_back(schedule).segments[s].waits;
      waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
    }
  }
  return mutants;
}

std::vector<dispatch::Schedule> without_each_copy(const dispatch::Schedule& schedule) {
  std::vector<dispatch::Schedule> mutants;
  for (int c = 0; c < static_cast<int>(schedule.copies.size()); ++c) {
    for (dispatch::Segment& segment : mutants.emplace_back(schedule).segments) {
      std::erase(segment.takes, c);
      std::erase(segment.sends, c);
    }
  }
  return mutants;
}

}  // namespace tangram::testing
