#include "join_at_period.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "stage_terms.hpp"
#include "tangram/base/at.hpp"

namespace tangram::multimodal {

namespace {

std::vector<int> sum_of(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> sum = a;
  for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += b[c];
  return sum;
}

// `path`: stages of the longest path that begins with the choice's first stage; 0: warm-ups are not the graph's.
std::vector<InFlight> allowed_of(const Choice& choice, std::int64_t microbatches, std::size_t path) {
  std::vector<InFlight> allowed;
  for (std::size_t s = 0; s < choice.stages.size(); ++s) {
    allowed.push_back(path == 0
                          ? in_flight_of(choice.stages[s], microbatches)
                          : in_flight_of(choice.stages[s], microbatches, static_cast<std::int64_t>(path - 1 - s)));
  }
  return allowed;
}

Costs with_units(const std::vector<int>& units, std::initializer_list<std::int64_t> costs) {
  Costs all(units.begin(), units.end());
  all.insert(all.end(), costs);
  return all;
}

}  // namespace

std::optional<Joined> JoinAtPeriod::best() {
  for (const Slice& slice : slices()) join(slice);
  return std::move(best_);
}

std::vector<JoinAtPeriod::Slice> JoinAtPeriod::slices() const {
  std::set<std::size_t> longest;
  for (const Encoder& encoder : problem_.encoders) {
    for (const Choice& choice : encoder.choices) longest.insert(problem_.graph_warmup ? choice.stages.size() : 0);
  }
  if (longest.empty()) longest.insert(0);
  std::set<std::pair<int, std::size_t>> kinds;
  for (const Choice& choice : problem_.language) {
    kinds.emplace(choice.key, problem_.graph_warmup ? choice.stages.size() : 0);
  }
  std::vector<Slice> slices;
  for (const auto& [key, stages] : kinds) {
    for (const std::size_t branch : longest) slices.push_back({key, stages, branch});
  }
  return slices;
}

void JoinAtPeriod::join(const Slice& slice) {
  const std::vector<Branches> branches = branches_of(slice);
  if (branches.empty()) return;
  for (const Language& language : language_of(slice)) {
    for (const Branches& some : branches) {
      if (slice.longest_branch > 0 && !some.has_longest) continue;
      if (!has_units(language.units, some.units) || !fits(some.label, language.label)) continue;
      const std::int64_t fixed = joined_time(some.label, language.label, 1, period_);
      if (!best_ || fixed < best_->fixed) best_ = {{some.choices, language.choices.front()}, fixed};
    }
  }
}

std::vector<JoinAtPeriod::Language> JoinAtPeriod::language_of(const Slice& slice) const {
  std::vector<Language> all;
  for (std::size_t i = 0; i < problem_.language.size(); ++i) {
    const Choice& choice = problem_.language[i];
    const bool is_of_slice = slice.language_stages == 0 || choice.stages.size() == slice.language_stages;
    if (choice.key != slice.key || !is_of_slice) continue;
    if (!has_units(choice.units, std::vector<int>(choice.units.size(), 0))) continue;
    const auto label =
        chain_label(choice.stages, choice.hops, {}, period_,
                    allowed_of(choice, problem_.microbatches, slice.language_stages), problem_.microbatches);
    if (!label) continue;
    all.push_back({with_units(choice.units, {label->Lat, label->A, label->o, label->n, label->Q}),
                   choice.units,
                   *label,
                   {static_cast<int>(i)}});
  }
  keep_efficient(all);
  return all;
}

std::vector<JoinAtPeriod::Branches> JoinAtPeriod::branches_of(const Slice& slice) const {
  std::vector<Branches> all(1);
  all.front().units.assign(problem_.inventory.size(), 0);
  for (const Encoder& encoder : problem_.encoders) {
    all = joined(all, branches_of(encoder, slice));
    if (all.empty()) break;
  }
  return all;
}

std::vector<JoinAtPeriod::Branches> JoinAtPeriod::branches_of(const Encoder& encoder, const Slice& slice) const {
  std::vector<Branches> all;
  for (std::size_t i = 0; i < encoder.choices.size(); ++i) {
    const Choice& choice = encoder.choices[i];
    const Price& boundary = encoder.boundary(choice.key, slice.key);
    if (boundary.is_none()) continue;
    if (problem_.graph_warmup && choice.stages.size() > slice.longest_branch) continue;
    std::vector<Price> hops = choice.hops;
    hops.push_back(boundary);
    const std::size_t path = slice.longest_branch + slice.language_stages;
    const auto label = branch_label(choice.stages, hops, period_, allowed_of(choice, problem_.microbatches, path),
                                    problem_.microbatches);
    if (!label) continue;
    Branches& one = all.emplace_back();
    one.units = choice.units;
    one.label = *label;
    one.has_longest = choice.stages.size() == slice.longest_branch;
    one.choices = {static_cast<int>(i)};
  }
  return all;
}

std::vector<JoinAtPeriod::Branches> JoinAtPeriod::joined(const std::vector<Branches>& some,
                                                         const std::vector<Branches>& more) const {
  std::vector<Branches> all;
  for (const Branches& a : some) {
    for (const Branches& b : more) {
      if (!has_units(a.units, b.units)) continue;
      Branches& both = all.emplace_back();
      both.units = sum_of(a.units, b.units);
      both.label = multimodal::join(a.label, b.label);
      both.has_longest = a.has_longest || b.has_longest;
      both.choices = a.choices;
      both.choices.insert(both.choices.end(), b.choices.begin(), b.choices.end());
      const BranchLabel& label = both.label;
      both.costs =
          with_units(both.units, {label.phi, label.K, label.o, -label.room, -label.reach, both.has_longest ? 0 : 1});
    }
  }
  keep_efficient(all);
  return all;
}

bool JoinAtPeriod::has_units(const std::vector<int>& some, const std::vector<int>& more) const {
  for (std::size_t c = 0; c < problem_.inventory.size(); ++c) {
    if (some[c] + more[c] > problem_.inventory[c]) return false;
  }
  return true;
}

}  // namespace tangram::multimodal
