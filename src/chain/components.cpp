#include "components.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"

namespace tangram::chain {

namespace {

// Keys joined by boundaries that are quick enough; each named by one of its component.
class JoinedKeys {
 public:
  JoinedKeys(const Program& program, std::int64_t interest)
      : name_(static_cast<std::size_t>(program.keys)), meets_(name_.size(), 0) {
    std::iota(name_.begin(), name_.end(), 0);
    for (const Grid<Price>& of_kind : program.prices) {
      for (int from = 0; from < program.keys; ++from) {
        for (int to = 0; to < program.keys; ++to) {
          if (is_quick(of_kind(from, to), program.microbatches, interest)) join(from, to);
        }
      }
    }
  }

  [[nodiscard]] int component_of(int key) const {
    while (at(name_, key) != key) key = at(name_, key);
    return key;
  }
  /// Whether any stage may be a neighbour of one with the key.
  [[nodiscard]] bool has_neighbours(int key) const { return at(meets_, key) != 0; }

 private:
  static bool is_quick(const Price& price, std::int64_t microbatches, std::int64_t interest) {
    const std::int64_t rest = interest - 1 - 2 * price.latency;
    return rest >= 0 && (microbatches == 1 || price.occupancy <= rest / (microbatches - 1));
  }

  void join(int a, int b) {
    at(meets_, a) = at(meets_, b) = 1;
    a = component_of(a);
    b = component_of(b);
    at(name_, std::max(a, b)) = std::min(a, b);
  }

  std::vector<int> name_;
  std::vector<std::uint8_t> meets_;
};

// Whether an option can be a stage of a chain: beside others, or of all blocks alone.
bool is_of_use(const Program& program, int option, const JoinedKeys& joined) {
  if (!joined.has_neighbours(at(program.options, option).key)) {
    return !program.frontier(option, program.signature_of(0, program.blocks)).empty();
  }
  for (int s = 0; s < program.signatures; ++s) {
    if (!program.frontier(option, s).empty()) return true;
  }
  return false;
}

template <class Cell>
void append_row(const Grid<Cell>& rows, int option, Grid<Cell>& to) {
  if (!rows.empty()) to.add_row(rows.row(option));
}

Grid<Price> prices_between(const Grid<Price>& all, const std::vector<int>& keys) {
  Grid<Price> prices(keys.size(), keys.size());
  for (std::size_t from = 0; from < keys.size(); ++from) {
    for (std::size_t to = 0; to < keys.size(); ++to) prices(from, to) = all(keys[from], keys[to]);
  }
  return prices;
}

// Keys are numbered anew, in ascending order, so that no price to a shape outside counts; classes that no option uses
// have no units.
Component restrict(const Program& program, std::vector<int> options) {
  Component part;
  Program& inner = part.program;
  inner.blocks = program.blocks;
  inner.blocks_before = program.blocks_before;
  inner.microbatches = program.microbatches;
  inner.inventory.assign(program.inventory.size(), 0);
  inner.unit_spend = program.unit_spend;
  inner.most_spend = program.most_spend;
  inner.placement = program.placement;
  inner.signatures = program.signatures;
  inner.signature = program.signature;
  inner.slowest = program.slowest;
  inner.cut_kind = program.cut_kind;
  inner.classic_warmup = program.classic_warmup;
  inner.blocking_transfers = program.blocking_transfers;
  inner.zero_bubble = program.zero_bubble;
  inner.interleaving = program.interleaving;
  std::vector<int> keys;
  for (const int option : options) keys.push_back(at(program.options, option).key);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  inner.keys = static_cast<int>(keys.size());
  for (const Grid<Price>& of_kind : program.prices) inner.prices.push_back(prices_between(of_kind, keys));
  if (program.is_interleaved()) inner.interleaving.around = prices_between(program.interleaving.around, keys);
  for (const int option : options) {
    Option kept = at(program.options, option);
    kept.key = static_cast<int>(std::ranges::lower_bound(keys, kept.key) - keys.begin());
    for (const Use& use : kept.uses) at(inner.inventory, use.island_class) = at(program.inventory, use.island_class);
    inner.options.push_back(std::move(kept));
    append_row(program.frontiers, option, inner.frontiers);
    append_row(program.least_forward, option, inner.least_forward);
    append_row(program.least_backward, option, inner.least_backward);
    append_row(program.drains, option, inner.drains);
    append_row(program.work_before, option, inner.work_before);
  }
  part.options = std::move(options);
  return part;
}

}  // namespace

std::vector<Component> components_of(const Program& program, std::int64_t interest, const SolverTuning& tuning) {
  if (interest == INT64_MAX || !tuning.cuts.components) return {};
  const JoinedKeys joined(program, interest);
  std::vector<std::vector<int>> members(static_cast<std::size_t>(program.keys));
  std::vector<int> order;
  for (int option = 0; option < static_cast<int>(program.options.size()); ++option) {
    const int name = joined.component_of(at(program.options, option).key);
    if (!is_of_use(program, option, joined)) continue;
    if (at(members, name).empty()) order.push_back(name);
    at(members, name).push_back(option);
  }
  if (order.size() == 1 && at(members, order.front()).size() == program.options.size()) return {};
  std::vector<Component> components;
  for (const int name : order) components.push_back(restrict(program, std::move(at(members, name))));
  return components;
}

}  // namespace tangram::chain
