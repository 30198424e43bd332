#include "components.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace tangram::chain {

namespace {

// Keys joined by boundaries that are quick enough; each named by one of its component.
class JoinedKeys {
 public:
  JoinedKeys(const Program& program, std::int64_t interest)
      : name_(static_cast<std::size_t>(program.keys)), meets_(name_.size(), 0) {
    std::iota(name_.begin(), name_.end(), std::size_t{0});
    const std::size_t keys = name_.size();
    for (std::size_t i = 0; i < program.prices.size(); ++i) {
      if (is_quick(program.prices[i], program.microbatches, interest)) join(i / keys % keys, i % keys);
    }
  }

  [[nodiscard]] std::size_t component_of(int key) const { return find(static_cast<std::size_t>(key)); }
  /// Whether any stage may be a neighbour of one with the key.
  [[nodiscard]] bool has_neighbours(int key) const { return meets_[static_cast<std::size_t>(key)] != 0; }

 private:
  static bool is_quick(const Price& price, std::int64_t microbatches, std::int64_t interest) {
    const std::int64_t rest = interest - 1 - 2 * price.latency;
    return rest >= 0 && (microbatches == 1 || price.occupancy <= rest / (microbatches - 1));
  }

  [[nodiscard]] std::size_t find(std::size_t key) const {
    while (name_[key] != key) key = name_[key];
    return key;
  }

  void join(std::size_t a, std::size_t b) {
    meets_[a] = meets_[b] = 1;
    a = find(a);
    b = find(b);
    name_[std::max(a, b)] = std::min(a, b);
  }

  std::vector<std::size_t> name_;
  std::vector<std::uint8_t> meets_;
};

// Whether an option can be a stage of a chain: beside others, or of all blocks alone.
bool is_of_use(const Program& program, int option, const JoinedKeys& joined) {
  if (!joined.has_neighbours(program.options[static_cast<std::size_t>(option)].key)) {
    return !program.frontier(option, program.signature_of(0, program.blocks)).empty();
  }
  for (int s = 0; s < program.signatures; ++s) {
    if (!program.frontier(option, s).empty()) return true;
  }
  return false;
}

template <class Row>
void append_row(const std::vector<Row>& rows, int option, std::size_t length, std::vector<Row>& to) {
  if (rows.empty()) return;
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(option) * length);
  to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(length));
}

std::vector<Price> prices_between(const Program& program, const std::vector<int>& keys) {
  std::vector<Price> prices;
  const auto all = static_cast<std::size_t>(program.keys);
  for (std::size_t kind = 0; kind < static_cast<std::size_t>(program.cut_kinds); ++kind) {
    for (const int from : keys) {
      for (const int to : keys) {
        prices.push_back(
            program.prices[(kind * all + static_cast<std::size_t>(from)) * all + static_cast<std::size_t>(to)]);
      }
    }
  }
  return prices;
}

// Keys are numbered anew, in ascending order, so that no price to a shape outside counts; classes that no option uses
// have no units.
Component restrict(const Program& program, std::vector<int> options) {
  Component part;
  Program& inner = part.program;
  inner.blocks = program.blocks;
  inner.microbatches = program.microbatches;
  inner.inventory.assign(program.inventory.size(), 0);
  inner.unit_spend = program.unit_spend;
  inner.most_spend = program.most_spend;
  inner.placement = program.placement;
  inner.signatures = program.signatures;
  inner.signature = program.signature;
  inner.slowest = program.slowest;
  inner.cut_kinds = program.cut_kinds;
  inner.cut_kind = program.cut_kind;
  inner.classic_warmup = program.classic_warmup;
  inner.blocking_transfers = program.blocking_transfers;
  std::vector<int> keys;
  for (const int option : options) keys.push_back(program.options[static_cast<std::size_t>(option)].key);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  inner.keys = static_cast<int>(keys.size());
  inner.prices = prices_between(program, keys);
  const auto signatures = static_cast<std::size_t>(program.signatures);
  for (const int option : options) {
    Option kept = program.options[static_cast<std::size_t>(option)];
    kept.key = static_cast<int>(std::ranges::lower_bound(keys, kept.key) - keys.begin());
    for (const Use& use : kept.uses) {
      const auto k = static_cast<std::size_t>(use.island_class);
      inner.inventory[k] = program.inventory[k];
    }
    inner.options.push_back(std::move(kept));
    append_row(program.frontiers, option, signatures, inner.frontiers);
    append_row(program.least_forward, option, signatures, inner.least_forward);
    append_row(program.least_backward, option, signatures, inner.least_backward);
    append_row(program.drains, option, static_cast<std::size_t>(program.blocks) + 1, inner.drains);
  }
  part.options = std::move(options);
  return part;
}

}  // namespace

std::vector<Component> components_of(const Program& program, std::int64_t interest, const SolverTuning& tuning) {
  if (interest == INT64_MAX || !tuning.cuts.components) return {};
  const JoinedKeys joined(program, interest);
  std::vector<std::vector<int>> members(static_cast<std::size_t>(program.keys));
  std::vector<std::size_t> order;
  for (int option = 0; option < static_cast<int>(program.options.size()); ++option) {
    const std::size_t name = joined.component_of(program.options[static_cast<std::size_t>(option)].key);
    if (!is_of_use(program, option, joined)) continue;
    if (members[name].empty()) order.push_back(name);
    members[name].push_back(option);
  }
  if (order.size() == 1 && members[order.front()].size() == program.options.size()) return {};
  std::vector<Component> components;
  for (const std::size_t name : order) components.push_back(restrict(program, std::move(members[name])));
  return components;
}

}  // namespace tangram::chain
