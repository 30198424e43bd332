#include "knapsack_bound.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "min_plus.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

// Without items that are no cheaper than another of as few units and as much weight.
template <class Item>
void drop_beaten(std::vector<Item>& items) {
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tuple(a.cost, a.units, -a.weight) < std::tuple(b.cost, b.units, -b.weight);
  });
  std::vector<Item> kept;
  for (const Item& item : items) {
    const bool beaten = std::any_of(kept.begin(), kept.end(), [&](const Item& other) {
      return other.units <= item.units && other.weight >= item.weight;
    });
    if (!beaten) kept.push_back(item);
  }
  items = std::move(kept);
}

// Lowers row[w] to what an item makes of `before`, the row of the units that it leaves.
void put(const std::vector<double>& before, int weight, double cost, std::vector<double>& row) {
  const auto most = static_cast<std::size_t>(weight);
  const std::size_t within = std::min(most, row.size());
  for (std::size_t w = 0; w < within; ++w) row[w] = std::min(row[w], before[0] + cost);
  if (within < row.size()) min_plus_update(&row[within], before.data(), cost, row.size() - within);
}

}  // namespace

double KnapsackBound::convolution_at(const Costs& a, const Costs& b, std::size_t weight) {
  return min_plus_product(a.of.data(), b.back.data() + (b.back.size() - 1 - weight), weight + 1);
}

std::size_t KnapsackBound::UnitsKeyHash::operator()(const UnitsKey& key) const {
  std::uint64_t h = key.low * std::uint64_t{0x9E3779B97F4A7C15};
  h ^= (key.high + 0x7F4A7C15U) * std::uint64_t{0xC2B2AE3D27D4EB4F} + (h << 6) + (h >> 2);
  return static_cast<std::size_t>(h ^ (h >> 29));
}

KnapsackBound::KnapsackBound(const Program& program, const FastestPlans& fastest, const BlockWeights& weights,
                             std::int64_t period)
    : program_(program), fastest_(fastest), weights_(weights), period_(period) {
  total_ = static_cast<int>(weights_.of_first.back() / kBlockWeight);
  hop_ = program.blocks > 1 ? kNoCompletion : 0;
  for (int cut = 1; cut < program.blocks; ++cut) hop_ = std::min(hop_, fastest_.round_trip(cut));
  dense_.assign(program.inventory.size(), 0);
  grain_.assign(program.inventory.size(), 0);
  for (const Option& option : program.options) {
    for (const Use& use : option.uses) {
      int& grain = at(grain_, use.island_class);
      grain = std::gcd(grain, use.units);
    }
  }
  for (std::size_t k = 0; k < grain_.size(); ++k) {
    if (grain_[k] > 0) active_.push_back(k);
  }
  tiers_.resize(tier_depths().size());
  shared_.resize(tier_depths().size());
  for (int signature = 0; signature < program.signatures; ++signature) {
    const auto weight = static_cast<double>(at(weights_.of_signature, signature));
    for (const FastestPlans::Entry& entry : fastest_.list(fastest_.list_at(signature, 1))) {
      if (entry.T > static_cast<double>(period_)) break;
      const std::vector<Use>& uses = at(program.options, entry.option).uses;
      if (uses.size() > 1) continue;
      double& dense = at(dense_, uses.front().island_class);
      dense = std::max(dense, weight / uses.front().units);
    }
  }
}

std::size_t KnapsackBound::tier(std::int64_t depth) const {
  const auto most = std::min<std::int64_t>(depth, fastest_.depths());
  const auto above = std::upper_bound(tier_depths().begin(), tier_depths().end(), most);
  return static_cast<std::size_t>(above - tier_depths().begin()) - 1;
}

// A mixed stage counts for each of its classes with a part of its blocks and as large a part of its time. Only one of
// them can be where the first stage is.
void KnapsackBound::add_parts(const Option& option, int weight, double cost, bool is_first,
                              std::vector<Items>& items) const {
  double together = 0;
  for (const Use& use : option.uses) together += at(dense_, use.island_class) * use.units;
  int rest = weight;
  double cost_left = cost;
  for (const Use& use : option.uses) {
    const bool is_last = &use == &option.uses.back();
    const double share = together > 0 ? at(dense_, use.island_class) * use.units / together : 1;
    const int part = is_last ? rest : std::min(rest, static_cast<int>(share * weight));
    const double price = is_last ? cost_left : cost * part / std::max(weight, 1);
    rest -= part;
    cost_left -= price;
    const Item item{use.units / at(grain_, use.island_class), part, std::max(0.0, price)};
    Items& of_class = at(items, use.island_class);
    (is_first && &use == &option.uses.front() ? of_class.first : of_class.inner).push_back(item);
  }
}

std::vector<KnapsackBound::Items> KnapsackBound::items_at(int depth) const {
  std::vector<Items> items(program_.inventory.size());
  const auto period = static_cast<double>(period_);
  Grid<double> least(program_.options.size(), total_ + 1, kNoCompletion);  // by option and weight
  for (int signature = 0; signature < program_.signatures; ++signature) {
    const std::int64_t weight = at(weights_.of_signature, signature) / kBlockWeight;
    for (const FastestPlans::Entry& entry : fastest_.list(fastest_.list_at(signature, depth))) {
      if (entry.T > period) break;
      double& here = least(entry.option, weight);
      here = std::min(here, entry.cost);
    }
  }
  for (std::size_t option = 0; option < program_.options.size(); ++option) {
    for (int weight = 0; weight <= total_; ++weight) {
      const double cost = least(option, weight);
      if (cost == kNoCompletion) continue;
      add_parts(program_.options[option], weight, cost + hop_, false, items);
    }
  }
  for (int last = 1; last <= program_.blocks; ++last) {
    const auto weight = static_cast<int>(at(weights_.of_first, last) / kBlockWeight);
    for (const FastestPlans::Entry& entry : fastest_.list(fastest_.first_list_at(last, depth))) {
      if (entry.T > period) break;
      add_parts(at(program_.options, entry.option), weight, entry.cost + hop_, true, items);
    }
  }
  for (Items& of_class : items) {
    drop_beaten(of_class.inner);
    drop_beaten(of_class.first);
  }
  return items;
}

void KnapsackBound::reverse(Row& row) {
  for (Costs* costs : {&row.inner, &row.first}) costs->back.assign(costs->of.rbegin(), costs->of.rend());
}

void KnapsackBound::fill(Tables& tables) const {
  tables.joined.resize((active_.size() + 1) * (active_.size() + 1));
  tables.by_class.resize(program_.inventory.size());
  const auto length = static_cast<std::size_t>(total_) + 1;
  for (const std::size_t k : active_) {
    std::vector<Row>& rows = tables.by_class[k];
    const int most = program_.inventory[k] / grain_[k];
    rows.resize(static_cast<std::size_t>(most) + 1);
    rows[0].inner.of.assign(length, kNoCompletion);
    rows[0].inner.of[0] = 0;
    rows[0].first.of.assign(length, kNoCompletion);
    for (int units = 1; units <= most; ++units) {
      Row& here = at(rows, units);
      here = at(rows, units - 1);
      for (const Item& item : tables.items[k].inner) {
        if (item.units > units) continue;
        put(at(rows, units - item.units).inner.of, item.weight, item.cost, here.inner.of);
      }
      for (const Item& item : tables.items[k].first) {
        if (item.units > units) continue;
        put(at(rows, units - item.units).inner.of, item.weight, item.cost, here.first.of);
      }
    }
    for (Row& row : rows) reverse(row);
  }
}

KnapsackBound::Tables& KnapsackBound::tables_at(std::int64_t depth) {
  const std::size_t at = tier(depth);
  if (!tiers_[shared_[at]] || (shared_[at] == 0 && at != 0)) {
    std::vector<Items> items = items_at(tier_depths()[at]);
    shared_[at] = at;
    for (std::size_t other = 0; other < tiers_.size(); ++other) {
      if (tiers_[other] && tiers_[other]->items == items) shared_[at] = other;
    }
    if (!tiers_[shared_[at]]) {
      tiers_[at] = std::make_unique<Tables>(Tables{std::move(items), {}, {}});
      fill(*tiers_[at]);
    }
  }
  return *tiers_[shared_[at]];
}

// Of classes [from, to) of the active ones, up to a weight: searches ask for less and less.
const KnapsackBound::Row& KnapsackBound::row(Tables& tables, std::size_t from, std::size_t to,
                                             std::span<const std::int64_t> left, std::size_t weight) {
  if (to - from == 1) {
    const std::size_t k = active_[from];
    return at(tables.by_class[k], left[k] / grain_[k]);
  }
  auto& known_rows = tables.joined[from * (active_.size() + 1) + to];
  Row& joined = known_rows[key_of(from, to, left)];
  if (joined.inner.of.size() > weight) return joined;
  const std::size_t middle = (from + to) / 2;
  const Row& a = row(tables, from, middle, left, weight);
  const Row& b = row(tables, middle, to, left, weight);
  joined.inner.of.resize(weight + 1);
  joined.first.of.resize(weight + 1);
  for (std::size_t w = 0; w <= weight; ++w) {
    joined.inner.of[w] = convolution_at(a.inner, b.inner, w);
    joined.first.of[w] = std::min(convolution_at(a.first, b.inner, w), convolution_at(a.inner, b.first, w));
  }
  reverse(joined);
  return joined;
}

KnapsackBound::UnitsKey KnapsackBound::key_of(std::size_t from, std::size_t to,
                                              std::span<const std::int64_t> left) const {
  UnitsKey key;
  std::uint64_t scale = 1;
  std::uint64_t* word = &key.low;
  for (std::size_t i = from; i < to; ++i) {
    const std::size_t k = active_[i];
    const auto radix = static_cast<std::uint64_t>(program_.inventory[k] / grain_[k]) + 1;
    if (scale > UINT64_MAX / radix) {
      TANGRAM_ASSERT(word == &key.low);
      word = &key.high;
      scale = 1;
    }
    *word += scale * static_cast<std::uint64_t>(left[k] / grain_[k]);
    scale *= radix;
  }
  return key;
}

double KnapsackBound::rest(int blocks, std::int64_t depth, std::span<const std::int64_t> left) {
  Tables& tables = tables_at(depth);
  const auto weight = static_cast<std::size_t>(at(weights_.of_first, blocks) / kBlockWeight);
  if (active_.empty()) return kNoCompletion;
  if (active_.size() == 1) return row(tables, 0, 1, left, weight).first.of[weight];
  const std::size_t middle = active_.size() / 2;
  const Row& a = row(tables, 0, middle, left, weight);
  const Row& b = row(tables, middle, active_.size(), left, weight);
  return std::min(convolution_at(a.first, b.inner, weight), convolution_at(a.inner, b.first, weight));
}

double KnapsackBound::root() {
  const std::vector<std::int64_t> resources(program_.inventory.begin(), program_.inventory.end());
  double best = kNoCompletion;
  for (int n = 1; n <= program_.blocks; ++n) {
    const bool whole = n == program_.blocks;
    const std::size_t list = whole ? fastest_.first_list_at(n, 1)
                                   : fastest_.list_at(program_.signature_of(program_.blocks - n, program_.blocks), 1);
    for (const FastestPlans::Entry& entry : fastest_.list(list)) {
      if (entry.T > static_cast<double>(period_)) break;
      if (whole) {
        best = std::min(best, entry.cost);
        continue;
      }
      if (entry.cost >= best) continue;
      std::vector<std::int64_t> left = resources;
      const std::vector<Use>& uses = at(program_.options, entry.option).uses;
      for (const Use& use : uses) at(left, use.island_class) -= use.units;
      if (std::any_of(left.begin(), left.end(), [](std::int64_t units) { return units < 0; })) continue;
      best = std::min(best, entry.cost + rest(program_.blocks - n, 2, left));
    }
  }
  return best;
}

}  // namespace tangram::chain
