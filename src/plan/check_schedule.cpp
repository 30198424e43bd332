// Time: the in-flight microbatches each stage needs, the period they allow, and the closed form of the iteration.
//
// With T, F the largest over a stage's parts, A = T + exposed sync, c the boundary's one-way latency, from the last
// stage to the first:
//   Lat' = D + 2c + Lat          a' = max(a + F + c, A + Lat + 2c)        t = max(Lat, a) + (M - 1) P + max o
//   x = T + 2c + Q               n = max(n_next + 1, ceil(x / P))         Q = max(P (n - 1) + T, x)
// D is T, under zero bubble without the weight gradients that are put off (the largest over a stage's parts).
// P is the smallest whole number of nanoseconds that is at least every T and every link occupancy and for which no
// stage needs more microbatches in flight, min(n, M), than the plan gives it. The needed counts only fall as P grows,
// so P is found by bisection; at P = Lat, of T for D, one microbatch is enough at every depth, n = n_next + 1.
//
// Where chunks are interleaved, the closed form is that of check_interleaving.cpp. The search has it of a stage's
// blocks in a row: that these are dealt out to chunks changes it a little.
//
// Under zero bubble no iteration is shorter than zero_bubble_least().
//
// Where encoders are colocated, in rounds of k microbatches:
//   t = rounds (max E_f + gather + Lat + (k - 1) P + broadcast + max E_b) + max exposed sync + max o
// with the encoders' synchronisation and optimizer steps beside those of the stage.
//
// Where the runtime blocks for transfers, both stages of a boundary stop for c: P is the largest T plus the c of both
// boundaries of a stage, and stage s of S holds S - s microbatches.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "findings.hpp"
#include "saturating.hpp"
#include "tangram/base/at.hpp"

namespace tangram::plan {

namespace {

struct StageTime {
  int id = 0;
  std::int64_t T = 0;
  std::int64_t F = 0;
  std::int64_t A = 0;
  std::int64_t o = 0;
  std::int64_t c = 0;  ///< to the next stage
  std::int64_t occupancy = 0;
  std::int64_t in_flight = 1;  ///< as written
  std::int64_t passage = 0;    ///< the least of a microbatch's forward pass and input gradient
  std::int64_t longest_passage = 0;
};

StageTime time_of(const LaunchPlan& plan, const Stage& stage, const std::vector<RecomputedPart>& parts) {
  StageTime time;
  time.id = stage.id;
  std::int64_t exposed = 0;
  time.passage = std::numeric_limits<std::int64_t>::max();
  for (const auto& part : parts) {
    const auto& p = part.predicted;
    time.T = std::max(time.T, sum(p.forward.value(), p.backward.value()));
    time.F = std::max(time.F, p.forward.value());
    time.o = std::max(time.o, p.optimizer_step.value());
    exposed = std::max(exposed, p.gradient_sync_exposed.value());
    const std::int64_t passage = sum(p.forward.value(), (p.backward - p.weight_gradient).value());
    time.passage = std::min(time.passage, passage);
    time.longest_passage = std::max(time.longest_passage, passage);
    time.in_flight = std::max(time.in_flight, p.in_flight);
  }
  time.A = sum(time.T, exposed);
  for (const auto& boundary : plan.boundaries) {
    if (boundary.from != stage.id) continue;
    time.c = boundary.latency.value();
    time.occupancy = boundary.occupancy.value();
  }
  return time;
}

/// n of every stage at period P, first to last.
std::vector<std::int64_t> needed_in_flight(const std::vector<StageTime>& stages, std::int64_t period) {
  std::vector<std::int64_t> n(stages.size(), 1);
  std::int64_t q = 0;
  std::int64_t next = 0;
  for (std::size_t i = stages.size(); i-- > 0;) {
    const std::int64_t x = sum(sum(stages[i].T, product(2, stages[i].c)), q);
    n[i] = std::max(next + 1, x / period + (x % period != 0 ? 1 : 0));
    q = std::max(sum(product(period, n[i] - 1), stages[i].T), x);
    next = n[i];
  }
  return n;
}

bool allowed(const std::vector<StageTime>& stages, std::int64_t period, std::int64_t microbatches) {
  const auto n = needed_in_flight(stages, period);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (std::min(n[i], microbatches) > stages[i].in_flight) return false;
  }
  return true;
}

/// A period of stages that stop for their transfers.
std::int64_t blocking_period(const std::vector<StageTime>& stages) {
  std::int64_t period = 1;
  std::int64_t before = 0;
  for (const StageTime& stage : stages) {
    period = std::max(period, sum(sum(before, stage.T), stage.c));
    before = stage.c;
  }
  return period;
}

bool holds_classic_warmups(const std::vector<StageTime>& stages, std::int64_t microbatches) {
  auto depth = static_cast<std::int64_t>(stages.size());
  for (const StageTime& stage : stages) {
    if (stage.in_flight < std::min(depth--, microbatches)) return false;
  }
  return true;
}

struct ClosedForm {
  bool feasible = false;
  std::int64_t first_out = 0;  ///< max(Lat, a)
  std::int64_t optimizer = 0;
  std::int64_t least_period = 1;
  std::int64_t period = 0;
  std::int64_t time = 0;
};

/// The smallest period at which every stage holds what it has in flight; notes whether there is one.
std::int64_t period_of(const std::vector<StageTime>& stages, std::int64_t microbatches, std::int64_t latency,
                       runtime::Transfers transfers, ClosedForm& form) {
  if (transfers == runtime::Transfers::kBlocking) {
    form.feasible = holds_classic_warmups(stages, microbatches);
    return blocking_period(stages);
  }
  std::int64_t low = form.least_period;
  std::int64_t high = std::max(low, latency);
  form.feasible = allowed(stages, high, microbatches);
  while (form.feasible && low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (allowed(stages, middle, microbatches)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

ClosedForm closed_form(const std::vector<StageTime>& stages, std::int64_t microbatches, runtime::Transfers transfers) {
  ClosedForm form;
  std::int64_t latency = 0;
  std::int64_t round_trip = 0;  // with weight gradients
  std::int64_t a = 0;
  for (std::size_t i = stages.size(); i-- > 0;) {
    const StageTime& s = stages[i];
    const std::int64_t round = product(2, s.c);
    a = std::max(sum(sum(a, s.F), s.c), sum(sum(s.A, latency), round));
    latency = sum(sum(latency, s.longest_passage), round);
    round_trip = sum(sum(round_trip, s.T), round);
    form.optimizer = std::max(form.optimizer, s.o);
    form.least_period = std::max({form.least_period, s.T, s.occupancy});
  }
  form.first_out = std::max(latency, a);
  form.period = period_of(stages, microbatches, round_trip, transfers, form);
  form.time = sum(sum(form.first_out, product(microbatches - 1, form.period)), form.optimizer);
  return form;
}

// Whatever the warm-up: a stage runs its M microbatches one after another, behind the first one's way to it and before
// the last one's way back.
std::int64_t lower_bound(const std::vector<StageTime>& stages, std::int64_t microbatches) {
  std::int64_t bound = 0;
  std::int64_t before = 0;
  for (const auto& s : stages) {
    bound = std::max(bound, sum(product(microbatches, s.T), before));
    before = sum(before, sum(s.T, product(2, s.c)));
  }
  return std::max(bound, before);
}

// A stage runs its M microbatches behind the forward passes in front of it; and the first one goes all the way there
// and back, without weight gradients.
std::int64_t zero_bubble_least(const std::vector<StageTime>& stages, std::int64_t microbatches) {
  std::int64_t bound = 0;
  std::int64_t fill = 0;
  std::int64_t passage = 0;
  for (const auto& s : stages) {
    bound = std::max(bound, sum(product(microbatches, s.T), fill));
    fill = sum(fill, sum(s.F, s.c));
    passage = sum(passage, sum(s.passage, product(2, s.c)));
  }
  return std::max(bound, passage);
}

void check_put_off(const Stage& stage, std::int64_t microbatches, Findings& findings) {
  const std::int64_t in_flight = stage.parts.front().predicted.in_flight;
  if (in_flight < 1 || in_flight > microbatches || stage.put_off <= microbatches - in_flight) return;
  findings.add("put-off-range", at_stage(stage.id),
               "holds " + std::to_string(stage.put_off) + " microbatches beside the " + std::to_string(in_flight) +
                   " in flight, of " + std::to_string(microbatches) + " in all");
}

void check_counts(const Stage& stage, std::int64_t microbatches, Findings& findings) {
  for (std::size_t p = 0; p < stage.parts.size(); ++p) {
    const std::int64_t in_flight = stage.parts[p].predicted.in_flight;
    if (in_flight < 1 || in_flight > microbatches) {
      findings.add("in-flight-range", at_part(stage.id, p),
                   std::to_string(in_flight) + " microbatches in flight of " + std::to_string(microbatches));
    }
    if (in_flight != stage.parts.front().predicted.in_flight) {
      findings.add("in-flight-differs", at_part(stage.id, p), "parts of a stage hold equally many microbatches");
    }
    if (stage.warmup != in_flight - 1) {
      findings.add("warmup-differs", at_part(stage.id, p),
                   "warms up with " + std::to_string(stage.warmup) + " forward passes for " +
                       std::to_string(in_flight) + " microbatches in flight");
    }
  }
}

// The counts that the written closed form rests on: its period is what remains when everything else is subtracted.
void check_in_flight(const std::vector<StageTime>& stages, const ClosedForm& form, std::int64_t microbatches,
                     Nanoseconds written, Findings& findings) {
  if (microbatches <= 1) return;
  const std::int64_t rest = written.value() - form.first_out - form.optimizer;
  const std::int64_t period = std::max(form.least_period, rest / (microbatches - 1));
  const auto needed = needed_in_flight(stages, period);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::int64_t count = std::min(needed[i], microbatches);
    if (count > stages[i].in_flight) {
      findings.add("in-flight-low", at_stage(stages[i].id),
                   "a period of " + std::to_string(period) + " ns needs " + std::to_string(count) +
                       " microbatches in flight, not " + std::to_string(stages[i].in_flight));
    }
  }
}

/// Stages that stop for their transfers wait for each other for ever where one warms up otherwise.
void check_classic(const std::vector<StageTime>& stages, std::int64_t microbatches, Findings& findings) {
  auto depth = static_cast<std::int64_t>(stages.size());
  for (const StageTime& stage : stages) {
    const std::int64_t classic = std::min(depth--, microbatches);
    if (stage.in_flight == classic) continue;
    findings.add(
        "warmup-not-classic", at_stage(stage.id),
        "the runtime holds " + std::to_string(classic) + " microbatches there, not " + std::to_string(stage.in_flight));
  }
}

/// Chunks of unlike size, and times that are rounded pass by pass.
constexpr double kInterleavedSlack = 2e-3;

bool is_closed_form(const LaunchPlan& plan, Nanoseconds recomputed) {
  const Nanoseconds written = plan.predicted.closed_form;
  if (!plan.is_interleaved()) return written == recomputed;
  return std::abs((written - recomputed).as_double()) <= kInterleavedSlack * recomputed.as_double();
}

struct PipelineTime {
  std::int64_t last_backward = 0;  ///< with its synchronisation
  std::int64_t optimizer = 0;
  std::int64_t least = 0;  ///< no iteration is shorter
};

PipelineTime classic_time(const LaunchPlan& plan, const Pipeline& pipeline, std::vector<StageTime> stages,
                          Findings& findings) {
  stages.back().c = 0;
  stages.back().occupancy = 0;
  const ClosedForm form = closed_form(stages, pipeline.microbatches, plan.semantics().transfers);
  if (!form.feasible) {
    findings.add("in-flight-low", at_pipeline(pipeline.id),
                 "no period is long enough for so few microbatches in flight");
  }
  if (plan.semantics().warmup == runtime::Warmup::kClassic) {
    check_classic(stages, pipeline.microbatches, findings);
  } else {
    check_in_flight(stages, form, pipeline.microbatches, plan.predicted.closed_form, findings);
  }
  const std::int64_t least =
      plan.zero_bubble ? zero_bubble_least(stages, pipeline.microbatches) : lower_bound(stages, pipeline.microbatches);
  return {form.time - form.optimizer, form.optimizer, least};
}

InterleavedStage chunk_times(const StageTime& time, const std::vector<RecomputedPart>& parts) {
  InterleavedStage stage;
  const std::size_t chunks = parts.front().predicted.chunks.size();
  stage.forward.resize(chunks);
  stage.backward.resize(chunks);
  stage.compute = time.T;
  stage.exposed = time.A - time.T;
  stage.latency = time.c;
  stage.occupancy = time.occupancy;
  for (const RecomputedPart& part : parts) {
    for (std::size_t c = 0; c < chunks; ++c) {
      stage.forward[c] = std::max(stage.forward[c], part.predicted.chunks[c].forward.value());
      stage.backward[c] = std::max(stage.backward[c], part.predicted.chunks[c].backward.value());
    }
  }
  return stage;
}

/// The encoders of a pipeline's GPUs, and what both synchronise.
struct EncoderTimes {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  std::int64_t exposed = 0;
  std::int64_t step = 0;
};

EncoderTimes encoder_times(const std::vector<StageTime>& stages, const Recomputed& recomputed) {
  EncoderTimes times;
  for (const StageTime& stage : stages) {
    for (const RecomputedPart& part : at(recomputed, stage.id)) {
      const EncoderPrediction& own = part.encoders;
      times.forward = std::max(times.forward, own.forward.value());
      times.backward = std::max(times.backward, own.backward.value());
      times.exposed = std::max(times.exposed, sum(stage.A - stage.T, own.gradient_sync_exposed.value()));
      times.step = std::max(times.step, sum(stage.o, own.optimizer_step.value()));
    }
  }
  return times;
}

PipelineTime colocated_time(const LaunchPlan& plan, const Pipeline& pipeline, std::vector<StageTime> stages,
                            const Recomputed& recomputed, Findings& findings) {
  const bool each = plan.colocated->each_microbatch();
  const std::int64_t rounds = each ? pipeline.microbatches : 1;
  const std::int64_t microbatches = each ? 1 : pipeline.microbatches;
  const EncoderTimes encoders = encoder_times(stages, recomputed);
  stages.back().c = 0;
  stages.back().occupancy = 0;
  for (StageTime& stage : stages) {
    stage.A = stage.T;
    if (each) stage.in_flight = 1;
  }
  const ClosedForm form = closed_form(stages, microbatches, plan.semantics().transfers);
  if (!form.feasible) {
    findings.add("in-flight-low", at_pipeline(pipeline.id),
                 "no period is long enough for so few microbatches in flight");
  }
  const std::int64_t turns = sum(sum(encoders.forward, encoders.backward),
                                 sum(plan.colocated->gather.value(), plan.colocated->broadcast.value()));
  const std::int64_t round = sum(sum(form.first_out, product(microbatches - 1, form.period)), turns);
  PipelineTime time;
  time.last_backward = sum(product(rounds, round), encoders.exposed);
  time.optimizer = encoders.step;
  time.least = product(rounds, sum(encoders.forward, lower_bound(stages, microbatches)));
  return time;
}

PipelineTime interleaved_time(const LaunchPlan& plan, const Pipeline& pipeline, const std::vector<StageTime>& times,
                              const Recomputed& recomputed, Findings& findings) {
  const auto chunks = static_cast<std::int64_t>(plan.chunks());
  const auto depth = static_cast<std::int64_t>(times.size());
  const std::int64_t passes = product(pipeline.microbatches, chunks);
  PipelineTime result;
  std::vector<InterleavedStage> stages;
  for (std::int64_t s = 0; s < depth; ++s) {
    const StageTime& time = at(times, s);
    stages.push_back(chunk_times(time, at(recomputed, time.id)));
    result.optimizer = std::max(result.optimizer, time.o);
    const std::int64_t warmup = interleaved_warmup(s, depth, chunks, plan.group, pipeline.microbatches);
    const std::int64_t classic = std::min(sum(warmup, 1), passes);
    if (time.in_flight == classic) continue;
    findings.add("warmup-not-classic", at_stage(time.id),
                 "the runtime holds " + std::to_string(classic) + " microbatches there, counted in each chunk, not " +
                     std::to_string(time.in_flight));
  }
  const runtime::Transfers transfers = plan.semantics().transfers;
  result.last_backward = interleaved_closed_form(stages, pipeline.microbatches, plan.group, transfers);
  result.least = sum(interleaved_least(stages, pipeline.microbatches, transfers), result.optimizer);
  return result;
}

}  // namespace

Nanoseconds check_schedule(const LaunchPlan& plan, const Recomputed& recomputed, Findings& findings) {
  std::int64_t last_backward = 0;
  std::int64_t step = 0;
  for (const auto& pipeline : plan.pipelines) {
    std::vector<StageTime> stages;
    for (const int id : pipeline.stages) {
      check_counts(plan.stage(id), product(pipeline.microbatches, static_cast<std::int64_t>(plan.chunks())), findings);
      check_put_off(plan.stage(id), pipeline.microbatches, findings);
      stages.push_back(time_of(plan, plan.stage(id), at(recomputed, id)));
    }
    const PipelineTime time = plan.colocated          ? colocated_time(plan, pipeline, stages, recomputed, findings)
                              : plan.is_interleaved() ? interleaved_time(plan, pipeline, stages, recomputed, findings)
                                                      : classic_time(plan, pipeline, stages, findings);
    last_backward = std::max(last_backward, time.last_backward);
    step = std::max(step, time.optimizer);
    if (plan.predicted.iteration.value() != 0 && plan.predicted.iteration.value() < time.least) {
      findings.add("iteration-too-short", at_pipeline(pipeline.id),
                   "the predicted iteration of " + std::to_string(plan.predicted.iteration.value()) +
                       " ns is below what its stages need, " + std::to_string(time.least) + " ns");
    }
  }
  // No pipeline takes its step before all are through: the norm of the gradients is of all of them.
  const Nanoseconds total(sum(last_backward, step));
  if (!is_closed_form(plan, total)) {
    findings.add("closed-form-differs", "plan",
                 "the closed form is " + std::to_string(plan.predicted.closed_form.value()) + " ns, recomputed it is " +
                     std::to_string(total.value()) + " ns");
  }
  return total;
}

}  // namespace tangram::plan
