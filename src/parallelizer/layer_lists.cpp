#include "layer_lists.hpp"

#include <algorithm>

#include "tangram/base/at.hpp"

namespace tangram::parallelizer {
namespace {

using cost::RecomputeMode;
using cost::UnitCost;
using cost::UnitCosts;
using cost::UnitTerms;

double seconds(const UnitTerms& terms) { return terms.forward + terms.backward; }

/// Working set alone and beside the unit's own buffers.
std::array<double, 3> peaks_of(const UnitCosts& units, const UnitCost& unit, RecomputeMode mode) {
  std::array<double, 3> peaks{};
  const double working = unit_terms(units, unit, {0, mode}).working;
  peaks[0] = working;
  peaks[1] = working + unit_terms(units, unit, {2, mode}).buffers;
  peaks[2] = working + unit_terms(units, unit, {3, mode}).buffers;
  return peaks;
}

/// A block under each mode.
struct ModeTerms {
  double seconds = 0;
  double kept = 0;
  std::array<double, 3> peaks{};
};
using TermsByMode = std::array<ModeTerms, 3>;

TermsByMode terms_by_mode(const UnitCosts& units, const UnitCost& unit) {
  TermsByMode out;
  const double plain = unit_terms(units, unit, {}).backward;
  for (const RecomputeMode mode : {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull}) {
    const UnitTerms terms = unit_terms(units, unit, {0, mode});
    at(out, mode) = {terms.backward - plain, terms.activation, peaks_of(units, unit, mode)};
  }
  return out;
}

/// From the counts alone, so that all ways to come by them are equal.
Tradeoff recomputed(const TermsByMode& terms, int blocks, std::array<std::int32_t, 2> chosen) {
  const auto [full, selective] = chosen;
  const std::array<std::int32_t, 3> count{blocks - full - selective, selective, full};  // as RecomputeMode counts
  Tradeoff out;
  out.chosen = chosen;
  for (std::size_t mode = 0; mode < count.size(); ++mode) {
    if (count[mode] == 0) continue;
    out.time += count[mode] * terms[mode].seconds;
    out.memory += count[mode] * terms[mode].kept;
    for (std::size_t k = 0; k < out.peaks.size(); ++k) out.peaks[k] = std::max(out.peaks[k], terms[mode].peaks[k]);
  }
  return out;
}

/// Embedding and head, of which nothing is recomputed.
Tradeoff kept_by_ends(const UnitCosts& units, const model::SliceSignature& slice) {
  Tradeoff out;
  const auto add = [&](const UnitCost& unit) {
    const auto peaks = peaks_of(units, unit, RecomputeMode::kNone);
    out.memory += unit.activation_none;
    for (std::size_t k = 0; k < peaks.size(); ++k) out.peaks[k] = std::max(out.peaks[k], peaks[k]);
  };
  if (slice.embedding) add(units.embedding);
  if (slice.head) add(units.head);
  return out;
}

/// Embedding and head under one ZeRO stage.
Tradeoff held_by_ends(const UnitCosts& units, const model::SliceSignature& slice, int zero) {
  Tradeoff out;
  const auto add = [&](const UnitCost& unit) {
    const UnitTerms terms = unit_terms(units, unit, {zero, RecomputeMode::kNone});
    out.time += seconds(terms);
    out.memory += terms.held;
    out.peaks[0] = std::max(out.peaks[0], terms.buffers);
  };
  if (slice.embedding) add(units.embedding);
  if (!slice.head) return out;
  add(units.head);
  if (!slice.embedding) {
    out.memory += unit_terms(units, tied_unit(units), {zero, RecomputeMode::kNone}).held;
  }
  return out;
}

}  // namespace

TypeCounts type_counts(const model::SliceSignature& slice) {
  TypeCounts counts;
  for (const auto& [type, blocks] : slice.runs) {
    const auto found = std::ranges::find(counts, type, &TypeCounts::value_type::first);
    if (found == counts.end()) {
      counts.emplace_back(type, blocks);
    } else {
      found->second += blocks;
    }
  }
  return counts;
}

std::vector<RecomputeList> recompute_lists(const UnitCosts& units, int type, int most,
                                           std::span<const RecomputeMode> modes) {
  const TermsByMode terms = terms_by_mode(units, at(units.blocks, type));
  std::vector<RecomputeList> lists{{Tradeoff{}}};
  for (int blocks = 1; blocks <= most; ++blocks) {
    std::vector<Tradeoff> all;
    for (const Tradeoff& before : lists.back()) {
      for (const RecomputeMode mode : modes) {
        std::array<std::int32_t, 2> chosen = before.chosen;
        if (mode != RecomputeMode::kNone) ++chosen[mode == RecomputeMode::kFull ? 0 : 1];
        all.push_back(recomputed(terms, blocks, chosen));
      }
    }
    lists.push_back(pareto(std::move(all)));
  }
  return lists;
}

RecomputeLists::RecomputeLists(const StrategySpace& space, const TypeCounts& most, std::span<const RecomputeMode> modes)
    : space_(space), most_(most), modes_(modes.begin(), modes.end()), sweeps_(space.units.size() * most.size()) {}

const RecomputeList& RecomputeLists::of(std::size_t units, int type, int blocks) const {
  const auto found = std::ranges::find(most_, type, &TypeCounts::value_type::first);
  const auto position = static_cast<std::size_t>(found - most_.begin());
  Sweep& sweep = sweeps_[units * most_.size() + position];
  std::call_once(sweep.once, [&] { sweep.lists = recompute_lists(space_.units[units], type, found->second, modes_); });
  return at(sweep.lists, blocks);
}

Steps recompute_steps(const RecomputeLists& lists, const UnitCosts& units, std::size_t index,
                      const model::SliceSignature& slice) {
  Steps steps{{kept_by_ends(units, slice)}};
  for (const auto& [type, blocks] : type_counts(slice)) {
    steps.push_back(combine(steps.back(), lists.of(index, type, blocks)));
  }
  return steps;
}

Steps sharding_steps(const UnitCosts& units, const model::SliceSignature& slice, int zero) {
  Tradeoff plain = held_by_ends(units, slice, zero);
  Tradeoff sharded = held_by_ends(units, slice, 3);
  sharded.time -= plain.time;
  plain.time = 0;
  sharded.chosen = {1, 0};
  Steps steps{{plain}};
  if (slice.embedding || slice.head) steps.front().push_back(sharded);
  for (const auto& [type, blocks] : type_counts(slice)) {
    const UnitCost& unit = at(units.blocks, type);
    const UnitTerms base = unit_terms(units, unit, {zero, RecomputeMode::kNone});
    const UnitTerms shard = unit_terms(units, unit, {3, RecomputeMode::kNone});
    std::vector<Tradeoff> own;
    for (int count = 0; count <= blocks; ++count) {
      Tradeoff entry;
      entry.time = count * (seconds(shard) - seconds(base));
      entry.memory = count * shard.held + (blocks - count) * base.held;
      entry.peaks[0] = std::max(count > 0 ? shard.buffers : 0, count < blocks ? base.buffers : 0);
      entry.chosen = {count, 0};
      own.push_back(entry);
    }
    steps.push_back(combine(steps.back(), own));
  }
  return steps;
}

std::vector<std::array<std::int32_t, 2>> choices(const Steps& steps, std::size_t entry) {
  std::vector<std::array<std::int32_t, 2>> out(steps.size());
  for (std::size_t step = steps.size(); step-- > 0;) {
    const Tradeoff& at = steps[step][entry];
    out[step] = at.chosen;
    entry = static_cast<std::size_t>(std::max(0, at.rest));
  }
  return out;
}

}  // namespace tangram::parallelizer
