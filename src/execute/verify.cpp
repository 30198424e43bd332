#include "tangram/execute/verify.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "compare.hpp"
#include "faults.hpp"
#include "reduction.hpp"
#include "run.hpp"
#include "schedule.hpp"
#include "structure.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::execute {

namespace {

// What a minute on one core executes, with room to spare; plans for real fleets stay far below.
constexpr std::int64_t kMostMicrobatches = 2048;
constexpr std::int64_t kMostPositions = 2048;
constexpr std::int64_t kMostSamples = 100'000;

Diagnostic refusal(std::string code, std::string message, std::string hint) {
  return problem(ErrorKind::kInput, std::move(code), std::move(message), std::move(hint));
}

std::vector<StageReport> stages_of(const plan::LaunchPlan& plan) {
  std::vector<StageReport> stages;
  for (const plan::Stage& stage : plan.stages) {
    StageReport report;
    report.stage = stage.id;
    report.pipeline = stage.pipeline;
    report.planned = stage.parts.front().predicted.in_flight;
    stages.push_back(std::move(report));
  }
  return stages;
}

std::vector<EncoderReport> encoders_of(const plan::LaunchPlan& plan) {
  std::vector<EncoderReport> encoders;
  if (!plan.colocated) return encoders;
  for (const plan::ColocatedEncoders::Encoder& encoder : plan.colocated->encoders) {
    encoders.emplace_back().module = encoder.module;
  }
  return encoders;
}

/// What the ranks of a stage held at once must be what the schedule says, as far as the executed microbatches go.
void count_in_flight(const Job& job, const Run& run, Report& report) {
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    const JobRank& rank = job.ranks[r];
    StageReport& stage = at(report.stages, job.stage_of(rank).id);
    stage.executed = true;
    ++stage.ranks;
    const JobPipeline& pipeline = job.pipeline_of(rank);
    const std::int64_t expected = std::min(stage.in_flight, pipeline.microbatches * pipeline.chunks());
    if (run.ranks[r]->most_in_flight() == expected) continue;
    report.findings.push_back({"in-flight-differs", "rank " + std::to_string(rank.number),
                               fmt::format("held {} microbatches at once while executing, the schedule says {}",
                                           run.ranks[r]->most_in_flight(), expected)});
  }
}

/// A lane keeps what the backward passes of its turn need, no less and no more.
void count_held(const Job& job, const Run& run, Report& report) {
  for (std::size_t e = 0; e < job.encoders.size(); ++e) {
    EncoderReport& encoder = report.encoders[e];
    encoder.trained = job.encoders[e].trains();
    encoder.lanes = static_cast<int>(job.ranks.size()) / job.encoders[e].layout.tp;
    for (std::size_t r = 0; r < run.ranks.size(); ++r) {
      const EncoderProgram& program = run.ranks[r]->encoders()[e];
      encoder.held = std::max(encoder.held, program.most_held());
      encoder.planned_held = std::max(encoder.planned_held, program.planned_held());
      if (program.most_held() == program.planned_held()) continue;
      report.findings.push_back(
          {"held-differs", "encoder " + encoder.module,
           fmt::format("rank {} held activations of {} samples at once, its lane has {} in a turn", job.ranks[r].number,
                       program.most_held(), program.planned_held())});
      return;
    }
  }
}

void execute(const Job& job, const Misbehaviour& misbehaviour, Report& report) {
  const Run real = run(job, misbehaviour);
  if (real.stopped) {
    report.findings.push_back(*real.stopped);
    return;
  }
  report.executed = true;
  report.messages = real.messages;
  report.collectives = real.collectives;
  count_in_flight(job, real, report);
  count_held(job, real, report);
  const Job alone = one_process(job);
  compare(job, real, run(alone), report);
}

/// Numbers of a file may be anything; what cannot be executed at any size is refused before it is tried.
std::optional<Diagnostic> too_large(const plan::LaunchPlan& plan) {
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    std::int64_t deepest = 0;
    for (const int id : pipeline.stages) deepest = std::max(deepest, plan.stage(id).warmup);
    if (std::min(deepest, pipeline.microbatches) > kMostMicrobatches) {
      return refusal("warmup-too-deep",
                     fmt::format("pipeline {} warms up with {} microbatches, more than {} are not executed",
                                 pipeline.id, deepest, kMostMicrobatches),
                     "tangram check judges such a plan without executing it");
    }
  }
  return std::nullopt;
}

std::optional<Diagnostic> too_large(const Job& job) {
  if (job.samples <= kMostSamples && job.model.positions <= kMostPositions) return std::nullopt;
  return refusal("plan-too-large",
                 fmt::format("its shares have so little in common that {} samples of {} positions would be executed",
                             job.samples, job.model.positions),
                 "tangram check judges such a plan without executing it");
}

}  // namespace

Expected<Report> verify(const plan::LaunchPlan& written, const VerifyOptions& options) {
  plan::LaunchPlan plan = written;
  Misbehaviour misbehaviour;
  if (options.fault && !inject(*options.fault, plan, misbehaviour)) {
    return fail(problem(ErrorKind::kUsage, "nothing-to-inject", "the plan has nothing that this fault could act on"));
  }
  Report report;
  report.stages = stages_of(plan);
  report.encoders = encoders_of(plan);
  if (options.check_structure) report.findings = structure_findings(plan);
  if (!report.ok()) return report;
  if (auto refused = too_large(plan)) return fail(*std::move(refused));

  Replay order = replay(plan);
  for (StageReport& stage : report.stages) {
    stage.in_flight = at(order.most_in_flight, stage.stage);
  }
  report.findings = std::move(order.findings);
  const bool stuck = std::ranges::any_of(report.findings, [](const Finding& f) { return f.code == "deadlock"; });
  if (stuck && options.check_structure) return report;

  Reduction reduction = reduce(plan);
  report.shrunk = std::move(reduction.shrunk);
  if (auto refused = too_large(reduction.job)) return fail(*std::move(refused));
  execute(reduction.job, misbehaviour, report);
  return report;
}

}  // namespace tangram::execute
