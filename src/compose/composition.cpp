#include "tangram/compose/composition.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tangram::compose {

bool is_twin(const Composition& a, const Composition& b) {
  const auto same = [](const StageChoice& x, const StageChoice& y) {
    return std::tie(x.first, x.last, x.chunks, x.T, x.F, x.A, x.o, x.in_flight, x.to_next) ==
           std::tie(y.first, y.last, y.chunks, y.T, y.F, y.A, y.o, y.in_flight, y.to_next);
  };
  return std::tie(a.level, a.replicas, a.microbatch, a.group, a.closed_form) ==
             std::tie(b.level, b.replicas, b.microbatch, b.group, b.closed_form) &&
         std::ranges::equal(a.stages, b.stages, same);
}

void keep_best(std::vector<Composition>& compositions, int most) {
  std::ranges::stable_sort(compositions, {}, [](const Composition& c) {
    return std::tuple(c.closed_form, c.stages.size(), c.replicas, c.microbatch, c.level);
  });
  if (compositions.size() > static_cast<std::size_t>(most)) compositions.resize(static_cast<std::size_t>(most));
}

void keep_fastest(std::vector<TimedComposition>& compositions, int most) {
  std::ranges::stable_sort(compositions, {}, &TimedComposition::time);
  std::vector<TimedComposition> kept;
  for (TimedComposition& timed : compositions) {
    if (kept.size() == static_cast<std::size_t>(most)) break;
    const bool twice = std::ranges::any_of(
        kept, [&](const TimedComposition& other) { return is_twin(other.composition, timed.composition); });
    if (!twice) kept.push_back(std::move(timed));
  }
  compositions = std::move(kept);
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

std::vector<Composition> SearchResult::shortlist() const {
  std::vector<Composition> list = best;
  for (const TimedComposition& one : timed) {
    const bool twice =
        std::ranges::any_of(list, [&](const Composition& other) { return is_twin(other, one.composition); });
    if (!twice) list.push_back(one.composition);
  }
  if (list.size() > best.size()) keep_best(list, static_cast<int>(list.size()));
  return list;
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
