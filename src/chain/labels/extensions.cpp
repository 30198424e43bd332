#include "extensions.hpp"

#include <algorithm>
#include <tuple>

#include "../bounds/relaxed_frontier.hpp"

namespace tangram::chain {

namespace {

bool smaller_growth(const ExtensionGroup& a, const ExtensionGroup& b) {
  return std::tie(a.growth, a.option, a.blocks) < std::tie(b.growth, b.option, b.blocks);
}

// Whether one of the relaxed frontier's plans holds so many microbatches within the period and the time.
bool holds_within(std::span<const Candidate> frontier, std::int64_t microbatches, std::int64_t period, double time) {
  for (const Candidate& candidate : frontier) {
    if (candidate.T > period) return false;
    if (candidate.n_max >= microbatches && static_cast<double>(candidate.passage()) <= time) return true;
  }
  return false;
}

}  // namespace

Extensions::Extensions(const LabelGround& ground, const CompletionBound& bound, const LabelQuery& query)
    : program_(ground.program), frontiers_(ground.frontiers), bound_(bound), query_(query) {
  lists_ = {program_.blocks + 1, bound.depths() + 1};
}

void Extensions::build(int left, int depth, ExtensionLists& lists) {
  lists.built = true;
  const double here = bound_.phi(left, depth);
  if (here == kNoCompletion) return;
  const double slack = static_cast<double>(query_.cutoff) - bound_.root() + 1.0;
  const double hop = left == program_.blocks ? 0 : bound_.round_trip(left);
  const std::int64_t held = program_.least_held(depth);
  for (int n = 1; n <= left; ++n) {
    const double beyond = bound_.phi(left - n, depth + 1);
    if (beyond == kNoCompletion) continue;
    const int signature = program_.signature_of(left - n, left);
    for (int option = 0; option < static_cast<int>(program_.options.size()); ++option) {
      if (!is_allowed(option)) continue;
      const double fixed = hop + bound_.unit_price(option) + beyond - here;
      if (!holds_within(program_.frontier(option, signature), held, query_.period, slack - fixed)) continue;
      add_group(lists, {0, option, n, 0, 0}, plans_of(option, n, left, depth), {depth, n == left, fixed, slack});
    }
  }
  keep_best_groups(lists.groups);
  std::sort(lists.groups.begin(), lists.groups.end(), smaller_growth);
}

std::span<const Candidate> Extensions::plans_of(int option, int blocks, int left, int depth) {
  const int signature = program_.signature_of(left - blocks, left);
  if (!query_.relaxed) return frontiers_.whole(option, signature);
  if (blocks == left) {
    first_relaxed_frontier_of(program_, option, left, depth, relaxed_);
  } else {
    relaxed_frontier_of(program_, option, signature, relaxed_);
  }
  return relaxed_;
}

void Extensions::add_group(ExtensionLists& lists, ExtensionGroup group, std::span<const Candidate> frontier,
                           const GroupTerms& terms) const {
  group.begin = static_cast<std::uint32_t>(lists.extensions.size());
  for (const Candidate& candidate : frontier) {
    if (candidate.T > query_.period) break;
    if (!program_.zero_bubble && static_cast<double>(candidate.T) + terms.fixed > terms.slack) break;
    const std::int64_t cost = terms.is_first_stage ? candidate.A + candidate.o : candidate.passage();
    const double growth = static_cast<double>(cost) + terms.fixed;
    if (growth > terms.slack || candidate.A + candidate.o > query_.cutoff) continue;  // no chain ends before its stages
    if (candidate.n_max < program_.least_held(terms.depth)) continue;
    lists.extensions.push_back({growth, candidate, query_.relaxed ? nullptr : &candidate});
    if (query_.beam > 0 && !terms.is_first_stage) break;  // a beam search takes the fastest plan that holds the depth
  }
  group.end = static_cast<std::uint32_t>(lists.extensions.size());
  if (group.begin == group.end) return;
  const std::span<Extension> own = std::span(lists.extensions).subspan(group.begin);
  if (!std::ranges::is_sorted(own, {}, &Extension::growth)) std::ranges::stable_sort(own, {}, &Extension::growth);
  group.growth = own.front().growth;
  lists.groups.push_back(group);
}

void Extensions::keep_best_groups(std::vector<ExtensionGroup>& groups) const {
  const auto most = static_cast<std::size_t>(query_.beam) * static_cast<std::size_t>(bound_.tuning().groups_per_beam);
  if (query_.beam == 0 || groups.size() <= most) return;
  std::nth_element(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(most), groups.end(), smaller_growth);
  groups.resize(most);
}

}  // namespace tangram::chain
