#include "timeline.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tangram::relax {

namespace {

// Some blocks of a stage may be sharded and others not. What a block takes of both kinds of time is linear in the
// mixture, so that the largest share is least at an end or where both are equal.
double most_blocks(const ExecutionMode& mode, double passes, double with_sync) {
  const auto most = [&](const Taken& t) { return std::min(passes / t.passes, with_sync / t.with_sync); };
  const Taken& a = mode.whole;
  const Taken& b = mode.sharded;
  const double ends = std::max(most(a), most(b));
  const double from = with_sync * a.passes - passes * a.with_sync;
  const double to = with_sync * b.passes - passes * b.with_sync;
  if (from * to >= 0) return ends;
  const double part = from / (from - to);
  return std::max(ends, passes / (a.passes + part * (b.passes - a.passes)));
}

}  // namespace

std::vector<Moment> moments_of_fill(const BoundTuning& tuning) {
  const int pieces = tuning.fill_pieces;
  const double usual = tuning.usual_fill;
  std::vector<Moment> out;
  out.reserve(static_cast<std::size_t>(pieces) + 1);
  for (int i = 0; i < pieces; ++i) out.push_back({usual * i / pieces, usual / pieces});
  out.push_back({usual, 1 - usual});
  return out;
}

Timeline::Timeline(const Range& range, double forward_share, const std::vector<std::vector<ExecutionMode>>& modes,
                   double seconds, const std::vector<Moment>& moments)
    : first_(static_cast<double>(range.first)),
      last_(static_cast<double>(range.last)),
      forward_share_(forward_share),
      modes_(modes),
      seconds_(seconds),
      moments_(moments) {
  for (const std::vector<ExecutionMode>& own : modes) {
    std::vector<double>& most = blocks_.emplace_back();
    for (const ExecutionMode& mode : own) most.push_back(mode.blocks);
    costs_.emplace_back(own.size(), 0.0);
  }
}

CostSlopes Timeline::response(const std::vector<double>& prices) {
  CostSlopes slopes(prices.size(), 0);
  for (std::size_t moment = 0; moment < moments_.size(); ++moment) {
    if (moment == ends_.size()) add_moment();
    const Point* best = best_of(moment, prices);
    if (best == nullptr) break;  // later ones leave no more room
    slopes[best->island_class] -= best->cost * moments_[moment].length;
    slopes.back() += best->gain * moments_[moment].length;
  }
  return slopes;
}

void Timeline::add_moment() {
  const double begin = moments_[ends_.size()].begin;
  for (std::size_t k = 0; k < modes_.size(); ++k) add_hull(k, begin);
  ends_.push_back(points_.size());
}

// None where nothing gains.
const Timeline::Point* Timeline::best_of(std::size_t moment, const std::vector<double>& prices) const {
  const Point* best = nullptr;
  double most = 0;
  for (std::size_t i = moment == 0 ? 0 : ends_[moment - 1]; i < ends_[moment]; ++i) {
    const double value = prices.back() * points_[i].gain - prices[points_[i].island_class] * points_[i].cost;
    if (value <= most) continue;
    most = value;
    best = &points_[i];
  }
  return best;
}

// The upper hull over cost of a class's modes, which come by falling gain. Later moments cost each of them no less, so
// that what is known of earlier ones often tells that another mode gains more for less.
void Timeline::add_hull(std::size_t island_class, double at) {
  const std::vector<ExecutionMode>& modes = modes_[island_class];
  std::vector<double>& costs = costs_[island_class];
  const std::size_t begin = points_.size();
  double least = kInfinity;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    if (costs[i] >= least) continue;
    const Point point = point_of(island_class, i, at);
    costs[i] = point.cost;
    if (point.cost >= least) continue;
    least = point.cost;
    while (points_.size() - begin > 1 && is_below(point, points_.back(), points_[points_.size() - 2])) {
      points_.pop_back();
    }
    points_.push_back(point);
  }
}

bool Timeline::is_below(const Point& a, const Point& b, const Point& c) {
  return (b.gain - a.gain) * (c.cost - a.cost) <= (c.gain - a.gain) * (b.cost - a.cost);
}

// A stage that fills this moment began it earlier by no more than its own blocks take, and the later it began the fewer
// blocks it has: the most that agree with each other. Later moments have no more.
Timeline::Point Timeline::point_of(std::size_t island_class, std::size_t index, double at) {
  const ExecutionMode& mode = modes_[island_class][index];
  double& most = blocks_[island_class][index];
  double begin = 0;
  while (most >= 1) {
    begin = first_ > 1 ? std::max(0.0, at - most * mode.fill / seconds_) : 0;
    const double blocks = blocks_from(mode, begin);
    if (blocks >= most) break;
    most = blocks;
  }
  if (most < 1) return {island_class, 0, kInfinity};
  const double gpus = std::max(mode.share / (last_ * most), mode.work / (seconds_ * (1 - begin)));
  return {island_class, 1 / mode.fill, gpus * seconds_ / mode.fill};
}

double Timeline::blocks_from(const ExecutionMode& mode, double begin) const {
  const double passes = seconds_ * (1 - begin) / first_;
  const double with_sync = seconds_ * (1 - forward_share_ * begin) / first_;
  const double most = std::min(most_blocks(mode, passes, with_sync), mode.blocks) * (1 + 1e-9);
  constexpr double kWhole = 0x1p52;  // from here on doubles are whole; below, a cast does what a call would
  return most < kWhole ? static_cast<double>(static_cast<std::int64_t>(most)) : most;
}

}  // namespace tangram::relax
