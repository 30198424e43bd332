#include "screening.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include "tangram/base/at.hpp"

namespace tangram::compose {

namespace {

constexpr double kAnyNumber = std::numeric_limits<double>::infinity();
constexpr double kRounding = 4;  // ns a block: once for forward and backward each, and for sums in another order

// What memory holds beside plans that are fast enough; 0: none is.
std::int64_t most_in_flight(const std::vector<prune::Candidate>& staircase, std::int64_t slowest) {
  std::int64_t most = 0;
  for (const prune::Candidate& step : staircase) {
    if (step.T <= slowest) most = std::max(most, step.n_max);
  }
  return most;
}

struct Units {
  int island_class = 0;
  double count = 0;
};

// An option with what its stages hold one behind the other, the last one first: as if they were the only ones.
struct Stages {
  std::vector<Units> units;   // of one stage
  std::vector<double> holds;  // [stage] blocks, falling

  [[nodiscard]] bool is_mixed() const { return units.size() > 1; }
};

// By the units of the classes.
using Prices = std::vector<double>;

class BlockBound {
 public:
  BlockBound(const std::vector<ClassShare>& shares, const std::vector<std::vector<OptionPart>>& options, int stages,
             const HeldBlocks& held)
      : shares_(shares) {
    for (const std::vector<OptionPart>& parts : options) stages_.push_back(stages_of(parts, stages, held));
  }

  [[nodiscard]] double value() const {
    const double by_critical = value_at(critical_prices());
    const std::optional<Prices> steepest = steepest_prices();
    return steepest ? std::min(by_critical, value_at(*steepest)) : by_critical;
  }

 private:
  [[nodiscard]] Stages stages_of(const std::vector<OptionPart>& parts, int most, const HeldBlocks& held) const {
    Stages stages;
    for (const OptionPart& part : parts) {
      const ClassShare& share = at(shares_, part.placement.island_class);
      const int count = part.placement.gpus / share.unit;
      stages.units.push_back({part.placement.island_class, static_cast<double>(count)});
      most = std::min(most, share.units / count);
    }
    for (int depth = 1; depth <= most; ++depth) {
      double blocks = kAnyNumber;  // every part works on all blocks of the stage
      for (const OptionPart& part : parts) blocks = std::min(blocks, held(part.entry, depth));
      if (blocks <= 0) break;
      stages.holds.push_back(blocks);
    }
    return stages;
  }

  [[nodiscard]] double value_at(const Prices& prices) const {
    double value = 0;
    for (std::size_t k = 0; k < shares_.size(); ++k) value += prices[k] * shares_[k].units;
    for (const Stages& stages : stages_) {
      const double cost = cost_of(stages, prices);
      for (const double blocks : stages.holds) value += std::max(0.0, blocks - cost);
    }
    return value;
  }

  [[nodiscard]] static double cost_of(const Stages& stages, const Prices& prices) {
    double cost = 0;
    for (const Units& units : stages.units) cost += at(prices, units.island_class) * units.count;
    return cost;
  }

  // What the unit after the last one would hold, were each class alone.
  [[nodiscard]] Prices critical_prices() const {
    Prices prices;
    for (std::size_t k = 0; k < shares_.size(); ++k) prices.push_back(critical_price(static_cast<int>(k)));
    return prices;
  }

  [[nodiscard]] double critical_price(int island_class) const {
    struct Fill {
      double price;  // blocks of a unit
      double units;
    };
    std::vector<Fill> fills;
    for (const Stages& stages : stages_) {
      if (stages.is_mixed() || stages.units.front().island_class != island_class) continue;
      const double units = stages.units.front().count;
      for (const double blocks : stages.holds) fills.push_back({blocks / units, units});
    }
    std::ranges::sort(fills, std::greater{}, &Fill::price);
    double left = at(shares_, island_class).units;
    for (const Fill& fill : fills) {
      left -= fill.units;
      if (left < 0) return fill.price;
    }
    return 0;
  }

  // What a unit holds at most, raised until no mixed stage holds more than its units cost; nullopt: none suffices.
  [[nodiscard]] std::optional<Prices> steepest_prices() const {
    Prices prices(shares_.size(), 0);
    for (const Stages& stages : stages_) {
      if (stages.is_mixed() || stages.holds.empty()) continue;
      double& price = at(prices, stages.units.front().island_class);
      price = std::max(price, stages.holds.front() / stages.units.front().count);
    }
    double raise = 1;
    for (const Stages& stages : stages_) {
      if (!stages.is_mixed() || stages.holds.empty()) continue;
      const double cost = cost_of(stages, prices);
      if (cost <= 0) return std::nullopt;
      raise = std::max(raise, stages.holds.front() / cost);
    }
    for (double& price : prices) price *= raise;
    return prices;
  }

  const std::vector<ClassShare>& shares_;
  std::vector<Stages> stages_;
};

}  // namespace

double blocks_by_time(double block, std::int64_t slowest) {
  return block > 0 ? std::floor(static_cast<double>(slowest) / std::max(1.0, block - kRounding)) : 0;
}

std::int64_t least_time(double block, int blocks) {
  return static_cast<std::int64_t>(std::max(0.0, block - kRounding) * std::max(0, blocks));
}

// A slice that fits is made of shorter ones that do.
SliceLengths::SliceLengths(const ShapePlans& entry, const SignatureTable& signatures, std::int64_t slowest, int chunks)
    : anywhere_(1, 0), alike_(static_cast<std::size_t>(signatures.alike()) + 1, 0) {
  for (int segments = 1; segments <= signatures.segments(); ++segments) {
    bool fits = false;
    anywhere_.push_back(0);
    for (const int id : at(signatures.by_length(), segments)) {
      const std::int64_t held = most_in_flight(at(entry.staircases, id), slowest);
      fits = fits || held > 0;
      if (!signatures.is_stage(id, chunks)) continue;
      anywhere_.back() = std::max(anywhere_.back(), held);
      std::int64_t& most = at(alike_, signatures.alike_in(id));
      most = std::max(most, held);
    }
    if (!fits) return;
  }
}

double SliceLengths::longest_of(const std::vector<std::int64_t>& most, std::int64_t in_flight) {
  std::size_t segments = most.size() - 1;
  while (segments > 0 && most[segments] < in_flight) --segments;
  return static_cast<double>(segments);
}

std::int64_t slowest_stage(std::int64_t time, std::int64_t latency, std::int64_t microbatches, int chunks) {
  const std::int64_t whole = time / microbatches;
  const std::int64_t passes = microbatches * chunks;
  if (passes == 1) return whole;
  return std::min(whole, std::max<std::int64_t>(0, (time * chunks - latency) / (passes - 1)));
}

// Of several chunks in passes of one: those in flight, and those of a group, which has a microbatch for each stage.
std::int64_t least_in_flight(std::int64_t depth, std::int64_t microbatches, int chunks) {
  if (chunks == 1) return std::min(depth, microbatches);
  const std::int64_t passes = 2 * depth - 1 + (chunks - 1) * depth;
  return std::min((passes + chunks - 1) / chunks, microbatches);
}

void ScreenedSizes::note(std::int64_t microbatch, std::int64_t incumbent) {
  const std::scoped_lock lock(mutex_);
  std::int64_t& known = incumbents_[microbatch];
  known = std::max(known, incumbent);
}

bool ScreenedSizes::has(std::int64_t microbatch, std::int64_t incumbent) const {
  const std::scoped_lock lock(mutex_);
  const auto known = incumbents_.find(microbatch);
  return known != incumbents_.end() && incumbent <= known->second;
}

double most_blocks(const std::vector<ClassShare>& shares, const std::vector<std::vector<OptionPart>>& options,
                   int stages, const HeldBlocks& held) {
  return BlockBound(shares, options, stages, held).value();
}

}  // namespace tangram::compose
