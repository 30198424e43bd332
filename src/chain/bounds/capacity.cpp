#include "capacity.hpp"

#include <algorithm>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::chain {

Capacity::Capacity(const Program& program, const FastestPlans& fastest, std::int64_t longest_period, RootAlone)
    : program_(program), fastest_(fastest), period_(longest_period), depths_(fastest.depths()) {
  choose_weights();
}

Capacity::Capacity(const Program& program, const FastestPlans& fastest, std::int64_t longest_period)
    : Capacity(program, fastest, longest_period, RootAlone{}) {
  if (covers_all_ && is_on()) fill_tables();
}

// Those under which least is left over.
void Capacity::choose_weights() {
  double least = 0;
  for (const BlockWeights& weights : fastest_.weights()) {
    const std::int64_t needed = weights.of_first.back();
    const std::int64_t held = held_by_all(heaviest_slices(weights));
    if (held < needed && is_on()) covers_all_ = false;
    const double spare = static_cast<double>(held) / static_cast<double>(needed);
    if (weights_ != nullptr && spare >= least) continue;
    least = spare;
    weights_ = &weights;
  }
}

// Raises the heaviest slice of every option that runs one of this weight within the period.
void Capacity::note_slices(std::size_t list, std::int64_t weight, std::span<std::int64_t> heaviest) const {
  for (const FastestPlans::Entry& entry : fastest_.list(list)) {
    if (entry.T > static_cast<double>(period_)) break;
    std::int64_t& slice = at(heaviest, entry.option);
    slice = std::max(slice, weight);
  }
}

// [option] at a depth of 1.
std::vector<std::int64_t> Capacity::heaviest_slices(const BlockWeights& weights) const {
  std::vector<std::int64_t> slices(program_.options.size(), 0);
  for (int signature = 0; signature < program_.signatures; ++signature) {
    note_slices(fastest_.list_at(signature, 1), at(weights.of_signature, signature), slices);
  }
  return slices;
}

// What stages of every class can be: units and weight, from the heaviest slices of the options.
std::vector<std::vector<Capacity::Item>> Capacity::items_of(std::span<const std::int64_t> slices) const {
  std::vector<std::vector<Item>> items(program_.inventory.size());
  std::vector<double> dense(items.size(), 0);  // weight that a unit of the class holds at most
  for (std::size_t option = 0; option < slices.size(); ++option) {
    const std::vector<Use>& uses = program_.options[option].uses;
    if (slices[option] == 0 || uses.size() != 1) continue;
    const Use& use = uses.front();
    at(items, use.island_class).push_back({use.units, slices[option]});
    double& most = at(dense, use.island_class);
    most = std::max(most, static_cast<double>(slices[option]) / use.units);
  }
  for (std::size_t option = 0; option < slices.size(); ++option) {
    const std::vector<Use>& uses = program_.options[option].uses;
    if (slices[option] == 0 || uses.size() == 1) continue;
    double together = 0;
    for (const Use& use : uses) together += at(dense, use.island_class) * use.units;
    std::int64_t rest = slices[option];
    for (const Use& use : uses) {
      const double share = together > 0 ? at(dense, use.island_class) * use.units / together : 1;
      const bool is_last = &use == &uses.back();
      const std::int64_t part =
          is_last ? rest : std::min(rest, static_cast<std::int64_t>(share * static_cast<double>(slices[option])));
      rest -= part;
      at(items, use.island_class).push_back({use.units, part});
    }
  }
  return items;
}

// [u] the most that items can hold on u units, each as often as wanted.
void Capacity::fill_row(std::span<const Item> items, std::span<std::int64_t> row) {
  std::ranges::fill(row, 0);
  for (const Item& item : items) {
    const auto units = static_cast<std::size_t>(item.units);
    for (std::size_t u = units; u < row.size(); ++u) row[u] = std::max(row[u], row[u - units] + item.weight);
  }
}

std::int64_t Capacity::held_by_all(std::span<const std::int64_t> slices) const {
  const std::vector<std::vector<Item>> items = items_of(slices);
  std::int64_t held = 0;
  std::vector<std::int64_t> row;
  for (std::size_t k = 0; k < items.size(); ++k) {
    row.resize(static_cast<std::size_t>(program_.inventory[k]) + 1);
    fill_row(items[k], row);
    held += row.back();
  }
  return held;
}

// By depth and option.
Grid<std::int64_t> Capacity::heaviest_slices_by_depth() const {
  Grid<std::int64_t> slices(depths_ + 1, program_.options.size());
  for (int signature = 0; signature < program_.signatures; ++signature) {
    const std::int64_t weight = at(weights_->of_signature, signature);
    for (int depth = 1; depth <= depths_; ++depth) {
      // What holds a depth holds all smaller ones: the last of a run of equal lists stands for them.
      const std::size_t list = fastest_.list_at(signature, depth);
      if (depth < depths_ && fastest_.list_at(signature, depth + 1) == list) continue;
      note_slices(list, weight, slices.row(depth));
    }
  }
  for (int depth = depths_ - 1; depth >= 1; --depth) {
    for (int option = 0; option < slices.columns(); ++option) {
      std::int64_t& here = slices(depth, option);
      here = std::max(here, slices(depth + 1, option));
    }
  }
  return slices;
}

void Capacity::fill_tables() {
  const std::size_t classes = program_.inventory.size();
  const Grid<std::int64_t> slices = heaviest_slices_by_depth();
  rows_.assign(depths_ + 1, classes, 0);
  std::vector<std::vector<Item>> before;
  for (int depth = 1; depth <= depths_; ++depth) {
    std::vector<std::vector<Item>> items = items_of(slices.row(depth));
    for (std::size_t k = 0; k < classes; ++k) {
      std::size_t& begin = rows_(depth, k);
      if (depth > 1 && items[k] == before[k]) {
        begin = rows_(depth - 1, k);
        continue;
      }
      const auto length = static_cast<std::size_t>(program_.inventory[k]) + 1;
      begin = tables_.size();
      tables_.resize(begin + length);
      fill_row(items[k], std::span(tables_).subspan(begin, length));
    }
    before = std::move(items);
  }
}

bool Capacity::covers_after(const Option& option, int blocks, std::int64_t depth,
                            std::span<const std::int64_t> left) const {
  if (!is_on()) return true;
  const std::span<const std::size_t> rows = rows_.row(std::min<std::int64_t>(depth, depths_));
  std::int64_t held = 0;
  for (std::size_t k = 0; k < rows.size(); ++k) held += held_on(rows[k], left[k]);
  for (const Use& use : option.uses) {
    const std::int64_t before = at(left, use.island_class);
    if (use.units > before) return false;
    const std::size_t row = at(rows, use.island_class);
    held += held_on(row, before - use.units) - held_on(row, before);
  }
  return held >= at(weights_->of_first, blocks);
}

std::int64_t Capacity::held_beside(const Option& option, std::span<const std::int64_t> left) const {
  if (!is_on()) return INT64_MAX;
  const std::span<const std::size_t> rows = rows_.row(1);
  std::int64_t held = 0;
  for (std::size_t k = 0; k < rows.size(); ++k) held += held_on(rows[k], left[k]);
  for (const Use& use : option.uses) {
    const std::size_t row = at(rows, use.island_class);
    const std::int64_t before = at(left, use.island_class);
    held += held_on(row, before - use.units) - held_on(row, before);
  }
  return held;
}

std::int64_t shortest_period(const Program& program, const FastestPlans& fastest, std::int64_t longest) {
  const auto covers_all = [&](std::int64_t period) {
    return Capacity(program, fastest, period, Capacity::RootAlone{}).covers_all();
  };
  if (!covers_all(longest)) return INT64_MAX;
  std::int64_t too_short = 0;
  std::int64_t enough = longest;
  while (too_short + 1 < enough) {
    const std::int64_t middle = too_short + (enough - too_short) / 2;
    (covers_all(middle) ? enough : too_short) = middle;
  }
  return enough;
}

}  // namespace tangram::chain
