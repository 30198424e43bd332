#include "scale.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace tangram::execute {

Window lane_of(const plan::Part& part, std::int64_t before, std::int64_t lane) {
  const cost::Degrees& d = part.strategy.degrees;
  return {before + d.samples_before(lane, part.samples), before + d.samples_before(lane + 1, part.samples)};
}

SampleScale::SampleScale(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline, std::vector<Window> windows)
    : windows_(std::move(windows)) {
  unit_ = 0;
  for (const Window& window : windows_) unit_ = std::gcd(unit_, window.last - window.first);
  std::set<int> stages(pipeline.stages.begin(), pipeline.stages.end());
  for (const int id : pipeline.stages) {
    for (const plan::Part& part : plan.stage(id).parts) {
      const std::int64_t fewest = part.samples / part.strategy.degrees.dp;
      unit_ = std::gcd(std::gcd(unit_, fewest), part.samples_per_replica());
    }
  }
  for (const Window& window : windows_) {
    const std::int64_t last = pipeline.last_microbatch();
    if (window.first < last && last < window.last) unit_ = std::gcd(unit_, last - window.first);
  }
  if (plan.colocated) {  // no lane that has work in the plan is left without, and replicas that read several keep some
    const plan::Part& first = plan.stage(pipeline.stages.front()).parts.front();
    unit_ = std::gcd(unit_, std::max<std::int64_t>(1, first.samples / first.strategy.degrees.dp / 3));
    for (const plan::ColocatedEncoders::Encoder& encoder : plan.colocated->encoders) {
      const std::int64_t each = plan.round_samples() / plan.lanes_of(encoder.layout).of_pipeline;
      unit_ = std::gcd(unit_, std::max<std::int64_t>(1, each));
    }
  }
  for (const plan::Boundary& boundary : plan.boundaries) {
    if (!stages.contains(boundary.from)) continue;
    for (const plan::Transfer& t : boundary.transfers) {
      const auto window = std::ranges::find_if(
          windows_, [&](const Window& w) { return w.first <= t.sample_first && t.sample_last <= w.last; });
      if (window == windows_.end()) continue;
      unit_ = std::gcd(std::gcd(unit_, t.sample_first - window->first), t.sample_last - window->first);
    }
  }
}

bool SampleScale::keeps(std::int64_t first, std::int64_t last) const {
  return std::ranges::any_of(windows_, [&](const Window& w) { return w.first <= first && last <= w.last; });
}

int SampleScale::at(std::int64_t sample) const {
  std::int64_t before = 0;
  for (const Window& window : windows_) {
    before += std::clamp(sample, window.first, window.last) - window.first;
  }
  return static_cast<int>(before / unit_);
}

int SampleScale::total() const { return at(windows_.back().last); }

PositionScale::PositionScale(const plan::LaunchPlan& plan, int lines) : lines_(lines) {
  for (const plan::Stage& stage : plan.stages) {
    for (const int b : stage.blocks()) {
      for (const plan::Part& part : stage.parts) add_shards(part, plan.pipelined().block(b).tokens);
    }
  }
  for (const plan::Boundary& boundary : plan.boundaries) {  // a stage receives at the length of the block before it
    const std::int64_t tokens = plan.pipelined().block(plan.stage(boundary.from).first_cut() - 1).tokens;
    for (const plan::Part& part : plan.stage(boundary.to).parts) add_shards(part, tokens);
  }
  // What begins or ends between two lines, and between which.
  std::map<std::int64_t, std::map<int, std::set<std::int64_t>>> between;
  for (const plan::Boundary& boundary : plan.boundaries) {
    const std::int64_t tokens = plan.pipelined().block(plan.stage(boundary.from).first_cut() - 1).tokens;
    const Places& places = places_[tokens];
    for (const plan::Transfer& t : boundary.transfers) {
      for (const std::int64_t position : {t.seq_first, t.seq_last}) {
        if (places.contains(position)) continue;
        const auto behind = places.upper_bound(position);
        if (behind == places.begin() || behind == places.end()) continue;
        between[tokens][std::prev(behind)->second].insert(position);
      }
    }
  }
  for (const auto& [tokens, lines_of] : between) {
    for (const auto& [line, positions] : lines_of) cells_ = std::max(cells_, static_cast<int>(positions.size()) + 1);
  }
  for (auto& [tokens, places] : places_) {
    for (auto& [position, place] : places) place *= cells_;
    for (const auto& [line, positions] : between[tokens]) {
      int place = line * cells_;
      for (const std::int64_t position : positions) places[position] = ++place;
    }
  }
}

// cp ranges of the sequence, each cut into tp ranges, as the plan's shards are.
void PositionScale::add_shards(const plan::Part& part, std::int64_t tokens) {
  const cost::Degrees& d = part.strategy.degrees;
  Places& places = places_[tokens];
  if (places.contains(tokens) && places.contains(0) && d.cp * d.tp == 1) return;
  for (int c = 0; c < d.cp; ++c) {
    const std::int64_t first = tokens * c / d.cp;
    const std::int64_t length = tokens * (c + 1) / d.cp - first;
    for (int t = 0; t <= d.tp; ++t) places.emplace(first + length * t / d.tp, lines_ / (d.cp * d.tp) * (c * d.tp + t));
  }
}

int PositionScale::at(std::int64_t tokens, std::int64_t position) const {
  const Places& places = places_.at(tokens);
  const auto behind = places.upper_bound(position);
  return behind == places.begin() ? 0 : std::prev(behind)->second;
}

}  // namespace tangram::execute
