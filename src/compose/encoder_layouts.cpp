#include "encoder_layouts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "space.hpp"

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

/// Of one encoder in one layout on the whole fleet.
struct Least {
  double seconds = 0;
  std::vector<Bytes> reserve;  ///< without working buffers, of which only the largest encoder's count
  std::vector<Bytes> transient;
};

class LeastCosts {
 public:
  LeastCosts(const model::Model& model, const cluster::IslandLevel& level, const EncoderPricing& pricing)
      : level_(level), pricing_(pricing), gpus_(gpu_count(level)), batch_(model.job.global_batch) {}

  /// The whole batch at once, on all lanes that there may be: with fewer of them each has more samples.
  [[nodiscard]] std::optional<Least> of_batch(std::size_t encoder, const cost::EncoderLayout& layout) const {
    LaneShare share;
    share.all = std::max(1, gpus_ / layout.tp);
    share.lanes = share.all;
    share.samples = (batch_ + share.all - 1) / share.all;
    return of(encoder, layout, EncoderTurns::kThreePhases, share, 1);
  }

  /// A microbatch at a time. However many lanes share it, the samples of one take no less than at the best number.
  [[nodiscard]] std::optional<Least> of_microbatches(std::size_t encoder, const cost::EncoderLayout& layout,
                                                     std::int64_t microbatch) const {
    std::optional<Least> least;
    for (std::int64_t samples = 1; samples <= microbatch; ++samples) {
      LaneShare share;
      share.all = std::max(1, gpus_ / layout.tp);
      share.lanes = std::max<std::int64_t>(1, microbatch / samples);
      share.samples = samples;
      const double passes = static_cast<double>(batch_) / static_cast<double>(share.all * samples);
      const auto each = of(encoder, layout, EncoderTurns::kPerMicrobatch, share, passes);
      if (!each) continue;
      if (!least) {
        least = each;  // with one sample: the least memory
      } else {
        least->seconds = std::min(least->seconds, each->seconds);
      }
    }
    return least;
  }

 private:
  [[nodiscard]] std::optional<Least> of(std::size_t encoder, const cost::EncoderLayout& layout, EncoderTurns turns,
                                        const LaneShare& share, double passes) const {
    Least least;
    least.seconds = std::numeric_limits<double>::infinity();
    for (const cluster::IslandClass& c : level_.classes) {
      const auto cost = pricing_.cost(encoder, cluster::make_shape(c, c.gpus_per_member), layout, turns, share);
      if (!cost) return std::nullopt;
      least.seconds = std::min(least.seconds, to_seconds(cost->forward + cost->backward) * passes);
      least.reserve.push_back(cost->static_memory + cost->held);
      least.transient.push_back(cost->transient);
    }
    return least;
  }

  const cluster::IslandLevel& level_;
  const EncoderPricing& pricing_;
  int gpus_;
  std::int64_t batch_;
};

/// nullopt: some encoder does not run in its layout.
template <class Of>
std::optional<EncoderCase> case_of(EncoderTurns turns, const EncoderLayouts& layouts, std::int64_t microbatch,
                                   std::size_t classes, Of least_of) {
  EncoderCase out{turns, layouts, microbatch, {}, std::vector<Bytes>(classes)};
  std::vector<Bytes> transient(classes);
  double seconds = 0;
  for (std::size_t e = 0; e < layouts.size(); ++e) {
    const std::optional<Least> least = least_of(e, layouts[e]);
    if (!least) return std::nullopt;
    seconds += least->seconds;
    for (std::size_t c = 0; c < classes; ++c) {
      out.reserve[c] += least->reserve[c];
      transient[c] = std::max(transient[c], least->transient[c]);
    }
  }
  for (std::size_t c = 0; c < classes; ++c) out.reserve[c] += transient[c];
  // Rounded down: it is a bound.
  out.least_time = Nanoseconds(static_cast<std::int64_t>(seconds * 1e9 * (1 - 1e-12)));
  return out;
}

std::vector<std::int64_t> microbatches_of(const model::Job& job) {
  if (job.microbatch > 0) return {job.microbatch};
  std::vector<std::int64_t> sizes;
  for (std::int64_t b = 1; b <= job.global_batch; b *= 2) sizes.push_back(b);
  return sizes;
}

}  // namespace

std::vector<EncoderCase> encoder_cases(const model::Model& model, const cluster::IslandLevel& level,
                                       const EncoderPricing& pricing) {
  const LeastCosts costs(model, level, pricing);
  std::vector<EncoderCase> cases;
  const auto add = [&](std::optional<EncoderCase> one) {
    if (one) cases.push_back(std::move(*one));
  };
  for (const EncoderLayouts& layouts : combinations(layouts_of(model.job.allow, level), pricing.encoders())) {
    add(case_of(EncoderTurns::kThreePhases, layouts, 0, level.classes.size(),
                [&](std::size_t e, const cost::EncoderLayout& layout) { return costs.of_batch(e, layout); }));
    for (const std::int64_t b : microbatches_of(model.job)) {
      add(case_of(
          EncoderTurns::kPerMicrobatch, layouts, b, level.classes.size(),
          [&](std::size_t e, const cost::EncoderLayout& layout) { return costs.of_microbatches(e, layout, b); }));
    }
  }
  std::ranges::stable_sort(cases, {}, &EncoderCase::least_time);
  return cases;
}

}  // namespace tangram::compose
