#include "execution_modes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "tangram/cost/stage.hpp"

namespace tangram::relax {

namespace {

class Merger {
 public:
  void add(const BlockRate& block_rate) {
    const Key key(block_rate.samples, block_rate.last, block_rate.gpus, block_rate.update, block_rate.dense_span,
                  block_rate.expert_span, block_rate.dense_sync, block_rate.expert_sync);
    const MergedRate rate{block_rate, block_rate.total(),
                          block_rate.gpus * (block_rate.forward_limit + block_rate.backward_limit)};
    const auto [at, is_new] = merged_.try_emplace(key, rate);
    MergedRate& own = at->second;
    own.total = std::min(own.total, rate.total);
    own.limit = std::min(own.limit, rate.limit);
    own.block_rate.backward = std::max(own.block_rate.backward, block_rate.backward);
    own.block_rate.held = std::min(own.block_rate.held, block_rate.held);
    own.block_rate.kept = std::min(own.block_rate.kept, block_rate.kept);
    own.block_rate.room = std::max(own.block_rate.room, block_rate.room);
  }

  [[nodiscard]] std::vector<MergedRate> rates() const {
    std::vector<MergedRate> out;
    for (const auto& [key, rate] : merged_) out.push_back(rate);
    std::ranges::stable_sort(out, {}, &MergedRate::total);
    return out;
  }

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, double, double, double, double, double, double>;

  std::map<Key, MergedRate> merged_;
};

bool is_no_worse(const ExecutionMode& a, const ExecutionMode& b) {
  return a.fill <= b.fill && a.share <= b.share && a.work <= b.work && a.whole.passes <= b.whole.passes &&
         a.whole.with_sync <= b.whole.with_sync && a.sharded.passes <= b.sharded.passes &&
         a.sharded.with_sync <= b.sharded.with_sync && a.blocks >= b.blocks;
}

// Those that no other one beats in everything, of modes by growing fill. What beats one often beats the next.
std::vector<ExecutionMode> best_of(const std::vector<ExecutionMode>& modes) {
  std::vector<ExecutionMode> out;
  std::size_t likely = 0;
  for (const ExecutionMode& mode : modes) {
    const auto beats = [&](const ExecutionMode& other) { return is_no_worse(other, mode); };
    if (!out.empty() && beats(out[likely])) continue;
    likely = static_cast<std::size_t>(std::ranges::find_if(out, beats) - out.begin());
    if (likely == out.size()) out.push_back(mode);
  }
  return out;
}

// A block rate on stages of so many GPUs of its class.
class ModeMaker {
 public:
  ModeMaker(const RateProblem& problem, const Range& range, double blocks, double longest)
      : problem_(problem),
        range_(range),
        blocks_(blocks),
        longest_(longest),
        first_(static_cast<double>(range.first)),
        last_(static_cast<double>(range.last)) {}

  // More GPUs in a stage leave room for more blocks, and bring more parameters over the network.
  void add(const MergedRate& rate, std::vector<ExecutionMode>& out) const {
    const BlockRate& block_rate = rate.block_rate;
    // Of more blocks than are ever needed it does not matter how many.
    const double enough = std::min(blocks_, std::floor(longest_ / (first_ * rate.total)));
    const std::int64_t microbatch = (problem_.batch + range_.first - 1) / range_.first;
    if (block_rate.samples > microbatch || enough < 1) return;
    const auto samples = static_cast<double>(std::min(block_rate.last, microbatch));
    const double holders = block_rate.gpus * std::max(1.0, batch() / (last_ * samples));
    const double largest = block_rate.gpus * most_replicas(block_rate);
    double least = block_rate.gpus;
    for (double most = std::max(block_rate.gpus, block_rate.dense_span);; most *= 2) {
      ExecutionMode mode = mode_of(rate, samples, least, holders);
      mode.blocks = std::min(enough, blocks_in(block_rate, most));
      if (mode.blocks >= 1) out.push_back(mode);
      if (mode.blocks >= enough || most >= largest) break;
      least = most;
    }
  }

 private:
  [[nodiscard]] double batch() const { return static_cast<double>(problem_.batch); }

  // Of a stage: all microbatches but the last are whole, and all replicas but the fullest may have a sample less.
  [[nodiscard]] double most_replicas(const BlockRate& block_rate) const {
    const double microbatch = range_.first == 1 ? batch() : (batch() - 1) / (first_ - 1);
    return microbatch / static_cast<double>(std::max<std::int64_t>(1, block_rate.samples - 1));
  }

  // A stage of `least` GPUs or more, `holders` of all stages.
  [[nodiscard]] ExecutionMode mode_of(const MergedRate& rate, double samples, double least, double holders) const {
    const BlockRate& block_rate = rate.block_rate;
    const double parameters = block_rate.crossing(least);
    const double gradients = block_rate.crossing(holders);
    ExecutionMode mode;
    mode.fill = rate.total / problem_.chunks;
    mode.share = block_rate.gpus / samples;
    mode.work = std::max(rate.limit, block_rate.gpus * rate.total / samples);
    mode.whole = taken(rate.total + block_rate.update / last_, exposed(block_rate, gradients + parameters, parameters));
    mode.sharded =
        taken(rate.total + problem_.gathered * parameters / last_, exposed(block_rate, gradients, parameters));
    return mode;
  }

  // `passes` have their part of the optimizer's step, which is behind all gradients.
  static Taken taken(double passes, double exposed) { return {passes, passes + exposed}; }

  // Seconds of a microbatch by which gradients outlast the last backward pass, or ZeRO-2 and 3 all of them: the least
  // of the range. `inside` crosses the network within the stage.
  [[nodiscard]] double exposed(const BlockRate& block_rate, double sync, double inside) const {
    constexpr std::int64_t kMany = 3;  // microbatches; fewer are each by itself
    const double w = block_rate.backward;
    const double overlap = cost::kSyncOverlap;
    double least = kInfinity;
    if (range_.first == 1) least = std::max({0.0, 0.5 * (sync - w), inside - w});
    if (range_.first <= 2 && range_.last >= 2) {
      least = std::min(least, std::max({0.0, sync - w, 0.96 * sync - overlap * w}) / 2);
    }
    if (range_.last < kMany) return least;
    const auto first = static_cast<double>(std::max(kMany, range_.first));
    return std::min(least, std::max(0.0, sync / last_ - overlap * w / first));
  }

  [[nodiscard]] double blocks_in(const BlockRate& block_rate, double gpus) const {
    const double each = block_rate.held / gpus + block_rate.kept;
    return each > 0 ? std::floor(std::max(0.0, block_rate.room) / each * (1 + 1e-9)) : kInfinity;
  }

  const RateProblem& problem_;
  const Range& range_;
  double blocks_;
  double longest_;
  double first_;
  double last_;
};

}  // namespace

std::vector<MergedRate> merged(const std::vector<BlockRate>& block_rates, std::size_t item) {
  Merger merger;
  for (const BlockRate& block_rate : block_rates) {
    if (block_rate.item == item && block_rate.total() > 0) merger.add(block_rate);
  }
  return merger.rates();
}

std::vector<ExecutionMode> execution_modes_of(const RateProblem& problem, const std::vector<MergedRate>& rates,
                                              const Range& range, double blocks, double longest) {
  const ModeMaker maker(problem, range, blocks, longest);
  std::vector<ExecutionMode> modes;
  for (const MergedRate& rate : rates) maker.add(rate, modes);
  return best_of(modes);
}

}  // namespace tangram::relax
