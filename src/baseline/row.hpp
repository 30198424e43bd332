// GPUs in a row, as runtimes number them: kind by kind, node by node. Goes in: how many GPUs a replica has, how many
// replicas a stage. Comes out: the stages' replicas, or nothing where a replica would have GPUs of two kinds.
#pragma once

#include <optional>
#include <vector>

#include "tangram/baseline/baseline.hpp"

namespace tangram::baseline {

/// Kinds in the order given.
[[nodiscard]] std::vector<int> row_of(const PlannerInput& input, const std::vector<int>& kinds);

/// `stages` stages of dp replicas of tp GPUs, one after the other.
[[nodiscard]] std::optional<std::vector<std::vector<Replica>>> uniform_replicas(const std::vector<int>& row, int stages,
                                                                                int dp, int tp, std::int64_t samples);

/// Divisors, ascending.
[[nodiscard]] std::vector<std::int64_t> divisors_of(std::int64_t value);

/// Best first by claim, at most `most`.
void keep_best(std::vector<Draft>& drafts, std::int64_t most);

}  // namespace tangram::baseline
