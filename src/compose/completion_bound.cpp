#include "completion_bound.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "outlines.hpp"
#include "periods.hpp"
#include "rows.hpp"

namespace tangram::compose {

namespace {

constexpr int kMostDepths = 64;
constexpr double kStepDecay = 0.85;
constexpr double kCoverTolerance = 1e-9;  // relative; absorbs the rounding of sums of weights

std::vector<double> least_round_trips(const Program& program) {
  std::vector<double> least(static_cast<std::size_t>(program.cut_kinds), kNoCompletion);
  const auto per_kind = static_cast<std::size_t>(program.keys) * static_cast<std::size_t>(program.keys);
  for (std::size_t kind = 0; kind < least.size(); ++kind) {
    for (std::size_t pair = 0; pair < per_kind; ++pair) {
      least[kind] = std::min(least[kind], 2.0 * static_cast<double>(program.prices[kind * per_kind + pair].latency));
    }
  }
  std::vector<double> by_cut(static_cast<std::size_t>(program.blocks) + 1, 0);
  for (int cut = 1; cut < program.blocks; ++cut) {
    by_cut[static_cast<std::size_t>(cut)] =
        least[static_cast<std::size_t>(program.cut_kind[static_cast<std::size_t>(cut)])];
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

}  // namespace

FastestPlans::FastestPlans(const Program& program)
    : takes_no_more_(compared_uses(program.options)),
      round_trip_(least_round_trips(program)),
      weights_(block_weights(program)) {
  for (const Option& option : program.options) classes_of_.push_back(option.uses.size());
  depths_ = static_cast<int>(
      std::clamp<std::int64_t>(std::min<std::int64_t>(program.microbatches, program.blocks), 1, kMostDepths));
  blocks_of_.assign(static_cast<std::size_t>(program.signatures), 0);
  for (int last = 1; last <= program.blocks; ++last) {
    for (int blocks = 1; blocks <= last; ++blocks) {
      const int signature = program.signature_of(last - blocks, last);
      ending_at_.push_back(signature);
      int& most = blocks_of_[static_cast<std::size_t>(signature)];
      most = std::max(most, blocks);
    }
  }
  list_of_.resize(static_cast<std::size_t>(program.signatures) * static_cast<std::size_t>(depths_ + 1));
  for (int signature = 0; signature < program.signatures; ++signature) add_signature_lists(program, signature);
  first_list_of_.resize(static_cast<std::size_t>(program.blocks + 1) * static_cast<std::size_t>(depths_ + 1));
  for (int last = 1; last <= program.blocks; ++last) add_first_lists(program, last);
  double stage = 0;
  for (const Entry& entry : entries_) stage = std::max(stage, entry.cost);
  dearest_ = (stage + *std::ranges::max_element(round_trip_)) * program.blocks;
}

void FastestPlans::add_signature_lists(const Program& program, int signature) {
  const int options = static_cast<int>(program.options.size());
  std::vector<std::size_t> step(program.options.size());  // first candidate of an option that holds the depth
  std::vector<Entry> entries;
  for (int depth = 1; depth <= depths_; ++depth) {
    bool changed = depth == 1;
    for (int option = 0; option < options; ++option) {
      const std::vector<Candidate>& frontier = program.frontier(option, signature);
      std::size_t& at = step[static_cast<std::size_t>(option)];
      const std::size_t before = at;
      // Candidates come in ascending T: the first that holds a depth is the fastest for it.
      while (at < frontier.size() && frontier[at].n_max < needed(program, depth)) ++at;
      changed = changed || at != before;
    }
    if (changed) {
      entries.clear();
      for (int option = 0; option < options; ++option) {
        const std::vector<Candidate>& frontier = program.frontier(option, signature);
        const std::size_t at = step[static_cast<std::size_t>(option)];
        if (at == frontier.size()) continue;
        const auto T = static_cast<double>(frontier[at].T);
        entries.push_back({T, T, option});
      }
      add_list(entries);
    }
    list_of_[cell(signature, depth)] = lists() - 1;
  }
  add_table(list_at(signature, 1), program.options.size());
}

// An option is there where the signature's fastest plan is; what it costs may be that of another plan.
void FastestPlans::add_first_lists(const Program& program, int last) {
  const int signature = program.signature_of(0, last);
  std::vector<Entry> entries;
  std::vector<Entry> before;
  for (int depth = 1; depth <= depths_; ++depth) {
    entries.clear();
    for (int option = 0; option < static_cast<int>(program.options.size()); ++option) {
      const std::vector<Candidate>& frontier = program.frontier(option, signature);
      const auto fastest = std::find_if(frontier.begin(), frontier.end(),
                                        [&](const Candidate& c) { return c.n_max >= needed(program, depth); });
      if (fastest == frontier.end()) continue;
      const auto cost = static_cast<double>(std::max(fastest->T, least_drain(program, option, last, depth)));
      entries.push_back({static_cast<double>(fastest->T), cost, option});
    }
    if (depth == 1 || entries != before) {
      before = entries;
      add_list(entries);
    }
    first_list_of_[cell(last, depth)] = lists() - 1;
  }
  add_table(first_list_at(last, 1), program.options.size());
}

void FastestPlans::add_list(std::vector<Entry>& entries) {
  const auto place = [&](const Entry& entry) {
    return std::tuple(entry.T, entry.cost, classes_of_[static_cast<std::size_t>(entry.option)], entry.option);
  };
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) { return place(a) < place(b); });
  for (const Entry& entry : entries) {
    const bool superfluous = std::any_of(
        entries_.begin() + static_cast<std::ptrdiff_t>(begins_.back()), entries_.end(), [&](const Entry& kept) {
          const std::vector<char>& less = takes_no_more_[static_cast<std::size_t>(kept.option)];
          return kept.cost <= entry.cost && less[static_cast<std::size_t>(entry.option)] != 0;
        });
    if (!superfluous) entries_.push_back(entry);
  }
  begins_.push_back(entries_.size());
}

// Of all lists from the given one on.
void FastestPlans::add_table(std::size_t first_list, std::size_t options) {
  constexpr std::size_t kNone = SIZE_MAX;
  Table table;
  table.first_list = first_list;
  table.lists = lists() - first_list;
  std::vector<std::size_t> row_of(options, kNone);
  for (std::size_t i = 0; i < table.lists; ++i) {
    for (const Entry& entry : list(first_list + i)) {
      std::size_t& row = row_of[static_cast<std::size_t>(entry.option)];
      if (row == kNone) {
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

CompletionBound::CompletionBound(const Program& program, const FastestPlans& fastest, std::int64_t longest_period,
                                 std::vector<double> multipliers, int iterations, double enough, Extent extent)
    : program_(program),
      fastest_(fastest),
      capacity_(extent == Extent::kAll ? Capacity(program, fastest, longest_period)
                                       : Capacity(program, fastest, longest_period, Capacity::RootAlone{})),
      supplies_(program.supplies()),
      longest_period_(static_cast<double>(longest_period)),
      depths_(fastest.depths()) {
  if (!capacity_.covers_all() || !coverable(extent)) return;
  within_ = lists_within();
  if (multipliers.size() != supplies_.size()) multipliers.assign(supplies_.size(), 0);
  ascend(std::move(multipliers), iterations, enough, extent);
}

std::int64_t CompletionBound::least_end(std::int64_t enough) const {
  const std::int64_t priced = whole_nanoseconds(root_);
  if (priced >= enough) return priced;
  return std::max(priced, whole_nanoseconds(packing().root()));
}

Packing& CompletionBound::packing() const {
  if (!packing_) {
    packing_ =
        std::make_unique<Packing>(program_, fastest_, capacity_.weights(), static_cast<std::int64_t>(longest_period_));
  }
  return *packing_;
}

// Whether the cheapest cover takes no more than there is. Leaves the weights and their table behind.
bool CompletionBound::coverable(Extent extent) {
  weight_ = capacity_weights();
  unit_weight_ = option_prices(weight_);
  const double whole = relax(unit_weight_, false, extent, need_);
  if (whole == kNoCompletion) return false;
  const double supply = worth(weight_, supplies_);
  if (whole - supply > kCoverTolerance * supply) return false;
  // Loosened once, so that sums of weights rounded in another order still compare as they should.
  const double slack = kCoverTolerance * std::max(1.0, supply);
  for (double& value : need_) value -= slack;
  return true;
}

// Blocks that one unit of each class can hold at most within the period: where classes differ by a factor only, these
// weights decide exactly.
std::vector<double> CompletionBound::capacity_weights() const {
  std::vector<double> weights(supplies_.size(), 0);
  for (int signature = 0; signature < program_.signatures; ++signature) {
    for (const FastestPlans::Entry& entry : fastest_.list(fastest_.list_at(signature, 1))) {
      if (entry.T > longest_period_) break;
      const Option& option = program_.options[static_cast<std::size_t>(entry.option)];
      if (option.uses.size() != 1) continue;
      double& weight = weights[static_cast<std::size_t>(option.uses.front().island_class)];
      const auto blocks = static_cast<double>(fastest_.blocks_of(signature));
      weight = std::max(weight, blocks / option.uses.front().units);
      const auto spend = static_cast<double>(program_.spend_of(option));
      if (spend > 0) weights.back() = std::max(weights.back(), blocks / spend);
    }
  }
  return weights;
}

void CompletionBound::ascend(std::vector<double> lambda, int iterations, double enough, Extent extent) {
  std::vector<double> best = lambda;
  double best_value = -kNoCompletion;
  double step = 0;
  for (int i = 0; i <= iterations; ++i) {
    const std::vector<double> option_price = option_prices(lambda);
    const double whole = relax(option_price, true, Extent::kRoot, phi_);
    if (whole == kNoCompletion) return;
    const double value = whole - worth(lambda, supplies_);
    // Where the units do not suffice, prices grow without end. They must not become so large that sums are rounded.
    if (value > fastest_.dearest() + 1.0) return;
    const std::vector<double> usage = usage_of(option_price);
    double norm = 0;
    const auto excess_of = [&](std::size_t k) {
      return usage[k] / static_cast<double>(std::max<std::int64_t>(1, supplies_[k])) - 1.0;
    };
    for (std::size_t k = 0; k < supplies_.size(); ++k) {
      const double excess = excess_of(k);
      if (excess > 0 || lambda[k] > 0) norm += excess * excess;
    }
    if (value > best_value) {
      best_value = value;
      best = lambda;
    }
    if (norm < 1e-12 || best_value >= enough || i == iterations) break;
    if (i == 0) step = 0.5 * std::max(whole, 1.0);
    for (std::size_t k = 0; k < supplies_.size(); ++k) {
      const auto most = static_cast<double>(std::max<std::int64_t>(1, supplies_[k]));
      lambda[k] = std::max(0.0, lambda[k] + step * excess_of(k) / most / std::sqrt(norm));
    }
    step *= kStepDecay;
  }
  lambda_ = best;
  root_ = best_value;
  if (extent == Extent::kRoot) return;
  unit_price_ = option_prices(lambda_);
  relax(unit_price_, true, Extent::kAll, phi_);
}

std::vector<double> CompletionBound::option_prices(const std::vector<double>& prices) const {
  std::vector<double> result;
  result.reserve(program_.options.size());
  for (const Option& option : program_.options) result.push_back(option_price(program_, option, prices));
  return result;
}

// Fills `table` with phi (or need) for the prices; returns the value for the whole model.
double CompletionBound::relax(const std::vector<double>& option_price, bool with_time, Extent extent,
                              std::vector<double>& table) {
  fill_envelope(with_time ? cheapest_times(option_price) : cheapest_units(option_price), extent);
  fill_table(with_time, extent, table);
  return table[cell(program_.blocks, 1)];
}

// Each option takes longer at greater depths.
std::vector<std::size_t> CompletionBound::lists_within() const {
  std::vector<std::size_t> within;
  for (const FastestPlans::Table& table : fastest_.tables()) {
    for (auto row = table.times.begin(); row != table.times.end(); row += static_cast<std::ptrdiff_t>(table.lists)) {
      const auto end = row + static_cast<std::ptrdiff_t>(table.lists);
      within.push_back(static_cast<std::size_t>(std::upper_bound(row, end, longest_period_) - row));
    }
  }
  return within;
}

// By list, with its price.
std::vector<double> CompletionBound::cheapest_times(const std::vector<double>& option_price) const {
  std::vector<double> cheapest(fastest_.lists(), kNoCompletion);
  auto within = within_.begin();
  for (const FastestPlans::Table& table : fastest_.tables()) {
    const double* costs = table.costs.data();
    for (const int option : table.options) {
      lower_to_sums(&cheapest[table.first_list], costs, option_price[static_cast<std::size_t>(option)], *within++);
      costs += table.lists;
    }
  }
  return cheapest;
}

// Without time.
std::vector<double> CompletionBound::cheapest_units(const std::vector<double>& option_price) const {
  std::vector<double> cheapest(fastest_.lists(), kNoCompletion);
  for (std::size_t i = 0; i < cheapest.size(); ++i) {
    for (const FastestPlans::Entry& entry : fastest_.list(i)) {
      if (entry.T > longest_period_) break;
      cheapest[i] = std::min(cheapest[i], option_price[static_cast<std::size_t>(entry.option)]);
    }
  }
  return cheapest;
}

// The root looks no deeper than there are blocks beside the slice.
void CompletionBound::fill_envelope(const std::vector<double>& cheapest, Extent extent) {
  envelope_.resize(static_cast<std::size_t>(program_.signatures) * static_cast<std::size_t>(depths_ + 1));
  reach_ = 0;
  for (int signature = 0; signature < program_.signatures; ++signature) {
    const int beside = program_.blocks - fastest_.blocks_of(signature);
    const int deepest = extent == Extent::kAll ? depths_ : std::min(depths_, beside + 1);
    double* const row = &envelope_[fastest_.cell(signature, 0)];
    // What does not hold one microbatch does not hold more.
    if (cheapest[fastest_.list_at(signature, 1)] == kNoCompletion) {
      std::fill_n(row + 1, deepest, kNoCompletion);
      continue;
    }
    for (int d = 1; d <= deepest; ++d) row[d] = cheapest[fastest_.list_at(signature, d)];
    reach_ = std::max(reach_, fastest_.blocks_of(signature));
  }
  first_envelope_.resize(cell(program_.blocks + 1, 0));
  for (int last = 1; last <= program_.blocks; ++last) {
    for (int d = 1; d <= depths_; ++d) first_envelope_[cell(last, d)] = cheapest[fastest_.first_list_at(last, d)];
  }
}

// The root looks no deeper than there are blocks behind: each stage has one at least. Latency may hold more in flight.
void CompletionBound::fill_table(bool with_time, Extent extent, std::vector<double>& table) const {
  const int blocks = program_.blocks;
  table.assign(cell(blocks + 1, 0), kNoCompletion);
  for (int d = 0; d <= depths_; ++d) table[cell(0, d)] = 0;
  for (int i = 1; i <= blocks; ++i) {
    const int first_depth = i == blocks ? 1 : std::min(2, depths_);
    const int deepest = extent == Extent::kAll ? depths_ : std::min(depths_, blocks - i + 1);
    const int last_depth = i == blocks ? 1 : deepest;
    const int deeper = std::min(last_depth, depths_ - 1);  // up to here the next depth is one more
    double* const here = &table[cell(i, 0)];
    for (int d = first_depth; d <= last_depth; ++d) here[d] = first_envelope_[cell(i, d)];
    const auto slices = static_cast<std::size_t>(std::min(i - 1, reach_));
    if (slices > 0) {
      const RowTable stages{envelope_.data(), fastest_.cell(1, 0)};
      const std::span<const int> ending = fastest_.ending_at(i).first(slices);
      const std::size_t row = cell(1, 0);
      const double* const rest = &table[cell(i - 1, 0)];
      if (deeper >= first_depth) {
        lower_to_sums(here + first_depth, {stages.first + first_depth, stages.stride}, ending, rest + first_depth + 1,
                      row, static_cast<std::size_t>(deeper) + 1 - static_cast<std::size_t>(first_depth));
      }
      if (last_depth == depths_) {
        lower_to_sums(here + depths_, {stages.first + depths_, stages.stride}, ending, rest + depths_, row, 1);
      }
    }
    if (i == blocks || !with_time) continue;
    for (int d = first_depth; d <= last_depth; ++d) here[d] += fastest_.round_trip(i);
  }
}

// The supplies that the solution behind phi takes: follows the choices that it was made of, found again by their
// values; few cells are on the way.
std::vector<double> CompletionBound::usage_of(const std::vector<double>& option_price) const {
  std::vector<double> usage(supplies_.size(), 0);
  for (int i = program_.blocks, d = 1; i > 0;) {
    const int next = std::min(d + 1, depths_);
    double best = first_envelope_[cell(i, d)];
    int blocks = i;
    const std::span<const int> ending = fastest_.ending_at(i);
    for (int n = 1; n <= std::min(i - 1, reach_); ++n) {
      const double cost =
          envelope_[fastest_.cell(ending[static_cast<std::size_t>(n - 1)], d)] + phi_[cell(i - n, next)];
      if (cost >= best) continue;
      best = cost;
      blocks = n;
    }
    const std::size_t list =
        blocks == i ? fastest_.first_list_at(i, d) : fastest_.list_at(program_.signature_of(i - blocks, i), d);
    const int option = cheapest_option(list, option_price);
    add_use<double>(program_, program_.options[static_cast<std::size_t>(option)], 1, usage);
    i -= blocks;
    d = next;
  }
  return usage;
}

int CompletionBound::cheapest_option(std::size_t list, const std::vector<double>& option_price) const {
  double best = kNoCompletion;
  int option = 0;
  for (const FastestPlans::Entry& entry : fastest_.list(list)) {
    if (entry.T > longest_period_ || entry.T >= best) break;
    const double cost = entry.cost + option_price[static_cast<std::size_t>(entry.option)];
    if (cost >= best) continue;
    best = cost;
    option = entry.option;
  }
  return option;
}

}  // namespace tangram::compose
