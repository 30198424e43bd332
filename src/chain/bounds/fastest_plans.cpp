#include "fastest_plans.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "relaxed_frontier.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"

namespace tangram::chain {

namespace {

std::vector<double> least_round_trips(const Program& program) {
  std::vector<double> least;
  for (const Grid<Price>& of_kind : program.prices) {
    double& here = least.emplace_back(kNoCompletion);
    for (const Price& price : of_kind) here = std::min(here, 2.0 * static_cast<double>(price.latency));
  }
  std::vector<double> by_cut(static_cast<std::size_t>(program.blocks) + 1, 0);
  for (int cut = 1; cut < program.blocks; ++cut) {
    at(by_cut, cut) = at(least, at(program.cut_kind, cut));
  }
  return by_cut;
}

bool takes_no_more(const std::vector<Use>& a, const std::vector<Use>& b) {
  return std::all_of(a.begin(), a.end(), [&](const Use& use) {
    return std::any_of(b.begin(), b.end(), [&](const Use& other) {
      return other.island_class == use.island_class && use.units <= other.units;
    });
  });
}

std::vector<std::vector<char>> compared_uses(const std::vector<Option>& options) {
  std::vector<std::vector<char>> result;
  for (const Option& a : options) {
    std::vector<char>& row = result.emplace_back();
    for (const Option& b : options) row.push_back(takes_no_more(a.uses, b.uses) ? 1 : 0);
  }
  return result;
}

// Stages of a pipeline at most: each takes units of some class, and no fewer than the smallest option does.
std::int64_t most_stages(const Program& program) {
  std::vector<int> least(program.inventory.size(), 0);  // 0: no option takes any
  for (const Option& option : program.options) {
    for (const Use& use : option.uses) {
      int& units = at(least, use.island_class);
      units = units == 0 ? use.units : std::min(units, use.units);
    }
  }
  std::int64_t stages = 0;
  for (std::size_t k = 0; k < least.size(); ++k) {
    if (least[k] > 0) stages += program.inventory[k] / least[k];
  }
  return stages;
}

// How deep the lists go. With classic warm-ups a stage holds what its depth says; others may hold more.
int depths_of(const Program& program, const SolverTuning& tuning) {
  std::int64_t depths = std::min<std::int64_t>(program.microbatches, program.blocks);
  if (program.classic_warmup) depths = std::min(depths, most_stages(program));
  return static_cast<int>(std::clamp<std::int64_t>(depths, 1, tuning.most_depths));
}

}  // namespace

FastestPlans::FastestPlans(const Program& program, const SolverTuning& tuning)
    : tuning_(tuning),
      depths_(depths_of(program, tuning)),
      takes_no_more_(compared_uses(program.options)),
      round_trip_(least_round_trips(program)),
      weights_(block_weights(program, tuning.least_share_of_kind)) {
  for (const Option& option : program.options) classes_of_.push_back(option.uses.size());
  blocks_of_.assign(static_cast<std::size_t>(program.signatures), 0);
  for (int last = 1; last <= program.blocks; ++last) {
    for (int blocks = 1; blocks <= last; ++blocks) {
      const int signature = program.signature_of(last - blocks, last);
      ending_at_.push_back(signature);
      int& most = at(blocks_of_, signature);
      most = std::max(most, blocks);
    }
  }
  list_of_ = {program.signatures, depths_ + 1};
  for (int signature = 0; signature < program.signatures; ++signature) add_signature_lists(program, signature);
  first_list_of_ = {program.blocks + 1, depths_ + 1};
  for (int last = 1; last <= program.blocks; ++last) add_first_lists(program, last);
  double stage = 0;
  for (const Entry& entry : entries_) stage = std::max(stage, entry.cost);
  dearest_ = (stage + *std::ranges::max_element(round_trip_)) * program.blocks;
}

void FastestPlans::add_signature_lists(const Program& program, int signature) {
  const int options = static_cast<int>(program.options.size());
  std::vector<std::size_t> step(program.options.size());  // first candidate of an option that holds the depth
  std::vector<Entry> entries;
  std::int64_t enough_for = 0;  // microbatches that all of these hold
  for (int depth = 1; depth <= depths_; ++depth) {
    const std::int64_t held = program.least_held(depth);
    const bool changed = depth == 1 || held > enough_for;
    if (changed) enough_for = INT64_MAX;
    for (int option = 0; changed && option < options; ++option) {
      const std::vector<Candidate>& frontier = program.frontier(option, signature);
      std::size_t& fastest = at(step, option);
      // Candidates come in ascending T: the first that holds a depth is the fastest for it.
      while (fastest < frontier.size() && frontier[fastest].n_max < held) ++fastest;
      if (fastest < frontier.size()) enough_for = std::min(enough_for, frontier[fastest].n_max);
    }
    if (changed) {
      entries.clear();
      for (int option = 0; option < options; ++option) {
        const std::vector<Candidate>& frontier = program.frontier(option, signature);
        const std::size_t fastest = at(step, option);
        if (fastest == frontier.size()) continue;
        const auto T = static_cast<double>(frontier[fastest].T);
        entries.push_back({T, static_cast<double>(least_passage(program, frontier, fastest)), option});
      }
      add_list(entries);
    }
    list_of_(signature, depth) = lists() - 1;
  }
  add_table(list_at(signature, 1), program.options.size());
}

// An option is there where the signature's fastest plan is; what it costs may be that of another plan.
void FastestPlans::add_first_lists(const Program& program, int last) {
  const int signature = program.signature_of(0, last);
  std::vector<Entry> entries;
  std::vector<Entry> before;
  for (int depth = 1; depth <= depths_; ++depth) {
    const std::int64_t held = program.least_held(depth);
    entries.clear();
    for (int option = 0; option < static_cast<int>(program.options.size()); ++option) {
      const std::vector<Candidate>& frontier = program.frontier(option, signature);
      const auto fastest = std::ranges::find_if(frontier, [&](const Candidate& c) { return c.n_max >= held; });
      if (fastest == frontier.end()) continue;
      const auto cost = static_cast<double>(std::max(fastest->T, least_drain(program, option, last, depth)));
      entries.push_back({static_cast<double>(fastest->T), cost, option});
    }
    if (depth == 1 || entries != before) {
      before = entries;
      add_list(entries);
    }
    first_list_of_(last, depth) = lists() - 1;
  }
  add_table(first_list_at(last, 1), program.options.size());
}

void FastestPlans::add_list(std::vector<Entry>& entries) {
  const auto place = [&](const Entry& entry) {
    return std::tuple(entry.T, entry.cost, at(classes_of_, entry.option), entry.option);
  };
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) { return place(a) < place(b); });
  for (const Entry& entry : entries) {
    const bool superfluous = std::any_of(entries_.begin() + static_cast<std::ptrdiff_t>(begins_.back()), entries_.end(),
                                         [&](const Entry& kept) {
                                           const std::vector<char>& less = at(takes_no_more_, kept.option);
                                           return kept.cost <= entry.cost && at(less, entry.option) != 0;
                                         });
    if (!superfluous) entries_.push_back(entry);
  }
  begins_.push_back(entries_.size());
}

// Of all lists from the given one on.
void FastestPlans::add_table(std::size_t first_list, std::size_t options) {
  constexpr std::size_t kNoRow = SIZE_MAX;
  Table table;
  table.first_list = first_list;
  table.lists = lists() - first_list;
  std::vector<std::size_t> row_of(options, kNoRow);
  for (std::size_t i = 0; i < table.lists; ++i) {
    for (const Entry& entry : list(first_list + i)) {
      std::size_t& row = at(row_of, entry.option);
      if (row == kNoRow) {
        row = table.options.size();
        table.options.push_back(entry.option);
        table.times.resize(table.options.size() * table.lists, 0);
        table.costs.resize(table.options.size() * table.lists, kNoCompletion);
      }
      table.times[row * table.lists + i] = entry.T;
      table.costs[row * table.lists + i] = entry.cost;
    }
  }
  for (std::size_t i = 1; i < table.times.size(); ++i) {
    if (i % table.lists != 0) table.times[i] = std::max(table.times[i], table.times[i - 1]);
  }
  tables_.push_back(std::move(table));
}

}  // namespace tangram::chain
