#include "tangram/compose/composition.hpp"

#include <algorithm>
#include <tuple>

namespace tangram::compose {

void keep_best(std::vector<Composition>& compositions, int most) {
  std::ranges::stable_sort(compositions, {}, [](const Composition& c) {
    return std::tuple(c.closed_form, c.stages.size(), c.replicas, c.microbatch, c.level);
  });
  if (compositions.size() > static_cast<std::size_t>(most)) compositions.resize(static_cast<std::size_t>(most));
}

CutYield& CutYield::operator+=(const CutYield& other) {
  windows_by_bound += other.windows_by_bound;
  groups_by_units += other.groups_by_units;
  groups_by_spending += other.groups_by_spending;
  groups_by_remainder += other.groups_by_remainder;
  labels_by_time += other.labels_by_time;
  labels_by_bound += other.labels_by_bound;
  labels_by_remainder += other.labels_by_remainder;
  labels_by_dominance += other.labels_by_dominance;
  return *this;
}

SearchStatistics& SearchStatistics::operator+=(const SearchStatistics& other) {
  queries += other.queries;
  partial_plans += other.partial_plans;
  frontier_plans += other.frontier_plans;
  programs += other.programs;
  programs_cut += other.programs_cut;
  labels += other.labels;
  states += other.states;
  cuts += other.cuts;
  return *this;
}

bool SearchResult::is_out_of_budget() const {
  return !infeasible.empty() && infeasible.front().kind == ErrorKind::kIncomplete;
}

void SearchResult::add_effort_of(const SearchResult& other) {
  statistics += other.statistics;
  if (parallelizers.empty()) {
    parallelizers = other.parallelizers;
    return;
  }
  for (std::size_t i = 0; i < other.parallelizers.size(); ++i) parallelizers[i].add(other.parallelizers[i]);
}

}  // namespace tangram::compose
