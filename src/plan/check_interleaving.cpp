// Interleaved schedules: stages of several model chunks, through which microbatches go in groups (Narayanan et al.,
// arXiv 2104.04473, section 2.2; Megatron-LM megatron/core/pipeline_parallel/schedules.py, get_schedule_table).
#include <algorithm>
#include <string>

#include "findings.hpp"
#include "saturating.hpp"
#include "tangram/base/at.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::plan {

namespace {

/// Forward passes take the microbatches in groups: a group goes through the first chunk, then through the second, and
/// so on. Backward passes do the same from the last chunk to the first.
class Turns {
 public:
  Turns(std::int64_t microbatches, std::int64_t chunks, std::int64_t group)
      : microbatches_(microbatches), chunks_(chunks), group_(group) {}

  [[nodiscard]] std::int64_t passes() const { return microbatches_ * chunks_; }

  /// Microbatches that the first n passes take through the chunk whose turn is the turn-th of a group.
  [[nodiscard]] std::int64_t taken(std::int64_t n, std::int64_t turn) const {
    const std::int64_t first = n / (group_ * chunks_) * group_;
    if (first >= microbatches_) return microbatches_;
    const std::int64_t length = std::min(group_, microbatches_ - first);
    return first + std::clamp<std::int64_t>(n - first * chunks_ - turn * length, 0, length);
  }

  /// Where a chunk's turn begins: passes before it, ascending.
  [[nodiscard]] std::vector<std::int64_t> begins() const {
    std::vector<std::int64_t> begins;
    for (std::int64_t first = 0; first < microbatches_; first += group_) {
      const std::int64_t length = std::min(group_, microbatches_ - first);
      for (std::int64_t turn = 0; turn < chunks_; ++turn) begins.push_back(first * chunks_ + turn * length);
    }
    return begins;
  }

 private:
  std::int64_t microbatches_;
  std::int64_t chunks_;
  std::int64_t group_;
};

/// Warm-ups of more are of no runtime, and told apart by their bound.
constexpr std::int64_t kMostGroups = 10'000;

std::int64_t largest_activation(const PartPrediction& part) {
  std::int64_t largest = 0;
  for (const ChunkPrediction& chunk : part.chunks) largest = std::max(largest, chunk.activation.value());
  return largest;
}

void check_groups(const LaunchPlan& plan, const Pipeline& pipeline, Findings& findings) {
  const auto stages = static_cast<std::int64_t>(pipeline.stages.size());
  if (stages < 2) {
    findings.add("group-refused", at_pipeline(pipeline.id), "a single stage has nobody to take turns with");
    return;
  }
  const std::string why = runtime::interleaving_refusal(pipeline.microbatches, stages, plan.group);
  if (!why.empty()) findings.add("group-refused", at_pipeline(pipeline.id), why);
}

/// A boundary has one list of transfers and one price: what crosses it behind each chunk is alike.
void check_cuts(const LaunchPlan& plan, const Stage& stage, Findings& findings) {
  const auto crosses = [&](int cut) {
    return std::pair(plan.pipelined().block(cut - 1).tokens, model::cut_bytes(plan.pipelined(), cut));
  };
  for (const model::BlockRange& chunk : stage.chunks) {
    if (chunk.last == plan.pipelined().block_count() || stage.first_cut() == plan.pipelined().block_count()) continue;
    if (crosses(chunk.last) == crosses(stage.first_cut())) continue;
    findings.add("cuts-differ", at_stage(stage.id),
                 "hands over other activations behind block " + std::to_string(chunk.last) + " than behind block " +
                     std::to_string(stage.first_cut()));
  }
}

}  // namespace

void check_interleaving(const LaunchPlan& plan, Findings& findings) {
  if (!plan.is_interleaved()) return;
  for (const Pipeline& pipeline : plan.pipelines) check_groups(plan, pipeline, findings);
  for (const Stage& stage : plan.stages) check_cuts(plan, stage, findings);
}

std::int64_t interleaved_warmup(std::int64_t stage, std::int64_t stages, std::int64_t chunks, std::int64_t group,
                                std::int64_t microbatches) {
  return std::min(sum(2 * (stages - 1 - stage), product(chunks - 1, group)), product(microbatches, chunks));
}

// Between two beginnings of turns each step adds a microbatch to one chunk and takes one from another, so that what is
// held grows or falls evenly: the peak is at one of them. Groups repeat each other: a few tell of all.
std::int64_t interleaved_activations(const PartPrediction& part, std::int64_t microbatches, std::int64_t group,
                                     std::int64_t warmup) {
  const auto chunks = static_cast<std::int64_t>(part.chunks.size());
  group = std::min(group, microbatches);
  const std::int64_t lead_groups = warmup / chunks / group + 4;
  if (lead_groups > kMostGroups) return product(sum(warmup, 1), largest_activation(part));
  const std::int64_t few = microbatches % group + product(lead_groups, group);
  const Turns turns(std::min(microbatches, few), chunks, group);
  // Backward passes that have ended when the last forward pass has.
  const std::int64_t steady = std::max<std::int64_t>(0, turns.passes() - warmup - 1);
  const auto held = [&](std::int64_t backward) {
    const std::int64_t forward = std::min(turns.passes(), sum(warmup, backward + 1));
    std::int64_t bytes = 0;
    for (std::int64_t c = 0; c < chunks; ++c) {
      const std::int64_t count = turns.taken(forward, c) - turns.taken(backward, chunks - 1 - c);
      bytes = sum(bytes, product(at(part.chunks, c).activation.value(), std::max<std::int64_t>(0, count)));
    }
    return bytes;
  };
  std::int64_t peak = std::max(held(0), held(steady));
  for (const std::int64_t begin : turns.begins()) {
    for (const std::int64_t backward : {begin, begin - warmup - 1}) {
      if (backward > 0 && backward < steady) peak = std::max(peak, held(backward));
    }
  }
  return peak;
}

std::int64_t interleaved_least(const std::vector<InterleavedStage>& stages, std::int64_t microbatches,
                               runtime::Transfers transfers) {
  const auto waits = [&](std::size_t s) {  // for what it sends forward, of all microbatches
    if (transfers != runtime::Transfers::kForwardBlocking) return std::int64_t{0};
    const std::size_t sends = stages[s].forward.size() - (s + 1 == stages.size() ? 1 : 0);
    return product(product(stages[s].latency, static_cast<std::int64_t>(sends)), microbatches);
  };
  std::int64_t end = 0;
  std::int64_t begin = 0;  // of the stage: when the first activation can be there
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const InterleavedStage& stage = stages[s];
    std::int64_t last = sum(begin, sum(product(stage.compute, microbatches), waits(s)));
    end = std::max(end, sum(last, stage.exposed));
    for (std::size_t before = s; before-- > 0;) {
      last = sum(last, sum(stages[before].latency, stages[before].backward.front()));
      end = std::max(end, sum(last, stages[before].exposed));
    }
    begin = sum(begin, sum(stage.forward.front(), stage.latency));
  }
  return end;
}

namespace {

std::int64_t rounded_up(std::int64_t number, std::int64_t divisor) {
  return number / divisor + (number % divisor != 0 ? 1 : 0);
}

/// Of passes of one chunk.
std::int64_t pass_time(const InterleavedStage& stage) {
  return rounded_up(stage.compute, static_cast<std::int64_t>(stage.forward.size()));
}
std::int64_t forward_time(const InterleavedStage& stage) {
  std::int64_t all = 0;
  for (const std::int64_t chunk : stage.forward) all = sum(all, chunk);
  return rounded_up(all, static_cast<std::int64_t>(stage.forward.size()));
}

/// A stage has two passes more in flight than the one behind it: the way over stages s to t and back has 2 (t - s) + 1
/// periods, with the transfer that t stops for.
std::int64_t interleaved_period(const std::vector<InterleavedStage>& stages, runtime::Transfers transfers) {
  const bool stops = transfers == runtime::Transfers::kForwardBlocking;
  std::int64_t period = 1;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    period = std::max(period, stages[s].occupancy);
    std::int64_t way = 0;
    for (std::size_t t = s; t < stages.size(); ++t) {
      if (t > s) way = sum(way, product(2, stages[t - 1].latency));
      way = sum(way, pass_time(stages[t]));
      const std::int64_t kept = sum(way, stops ? stages[t].latency : 0);
      period = std::max(period, rounded_up(kept, static_cast<std::int64_t>(2 * (t - s) + 1)));
    }
  }
  return period;
}

}  // namespace

std::int64_t interleaved_closed_form(const std::vector<InterleavedStage>& stages, std::int64_t microbatches,
                                     std::int64_t group, runtime::Transfers transfers) {
  const std::int64_t period = interleaved_period(stages, transfers);
  std::int64_t latency = 0;
  std::int64_t end = 0;
  for (std::size_t s = stages.size(); s-- > 0;) {
    const std::int64_t behind = s + 1 < stages.size() ? stages[s].latency : 0;
    const std::int64_t whole = sum(latency, product(2, behind));
    const std::int64_t own = sum(pass_time(stages[s]), stages[s].exposed);
    end = std::max(sum(end, sum(forward_time(stages[s]), behind)), sum(own, whole));
    latency = sum(whole, pass_time(stages[s]));
  }
  const auto chunks = static_cast<std::int64_t>(stages.front().forward.size());
  const std::int64_t around = sum(latency, product(2, stages.back().latency));
  const std::int64_t late = std::max<std::int64_t>(0, around - product(group, period));
  end = sum(end, product(product(microbatches, chunks) - 1, period));
  return sum(end, product(chunks - 1, late));
}

}  // namespace tangram::plan
