// Placements at random, and schedules with something missing.
#pragma once

#include <random>
#include <vector>

#include "tangram/dispatch/schedule.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::testing {

/// "A", "B", ...
[[nodiscard]] std::vector<dispatch::Device> devices(int count);
[[nodiscard]] std::vector<int> random_placement(const kernels::KernelGraph& graph, int devices,
                                                std::mt19937_64& random);

/// One schedule without each wait, and one without each copy.
[[nodiscard]] std::vector<dispatch::Schedule> without_each_wait(const dispatch::Schedule& schedule);
[[nodiscard]] std::vector<dispatch::Schedule> without_each_copy(const dispatch::Schedule& schedule);

}  // namespace tangram::testing
