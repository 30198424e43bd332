#include "encoder_layouts.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "space.hpp"
#include "tangram/base/at.hpp"

namespace tangram::compose {

namespace {

using model::RecomputeMode;

std::vector<RecomputeMode> recompute_modes(const model::Techniques& allow) {
  std::vector<RecomputeMode> modes{RecomputeMode::kNone};
  if (allow.recompute_selective) modes.push_back(RecomputeMode::kSelective);
  if (allow.recompute_full) modes.push_back(RecomputeMode::kFull);
  return modes;
}

std::vector<cost::EncoderLayout> layouts_of(const model::Techniques& allow, const cluster::IslandLevel& level) {
  std::vector<cost::EncoderLayout> layouts;
  const auto fits = [&](int tp) {
    return std::ranges::all_of(level.classes,
                               [&](const cluster::IslandClass& c) { return c.gpus_per_member % tp == 0; });
  };
  for (int tp = 1; tp <= (allow.tp ? kMostEncoderTp : 1) && fits(tp); tp *= 2) {
    for (const RecomputeMode recompute : recompute_modes(allow)) {
      layouts.push_back({tp, tp > 1 && allow.sp, allow.zero1, recompute});
    }
  }
  return layouts;
}

std::vector<EncoderLayouts> combinations(const std::vector<cost::EncoderLayout>& each, std::size_t encoders) {
  std::vector<EncoderLayouts> all{{}};
  for (std::size_t e = 0; e < encoders; ++e) {
    std::vector<EncoderLayouts> longer;
    for (const EncoderLayouts& before : all) {
      for (const cost::EncoderLayout& layout : each) {
        longer.push_back(before);
        longer.back().push_back(layout);
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// The GPUs of some types.
struct TypeSet {
  std::vector<std::string> types;
  int gpus = 0;
};

/// What all encoders take on one class, of a batch.
struct ClassTime {
  double seconds = 0;
  Bytes reserve;
};

/// Layouts of all encoders with turns.
struct Tried {
  EncoderTurns turns = EncoderTurns::kThreePhases;
  EncoderLayouts layouts;
  std::int64_t microbatch = 0;
};

class CaseMaker {
 public:
  CaseMaker(const model::Model& model, const cluster::IslandLevel& level, const EncoderPricing& pricing,
            const std::vector<std::string>& gpu_types)
      : level_(level), pricing_(pricing), gpu_types_(gpu_types), batch_(model.job.global_batch) {}

  /// A plan's encoders take what its slowest GPUs take: a case for each type that may be the slowest.
  void add(const Tried& tried, std::vector<EncoderCase>& cases) {
    TypeSet set;
    for (const int c : fastest_first(tried)) {
      const std::string& type = at(level_.classes, c).device.name;
      if (std::ranges::find(set.types, type) != set.types.end()) continue;
      set.types.push_back(type);
      set.gpus = gpu_count(level_, set.types);
      if (auto one = case_of(tried, set, c)) cases.push_back(std::move(*one));
    }
  }

 private:
  /// Classes that run the encoders.
  [[nodiscard]] std::vector<int> fastest_first(const Tried& tried) {
    std::vector<std::pair<double, int>> order;
    for (int c = 0; c < std::ssize(level_.classes); ++c) {
      const std::string& type = at(level_.classes, c).device.name;
      if (!gpu_types_.empty() && std::ranges::find(gpu_types_, type) == gpu_types_.end()) continue;
      if (const auto time = time_on(tried, c, gpu_count(level_))) order.emplace_back(time->seconds, c);
    }
    std::ranges::sort(order);
    std::vector<int> classes;
    for (const auto& [seconds, c] : order) classes.push_back(c);
    return classes;
  }

  /// Where the slowest of them are of class `slowest`.
  [[nodiscard]] std::optional<EncoderCase> case_of(const Tried& tried, const TypeSet& set, int slowest) {
    const auto time = time_on(tried, slowest, set.gpus);
    if (!time) return std::nullopt;
    EncoderCase out{tried.turns, tried.layouts, tried.microbatch, set.types, {}, {}};
    // Rounded down: it is a bound.
    out.least_time = Nanoseconds(static_cast<std::int64_t>(time->seconds * 1e9 * (1 - 1e-12)));
    for (int c = 0; c < std::ssize(level_.classes); ++c) {
      const auto own = time_on(tried, c, set.gpus);
      out.reserve.push_back(own ? own->reserve : time->reserve);
    }
    return out;
  }

  [[nodiscard]] std::optional<ClassTime> time_on(const Tried& tried, int island_class, int gpus) {
    ClassTime sum;
    Bytes transient;
    for (std::size_t e = 0; e < tried.layouts.size(); ++e) {
      const auto own = tried.turns == EncoderTurns::kThreePhases ? of_batch(tried, e, island_class, gpus)
                                                                 : of_microbatches(tried, e, island_class, gpus);
      if (!own) return std::nullopt;
      sum.seconds += own->seconds;
      sum.reserve += own->cost.static_memory + own->cost.held;
      transient = std::max(transient, own->cost.transient);
    }
    sum.reserve += transient;
    return sum;
  }

  struct Least {
    double seconds = 0;
    cost::EncoderCost cost;  ///< of the least memory
  };

  /// The whole batch at once, on all lanes that there may be: with fewer of them each has more samples.
  [[nodiscard]] std::optional<Least> of_batch(const Tried& tried, std::size_t e, int island_class, int gpus) {
    LaneShare share;
    share.all = std::max(1, gpus / tried.layouts[e].tp);
    share.lanes = share.all;
    share.samples = (batch_ + share.all - 1) / share.all;
    const auto cost = cost_on(tried, e, island_class, share);
    return cost ? std::optional(Least{to_seconds(cost->forward + cost->backward), *cost}) : std::nullopt;
  }

  /// A microbatch at a time. However many lanes share it, the samples of one take no less than at the best number, and
  /// hold no less than a single one.
  [[nodiscard]] std::optional<Least> of_microbatches(const Tried& tried, std::size_t e, int island_class, int gpus) {
    std::optional<Least> least;
    for (std::int64_t samples = 1; samples <= tried.microbatch; ++samples) {
      LaneShare share;
      share.all = std::max(1, gpus / tried.layouts[e].tp);
      share.lanes = std::max<std::int64_t>(1, tried.microbatch / samples);
      share.samples = samples;
      const auto cost = cost_on(tried, e, island_class, share);
      if (!cost) return std::nullopt;
      const double passes = static_cast<double>(batch_) / static_cast<double>(share.all * samples);
      const double seconds = to_seconds(cost->forward + cost->backward) * passes;
      if (!least) least = Least{seconds, *cost};
      least->seconds = std::min(least->seconds, seconds);
    }
    return least;
  }

  [[nodiscard]] std::optional<cost::EncoderCost> cost_on(const Tried& tried, std::size_t e, int island_class,
                                                         const LaneShare& share) {
    const Key key{e, tried.layouts[e], tried.turns, island_class, share.all, share.lanes, share.samples};
    const auto known = costs_.find(key);
    if (known != costs_.end()) return known->second;
    const cluster::IslandClass& c = at(level_.classes, island_class);
    auto cost = pricing_.cost(e, cluster::make_shape(c, c.gpus_per_member), tried.layouts[e], tried.turns, share);
    return costs_.emplace(key, std::move(cost)).first->second;
  }

  using Key = std::tuple<std::size_t, cost::EncoderLayout, EncoderTurns, int, std::int64_t, std::int64_t, std::int64_t>;

  const cluster::IslandLevel& level_;
  const EncoderPricing& pricing_;
  const std::vector<std::string>& gpu_types_;
  std::int64_t batch_;
  std::map<Key, std::optional<cost::EncoderCost>> costs_;  // cases differ in few of them
};

std::vector<std::int64_t> microbatches_of(const model::Job& job) {
  if (job.microbatch > 0) return {job.microbatch};
  std::vector<std::int64_t> sizes;
  for (std::int64_t b = 1; b <= std::min(job.global_batch, kMostTurnSamples); b *= 2) sizes.push_back(b);
  return sizes;
}

}  // namespace

std::vector<EncoderCase> encoder_cases(const model::Model& model, const cluster::IslandLevel& level,
                                       const EncoderPricing& pricing, const std::vector<std::string>& gpu_types) {
  CaseMaker maker(model, level, pricing, gpu_types);
  std::vector<EncoderCase> cases;
  for (const EncoderLayouts& layouts : combinations(layouts_of(model.job.allow, level), pricing.encoders())) {
    maker.add({EncoderTurns::kThreePhases, layouts, 0}, cases);
    for (const std::int64_t b : microbatches_of(model.job)) {
      maker.add({EncoderTurns::kPerMicrobatch, layouts, b}, cases);
    }
  }
  std::ranges::stable_sort(cases, {}, &EncoderCase::least_time);
  return cases;
}

}  // namespace tangram::compose
