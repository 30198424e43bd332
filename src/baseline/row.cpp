#include "row.hpp"

#include <algorithm>
#include <iterator>

#include "tangram/base/at.hpp"

namespace tangram::baseline {

std::vector<int> row_of(const PlannerInput& input, const std::vector<int>& kinds) {
  std::vector<int> row;
  for (const int kind : kinds) {
    row.insert(row.end(), static_cast<std::size_t>(at(input.kinds, kind).gpus), kind);
  }
  return row;
}

std::optional<std::vector<std::vector<Replica>>> uniform_replicas(const std::vector<int>& row, int stages, int dp,
                                                                  int tp, std::int64_t samples) {
  std::vector<std::vector<Replica>> result;
  int gpu = 0;
  for (int s = 0; s < stages; ++s) {
    auto& stage = result.emplace_back();
    for (int d = 0; d < dp; ++d, gpu += tp) {
      const int end = gpu + tp;
      if (end > std::ssize(row) || at(row, gpu) != at(row, end - 1)) return std::nullopt;
      stage.push_back({at(row, gpu), tp, samples});
    }
  }
  return result;
}

std::vector<std::int64_t> divisors_of(std::int64_t value) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= value; ++d) {
    if (value % d == 0) divisors.push_back(d);
  }
  return divisors;
}

void keep_best(std::vector<Draft>& drafts, std::int64_t most) {
  std::ranges::stable_sort(drafts, {}, &Draft::claimed);
  if (static_cast<std::int64_t>(drafts.size()) > most) drafts.resize(static_cast<std::size_t>(most));
}

}  // namespace tangram::baseline
