#include "ways.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "tangram/cost/stage.hpp"

namespace tangram::compose {

namespace {

class Merger {
 public:
  void add(const Pace& pace) {
    const Key key(pace.samples, pace.last, pace.gpus, pace.update, pace.dense_span, pace.expert_span, pace.dense_sync,
                  pace.expert_sync);
    const Speed speed{pace, pace.total(), pace.gpus * (pace.forward_limit + pace.backward_limit)};
    const auto [at, is_new] = merged_.try_emplace(key, speed);
    Speed& own = at->second;
    own.total = std::min(own.total, speed.total);
    own.limit = std::min(own.limit, speed.limit);
    own.pace.backward = std::max(own.pace.backward, pace.backward);
    own.pace.held = std::min(own.pace.held, pace.held);
    own.pace.kept = std::min(own.pace.kept, pace.kept);
    own.pace.room = std::max(own.pace.room, pace.room);
  }

  [[nodiscard]] std::vector<Speed> speeds() const {
    std::vector<Speed> out;
    for (const auto& [key, speed] : merged_) out.push_back(speed);
    std::ranges::stable_sort(out, {}, &Speed::total);
    return out;
  }

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, double, double, double, double, double, double>;

  std::map<Key, Speed> merged_;
};

bool is_no_worse(const Way& a, const Way& b) {
  return a.fill <= b.fill && a.share <= b.share && a.work <= b.work && a.whole.passes <= b.whole.passes &&
         a.whole.with_sync <= b.whole.with_sync && a.sharded.passes <= b.sharded.passes &&
         a.sharded.with_sync <= b.sharded.with_sync && a.blocks >= b.blocks;
}

// Those that no other one beats in everything, of ways by growing fill. What beats one often beats the next.
std::vector<Way> best_of(const std::vector<Way>& ways) {
  std::vector<Way> out;
  std::size_t likely = 0;
  for (const Way& way : ways) {
    const auto beats = [&](const Way& other) { return is_no_worse(other, way); };
    if (!out.empty() && beats(out[likely])) continue;
    likely = static_cast<std::size_t>(std::ranges::find_if(out, beats) - out.begin());
    if (likely == out.size()) out.push_back(way);
  }
  return out;
}

// A pace on stages of so many GPUs of its class.
class WayMaker {
 public:
  WayMaker(const PaceProblem& problem, const Range& range, double blocks, double longest)
      : problem_(problem),
        range_(range),
        blocks_(blocks),
        longest_(longest),
        first_(static_cast<double>(range.first)),
        last_(static_cast<double>(range.last)) {}

  // More GPUs in a stage leave room for more blocks, and bring more parameters over the network.
  void add(const Speed& speed, std::vector<Way>& out) const {
    const Pace& pace = speed.pace;
    // Of more blocks than are ever needed it does not matter how many.
    const double enough = std::min(blocks_, std::floor(longest_ / (first_ * speed.total)));
    const std::int64_t microbatch = (problem_.batch + range_.first - 1) / range_.first;
    if (pace.samples > microbatch || enough < 1) return;
    const auto samples = static_cast<double>(std::min(pace.last, microbatch));
    const double holders = pace.gpus * std::max(1.0, batch() / (last_ * samples));
    const double largest = pace.gpus * most_replicas(pace);
    double least = pace.gpus;
    for (double most = std::max(pace.gpus, pace.dense_span);; most *= 2) {
      Way way = way_of(speed, samples, least, holders);
      way.blocks = std::min(enough, blocks_in(pace, most));
      if (way.blocks >= 1) out.push_back(way);
      if (way.blocks >= enough || most >= largest) break;
      least = most;
    }
  }

 private:
  [[nodiscard]] double batch() const { return static_cast<double>(problem_.batch); }

  // Of a stage: all microbatches but the last are whole, and all replicas but the fullest may have a sample less.
  [[nodiscard]] double most_replicas(const Pace& pace) const {
    const double microbatch = range_.first == 1 ? batch() : (batch() - 1) / (first_ - 1);
    return microbatch / static_cast<double>(std::max<std::int64_t>(1, pace.samples - 1));
  }

  // A stage of `least` GPUs or more, `holders` of all stages.
  [[nodiscard]] Way way_of(const Speed& speed, double samples, double least, double holders) const {
    const Pace& pace = speed.pace;
    const double parameters = pace.crossing(least);
    const double gradients = pace.crossing(holders);
    Way way;
    way.fill = speed.total;
    way.share = pace.gpus / samples;
    way.work = std::max(speed.limit, pace.gpus * speed.total / samples);
    way.whole = taken(speed.total + pace.update / last_, exposed(pace, gradients + parameters, parameters));
    way.sharded = taken(speed.total + problem_.gathered * parameters / last_, exposed(pace, gradients, parameters));
    return way;
  }

  // `passes` have their part of the optimizer's step, which is behind all gradients.
  static Taken taken(double passes, double exposed) { return {passes, passes + exposed}; }

  // Seconds of a microbatch by which gradients outlast the last backward pass, or ZeRO-2 and 3 all of them: the least
  // of the range. `inside` crosses the network within the stage.
  [[nodiscard]] double exposed(const Pace& pace, double sync, double inside) const {
    constexpr std::int64_t kMany = 3;  // microbatches; fewer are each by itself
    const double w = pace.backward;
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

  [[nodiscard]] double blocks_in(const Pace& pace, double gpus) const {
    const double each = pace.held / gpus + pace.kept;
    return each > 0 ? std::floor(std::max(0.0, pace.room) / each * (1 + 1e-9)) : kInfinity;
  }

  const PaceProblem& problem_;
  const Range& range_;
  double blocks_;
  double longest_;
  double first_;
  double last_;
};

}  // namespace

std::vector<Speed> merged(const std::vector<Pace>& paces, std::size_t item) {
  Merger merger;
  for (const Pace& pace : paces) {
    if (pace.item == item && pace.total() > 0) merger.add(pace);
  }
  return merger.speeds();
}

std::vector<Way> ways_of(const PaceProblem& problem, const std::vector<Speed>& speeds, const Range& range,
                         double blocks, double longest) {
  const WayMaker maker(problem, range, blocks, longest);
  std::vector<Way> ways;
  for (const Speed& speed : speeds) maker.add(speed, ways);
  return best_of(ways);
}

}  // namespace tangram::compose
