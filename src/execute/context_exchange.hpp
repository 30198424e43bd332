// Exchanges over cp of positions for heads. Goes in: matrices of the rank's own positions, with the columns of all
// heads that its tp rank has. Comes out: all positions of the rank's share of the columns; and back.
#pragma once

#include <vector>

#include "matrix.hpp"
#include "place.hpp"
#include "task.hpp"

namespace tangram::execute {

/// Columns that each rank of cp works on. Where heads are repeated, several ranks have the same.
using ColumnShares = std::vector<Range>;

/// Equal ones of so many columns, one behind the other.
[[nodiscard]] ColumnShares equal_columns(const Place& place, int columns);

/// `shares`: of each matrix.
[[nodiscard]] Task<std::vector<Matrix>> to_heads(const Place& place, std::vector<Matrix> all,
                                                 std::vector<ColumnShares> shares);

/// What several ranks have of a column is summed up: they are gradients of repeated heads.
[[nodiscard]] Task<std::vector<Matrix>> to_positions(const Place& place, std::vector<Matrix> all,
                                                     std::vector<ColumnShares> shares);

}  // namespace tangram::execute
