#include "range_costs.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace tangram::relax {

using duals::PriceSearch;
using duals::product;
using duals::search_prices;

namespace {

constexpr double kRounding = 1e-9;

// One by one as long as blocks are few on a stage or many: rounding them down differs from one number to the next.
std::vector<Range> fine_ranges(std::int64_t batch, double step) {
  std::vector<Range> ranges;
  for (std::int64_t first = 1; first <= batch;) {
    const std::int64_t next = static_cast<std::int64_t>(static_cast<double>(first) * step) + 1;
    ranges.push_back({first, std::min(next - 1, batch)});
    first = next;
  }
  return ranges;
}

// Several next to each other as one, which counts as its beginning: nothing gains more later.
std::vector<Moment> coarse_of(const std::vector<Moment>& moments, std::size_t together) {
  std::vector<Moment> out;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (i % together == 0) out.push_back({moments[i].begin, 0});
    out.back().length += moments[i].length;
  }
  return out;
}

}  // namespace

RangeCosts::RangeCosts(std::int64_t batch, double forward_share, std::vector<double> used, ModesOf modes,
                       const BoundTuning& tuning)
    : tuning_(tuning),
      forward_share_(forward_share),
      used_(std::move(used)),
      modes_of_(std::move(modes)),
      moments_(moments_of_fill(tuning)),
      coarse_moments_(coarse_of(moments_, tuning.moments_together)) {
  list_nodes(batch);
  modes_.resize(nodes_.size());
}

void RangeCosts::list_nodes(std::int64_t batch) {
  const std::size_t together = tuning_.ranges_together;
  for (const Range& range : fine_ranges(batch, tuning_.range_step)) nodes_.push_back({range});
  for (std::size_t i = 0; i < nodes_.size(); i += 2 * together) open_.push_back(i);
  for (std::size_t begin = 0, end = nodes_.size(); end - begin > 1; begin = end, end = nodes_.size()) {
    for (std::size_t first = begin; first < end; first += together) {
      const std::size_t children = std::min(together, end - first);
      nodes_.push_back({{nodes_[first].range.first, nodes_[first + children - 1].range.last}, first, children});
    }
  }
}

PricesFound RangeCosts::search(double seconds, const std::vector<double>& worth, const std::vector<double>& prices) {
  timelines_.clear();
  timelines_.resize(nodes_.size());
  coarse_.clear();
  coarse_.resize(nodes_.size());
  seconds_ = seconds;
  PriceSearch search;
  search.worth = worth;
  search.enough = tuning_.price_precision;
  search.most_steps = tuning_.most_planes;
  search.near_cost = tuning_.near_cost;
  search.towards_solution = tuning_.towards_solution;
  search.furthest_price = tuning_.furthest_price;
  search.costs = [&](const std::vector<double>& at) { return dearest_open(at); };
  PricesFound found;
  do {  // always from the same prices: those that few ranges allow may be far off
    found = search_prices(search, prices);
  } while (found.ratio > 0 && open_above(found.prices, product(worth, found.prices) / found.ratio));
  return found;
}

// Whether some range costs more than all that were looked at. Those do from now on, and what is far from the most does
// no more.
bool RangeCosts::open_above(const std::vector<double>& prices, double most) {
  std::vector<std::size_t> above;
  find_above(nodes_.size() - 1, prices, most * (1 + kRounding), above);
  if (above.empty()) {
    std::erase_if(open_, [&](std::size_t node) {
      return coarse_cost_at(node, prices) < tuning_.near_dearest * most ||
             cost_at(node, prices) < tuning_.near_dearest * most;
    });
    return false;
  }
  open_.insert(open_.end(), above.begin(), above.end());
  return true;
}

void RangeCosts::find_above(std::size_t node, const std::vector<double>& prices, double most,
                            std::vector<std::size_t>& above) {
  if (coarse_cost_at(node, prices) <= most || cost_at(node, prices) <= most) return;
  const Node& own = nodes_[node];
  if (own.children == 0) {
    above.push_back(node);
    return;
  }
  for (std::size_t i = 0; i < own.children; ++i) find_above(own.first_child + i, prices, most, above);
}

double RangeCosts::cost_at(std::size_t node, const std::vector<double>& prices) {
  return product(slopes_at(node, prices), prices);
}

// No less than the cost: coarse moments are few, and mostly enough to see that it is small.
double RangeCosts::coarse_cost_at(std::size_t node, const std::vector<double>& prices) {
  std::optional<Timeline>& own = coarse_[node];
  if (!own) own.emplace(nodes_[node].range, forward_share_, modes_at(node), seconds_, coarse_moments_);
  return product(with_used(own->response(prices)), prices) * (1 + kRounding);
}

// Of the open ranges those that search_prices() keeps, and maybe others, in their order.
std::vector<CostSlopes> RangeCosts::dearest_open(const std::vector<double>& prices) {
  std::vector<std::pair<double, std::size_t>> order;  // coarse cost, place
  order.reserve(open_.size());
  for (std::size_t i = 0; i < open_.size(); ++i) order.emplace_back(coarse_cost_at(open_[i], prices), i);
  std::ranges::sort(order, std::ranges::greater{});
  std::vector<CostSlopes> all(open_.size());
  double most = 0;
  for (const auto& [coarse, place] : order) {
    if (coarse < tuning_.near_cost * most) break;
    all[place] = slopes_at(open_[place], prices);
    most = std::max(most, product(all[place], prices));
  }
  std::erase_if(all, [](const CostSlopes& slopes) { return slopes.empty(); });
  return all;
}

CostSlopes RangeCosts::slopes_at(std::size_t node, const std::vector<double>& prices) {
  return with_used(timeline_at(node).response(prices));
}

CostSlopes RangeCosts::with_used(CostSlopes slopes) const {
  for (std::size_t k = 0; k < used_.size(); ++k) slopes[k] += used_[k];
  return slopes;
}

Timeline& RangeCosts::timeline_at(std::size_t node) {
  std::optional<Timeline>& own = timelines_[node];
  if (!own) own.emplace(nodes_[node].range, forward_share_, modes_at(node), seconds_, moments_);
  return *own;
}

const std::vector<std::vector<ExecutionMode>>& RangeCosts::modes_at(std::size_t node) {
  std::optional<std::vector<std::vector<ExecutionMode>>>& own = modes_[node];
  if (!own) own = modes_of_(nodes_[node].range);
  return *own;
}

}  // namespace tangram::relax
