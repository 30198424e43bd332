// Items in equal bins. Goes in: sizes and the bins. Comes out: which item is in which bin, if all of them fit.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tangram::plan {

/// Items of each bin, as indices into `sizes`; at most `bins` of them, none empty. Exact: items are packed wherever
/// that is possible. The bin with the largest item left is filled first, in the order of first fit decreasing, and
/// numbers of items left that do not fit into the bins left are remembered: exponential in the number of different
/// sizes, which are few.
[[nodiscard]] std::optional<std::vector<std::vector<std::size_t>>> pack_bins(const std::vector<int>& sizes, int bin,
                                                                             int bins);

}  // namespace tangram::plan
