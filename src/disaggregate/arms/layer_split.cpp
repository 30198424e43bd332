#include "layer_split.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "../resources.hpp"

namespace tangram::disaggregate {

namespace {

class LayerRanges {
 public:
  explicit LayerRanges(const Problem& problem) : problem_(problem) {
    std::map<int, int> numbers;
    for (const Kernel& kernel : problem.kernels) numbers.emplace(kernel.layer, 0);
    for (auto& [layer, number] : numbers) number = layers_++;
    seconds_.assign(layers_, problem.class_count(), 0.0);
    bytes_.assign(layers_, problem.class_count(), 0.0);
    for (const Kernel& kernel : problem.kernels) {
      layer_of_.push_back(numbers.at(kernel.layer));
      for (int c = 0; c < problem.class_count(); ++c) {
        const double passes = at(problem.phases, kernel.phase).passes;
        seconds_(layer_of_.back(), c) += passes * at(kernel.seconds, c) / at(problem.classes, c).count;
      }
    }
    for (const Buffer& buffer : problem.buffers) {
      if (buffer.kind == BufferKind::kMessage || buffer.readers.empty()) continue;
      for (int c = 0; c < problem.class_count(); ++c) {
        bytes_(at(layer_of_, buffer.readers.front()), c) += resident_bytes(problem, buffer, c);
      }
    }
  }

  GroupPlan best() {
    GroupPlan best;
    std::vector<int> order(problem_.classes.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      const double period = least_period(order);
      best.bound = std::min(best.bound, period);
      if (!std::isinf(period)) improve(order, cuts_within(order, period), best);
    } while (std::ranges::next_permutation(order).found);
    return best;
  }

 private:
  // Ends of the ranges, each as long as period and memory allow; the last one is `layers_` if all find room.
  [[nodiscard]] std::vector<int> cuts_within(const std::vector<int>& order, double period) const {
    std::vector<int> cuts;
    int layer = 0;
    for (const int on : order) {
      double seconds = 0;
      double bytes = 0;
      while (layer < layers_) {
        seconds += seconds_(layer, on);
        bytes += bytes_(layer, on);
        if (seconds > period || bytes > at(problem_.classes, on).memory) break;
        ++layer;
      }
      cuts.push_back(layer);
    }
    return cuts;
  }

  [[nodiscard]] double least_period(const std::vector<int>& order) const {
    double high = 0;
    for (int layer = 0; layer < layers_; ++layer) {
      double most = 0;
      for (const double seconds : seconds_.row(layer)) most = std::isinf(seconds) ? most : std::max(most, seconds);
      high += most;
    }
    if (cuts_within(order, high).back() < layers_) return kNever;
    double low = 0;
    constexpr int kHalvings = 60;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (cuts_within(order, middle).back() < layers_ ? low : high) = middle;
    }
    return high;
  }

  [[nodiscard]] Placement placement_of(const std::vector<int>& order, const std::vector<int>& cuts) const {
    Placement placement;
    for (const int layer : layer_of_) {
      const auto range = std::ranges::upper_bound(cuts, layer) - cuts.begin();
      placement.push_back(at(order, range));
    }
    return placement;
  }

  void improve(const std::vector<int>& order, std::vector<int> cuts, GroupPlan& best) const {
    const auto try_cuts = [&] { return best.improve(problem_, placement_of(order, cuts)); };
    try_cuts();
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      for (const int step : {-1, 1, -2, 2}) {
        const int before = i == 0 ? 0 : cuts[i - 1];
        if (cuts[i] + step < before || cuts[i] + step > cuts[i + 1]) continue;
        cuts[i] += step;
        if (!try_cuts()) cuts[i] -= step;
      }
    }
  }

  const Problem& problem_;
  int layers_ = 0;
  std::vector<int> layer_of_;  // by kernel
  Grid<double> seconds_;       // a round, by layer and class
  Grid<double> bytes_;         // by layer and class
};

}  // namespace

GroupPlan split_layers(const Problem& problem) { return LayerRanges(problem).best(); }

}  // namespace tangram::disaggregate
