// Logs of Megatron-LM, made up from what stages are said to take: what is read back, and what is refused.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "fixtures.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/plan/gpu_places.hpp"
#include "tangram/plan/launch_order.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::calibrate;
using namespace tangram::calibrate::fixtures;

namespace {

plan::LaunchPlan written(plan::LaunchPlan plan) {
  (void)plan::write_plan(plan);
  return plan;
}

std::string iteration_line(std::int64_t iteration, std::int64_t batch) {
  return fmt::format(
      " [2026-01-31 10:00:00.000000] iteration {:8d}/     500 | consumed samples: {:12d} | elapsed time per iteration "
      "(ms): 900.0 | learning rate: 1.000000E-04 | global batch size: {:5d} | loss scale: 1.0 |\n",
      iteration, iteration * batch, batch);
}

/// Milliseconds of an iteration, by rank of the log.
struct LogTimes {
  std::function<double(int)> forward;
  std::function<double(int)> backward;
  double batch = 0;
};

std::string by_rank(const std::string& timer, int ranks, const std::function<double(int)>& time) {
  std::string text = fmt::format("  {}:\n", timer);
  for (int rank = 0; rank < ranks; ++rank) text += fmt::format("     rank {:2d}: {:.4f}\n", rank, time(rank));
  return text;
}

std::string entry(const plan::LaunchPlan& plan, std::int64_t iteration, const LogTimes& times) {
  const auto ranks = static_cast<int>(plan.ranks.size());
  return iteration_line(iteration, plan.model.job.global_batch) + "times across ranks (ms):\n" +
         by_rank("forward-backward", ranks, [](int) { return 800.0; }) +
         by_rank("batch-generator", ranks, [&](int) { return times.batch; }) +
         by_rank("forward-compute", ranks, [&](int rank) { return times.forward(rank) + times.batch; }) +
         by_rank("backward-compute", ranks, times.backward) + by_rank("optimizer", ranks, [](int) { return 20.0; });
}

/// What an iteration takes that rank of the log by the cost model, a factor slower.
LogTimes modelled_times(const plan::LaunchPlan& plan, double factor) {
  const auto time = [&plan, factor](int log_rank, bool forward) {
    const plan::Rank& rank = at(plan.ranks, at(plan::stage_order(plan).plan_rank, log_rank));
    const plan::Stage& stage = plan.stage(rank.stage);
    const plan::Part& part = at(stage.parts, rank.part);
    const auto units =
        cost::unit_costs(plan.model, plan::shape_of(plan, part), part.strategy.degrees, static_cast<int>(part.samples));
    REQUIRE(units);
    const cost::StageCost cost = cost::chunked_cost(*units, stage.signatures(plan.model), part.strategy.policy).all;
    const auto microbatches = static_cast<double>(at(plan.pipelines, stage.pipeline).microbatches);
    return factor * microbatches * to_seconds(forward ? cost.forward : cost.backward) * 1e3;
  };
  return {[time](int rank) { return time(rank, true); }, [time](int rank) { return time(rank, false); }, 0.5};
}

std::string log_refusal(const plan::LaunchPlan& plan, const std::string& text) {
  return refusal_of(read_megatron_log({{"train.log", text}}, plan));
}

plan::LaunchPlan interleaved() { return written(plan::example::interleaved_plan()); }

/// One stage of tp 2 and dp 2 on class B.
plan::LaunchPlan one_stage() {
  plan::example::World world = plan::example::make_world();
  const plan::example::PartSpec part{1, 4, 4, plan::example::strategy(2, 1, 2)};
  return written(plan::example::make_plan(world, plan::example::make_composition(world, 1, 4, 8, {{8, {part}}})));
}

}  // namespace

TEST_CASE("megatron log: stages that take as long as the model says give the model's rows, a factor slower") {
  for (const plan::LaunchPlan& plan : {interleaved(), one_stage()}) {
    std::string log = "> building train, validation, and test datasets ...\n";
    for (const int iteration : {1, 2, 3, 4, 5, 6}) {
      log += entry(plan, iteration, modelled_times(plan, iteration <= 2 ? 10 : 1.25));
    }
    const auto timings = read_megatron_log({{"train.log", log}}, plan);
    if (!timings) FAIL(render(timings.error()));
    const Calibration calibration = calibrated(*timings, 2);
    CHECK(calibration.rows.size() >= 3);
    for (const CalibratedRow& row : calibration.rows) {
      CHECK(row.steps == 4);
      CHECK(std::abs(row.ratio() - 1.25) < 1e-3);
      CHECK(std::abs(to_seconds(row.row().forward) / row.modelled.forward - 1.25) < 1e-3);
      CHECK(row.row().degrees.dp == 1);
    }
    const cost::Profile& profile = calibration.profiles.front();
    CHECK(profile.includes_tp_communication);
    CHECK(profile.date == "2026-01-31");
    CHECK(has(profile.source, "shared out among their units"));
    CHECK(has(profile.source, plan.plan_id));
  }
}

TEST_CASE("megatron log: an entry is the mean of the iterations since the one before, which decides what warms up") {
  const plan::LaunchPlan plan = one_stage();
  std::string log;
  for (const int iteration : {10, 20, 30}) log += entry(plan, iteration, modelled_times(plan, 1));
  const auto timings = read_megatron_log({{"train.log", log}}, plan);
  REQUIRE(timings);
  CHECK(timings->units.front().observations.front().step == 1);
  CHECK(timings->units.front().observations.back().step == 21);
  CHECK(calibrated(*timings, 2).rows.front().steps == 2);
}

TEST_CASE("megatron log: words of launchers in front of lines are passed over") {
  const plan::LaunchPlan plan = one_stage();
  std::string log;
  for (const char c : entry(plan, 1, modelled_times(plan, 1))) {
    if (log.empty() || log.back() == '\n') log += "[default3]:";
    log += c;
  }
  const auto timings = read_megatron_log({{"train.log", log}}, plan);
  if (!timings) FAIL(render(timings.error()));
  CHECK(timings->units.front().observations.size() == plan.ranks.size());
}

TEST_CASE("megatron log: the least and the most of all ranks are enough for one stage") {
  const auto log = [](const plan::LaunchPlan& plan) {
    return iteration_line(7, plan.model.job.global_batch) +
           "(min, max) time across ranks (ms):\n"
           "    forward-backward ...............................: (800.00, 801.00)\n"
           "    forward-compute ................................: (200.00, 210.00)\n"
           "    backward-compute ...............................: (410.00, 430.00)\n";
  };
  const plan::LaunchPlan plan = one_stage();
  const auto timings = read_megatron_log({{"train.log", log(plan)}}, plan);
  if (!timings) FAIL(render(timings.error()));
  CHECK(timings->units.front().observations.size() == 2);
  const plan::LaunchPlan stages = interleaved();
  CHECK(has(log_refusal(stages, log(stages)), "train.log:2:1: error: the least and the most of all ranks"));
  CHECK(has(log_refusal(stages, log(stages)), "train with --timing-log-option all"));
}

TEST_CASE("megatron log: logs without the timers are refused with the flags that print them") {
  const plan::LaunchPlan plan = one_stage();
  const std::string iteration = iteration_line(1, plan.model.job.global_batch);
  const std::string flags = "--timing-log-level 2 --timing-log-option all";
  CHECK(has(log_refusal(plan, ""), flags));
  CHECK(has(log_refusal(plan, "hello\n"), "this is no log of Megatron-LM's training"));
  CHECK(has(log_refusal(plan, iteration), "the log has iterations, but no timers"));
  const std::string level_0 = iteration + "times across ranks (ms):\n  forward-backward:\n     rank  0: 800.00\n";
  CHECK(has(log_refusal(plan, level_0), "the log has timers, but not forward-compute and backward-compute"));
  CHECK(has(log_refusal(plan, level_0), flags));
}

TEST_CASE("megatron log: logs of another plan are refused at their line") {
  const plan::LaunchPlan plan = one_stage();
  const plan::LaunchPlan larger = interleaved();
  std::string log = entry(larger, 1, modelled_times(larger, 1));
  CHECK(has(log_refusal(plan, log), "where the plan has"));
  log = entry(plan, 1, modelled_times(plan, 1));
  plan::LaunchPlan other = plan;
  other.model.job.global_batch *= 2;
  CHECK(has(log_refusal(other, log), "train.log:2:1: error: a global batch of"));
}
