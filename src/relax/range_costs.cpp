#include "range_costs.hpp"

#include <algorithm>
#include <utility>

namespace tangram::relax {

namespace {

constexpr double kRounding = 1e-9;

// One by one as long as blocks are few on a stage or many: rounding them down differs from one number to the next.
std::vector<Range> fine_ranges(std::int64_t batch) {
  constexpr double kStep = 1.002;
  std::vector<Range> ranges;
  for (std::int64_t first = 1; first <= batch;) {
    const std::int64_t next = static_cast<std::int64_t>(static_cast<double>(first) * kStep) + 1;
    ranges.push_back({first, std::min(next - 1, batch)});
    first = next;
  }
  return ranges;
}

}  // namespace

RangeCosts::RangeCosts(std::int64_t batch, double forward_share, std::vector<double> used, ModesOf modes)
    : forward_share_(forward_share), used_(std::move(used)), modes_of_(std::move(modes)), moments_(moments_of_fill()) {
  list_nodes(batch);
  modes_.resize(nodes_.size());
}

void RangeCosts::list_nodes(std::int64_t batch) {
  constexpr std::size_t kTogether = 5;
  for (const Range& range : fine_ranges(batch)) nodes_.push_back({range});
  for (std::size_t i = 0; i < nodes_.size(); i += 2 * kTogether) open_.push_back(i);
  for (std::size_t begin = 0, end = nodes_.size(); end - begin > 1; begin = end, end = nodes_.size()) {
    for (std::size_t first = begin; first < end; first += kTogether) {
      const std::size_t children = std::min(kTogether, end - first);
      nodes_.push_back({{nodes_[first].range.first, nodes_[first + children - 1].range.last}, first, children});
    }
  }
}

PricesFound RangeCosts::search(double seconds, const std::vector<double>& worth, const std::vector<double>& prices) {
  constexpr double kEnough = 3e-4;  // share of the ratio that more steps could gain
  timelines_.clear();
  timelines_.resize(nodes_.size());
  seconds_ = seconds;
  PriceSearch search;
  search.worth = worth;
  search.enough = kEnough;
  search.costs = [&](const std::vector<double>& at) {
    std::vector<CostSlopes> all;
    all.reserve(open_.size());
    for (const std::size_t node : open_) all.push_back(slopes_at(node, at));
    return all;
  };
  PricesFound found;
  do {  // always from the same prices: those that few ranges allow may be far off
    found = search_prices(search, prices);
  } while (found.ratio > 0 && open_above(found.prices, product(worth, found.prices) / found.ratio));
  return found;
}

// Whether some range costs more than all that were looked at. Those do from now on, and what is far from the most does
// no more.
bool RangeCosts::open_above(const std::vector<double>& prices, double most) {
  constexpr double kFar = 0.97;
  std::vector<std::size_t> above;
  find_above(nodes_.size() - 1, prices, most * (1 + kRounding), above);
  if (above.empty()) {
    std::erase_if(open_, [&](std::size_t node) { return cost_at(node, prices) < kFar * most; });
    return false;
  }
  open_.insert(open_.end(), above.begin(), above.end());
  return true;
}

void RangeCosts::find_above(std::size_t node, const std::vector<double>& prices, double most,
                            std::vector<std::size_t>& above) {
  if (cost_at(node, prices) <= most) return;
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

CostSlopes RangeCosts::slopes_at(std::size_t node, const std::vector<double>& prices) {
  CostSlopes slopes = timeline_at(node).response(prices);
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
