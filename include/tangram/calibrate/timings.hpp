// What a run measured. Goes in: timings that a runtime wrote (tangram.timings/1, described in timings_reader.cpp), or a
// log of Megatron-LM and the plan that it ran. Comes out: passes of units as ranks timed them, by what was timed, each
// beside what the cost model says of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/plan/launch_plan.hpp"
#include "tangram/profiles/import.hpp"

namespace tangram::calibrate {

/// One forward and one backward pass of a unit, as one rank timed them in one step.
struct Observation {
  int run = 0;  ///< index in Timings::runs
  std::int64_t step = 0;
  int rank = 0;
  double forward = 0;   ///< seconds
  double backward = 0;  ///< seconds, with what was recomputed
  cost::RecomputeMode recompute = cost::RecomputeMode::kNone;
  cost::Passes share{1, 1};  ///< of what the unit takes where it is trained in full, as modelled
};

/// What the cost model says of a unit without profiles, in seconds: compute, and the exchanges of tensor parallelism
/// where the times that it stands beside hold them.
struct Modelled {
  double forward = 0;
  double backward = 0;             ///< without recompute
  double selective_recompute = 0;  ///< what selective recompute adds to backward
};

/// What the cost model says of a unit that runs otherwise than it was timed.
struct Elsewhere {
  cost::Degrees degrees;  ///< dp is 1
  std::int64_t samples = 1;
  cost::Passes compute;  ///< seconds
  cost::Passes tensor;   ///< exchanges of tensor and expert-tensor parallelism
};

/// Equal units on GPUs of one type, at the same degrees and samples: what one row of a profile speaks of.
struct TimedUnit {
  cluster::GpuType device;
  cost::ProfileUnit unit;  ///< without rows
  std::string type;        ///< of a block, as the model calls it
  cost::Degrees degrees;   ///< dp is 1
  std::int64_t samples = 1;
  bool includes_tp_communication = false;
  Modelled modelled;
  std::vector<Elsewhere> elsewhere;  ///< degrees and samples that plans have: see modelled.hpp
  std::vector<Observation> observations;
};

/// Times between one header and the next.
struct Run {
  std::string plan;    ///< plan_id: ranks of equal steps of one plan ran together
  std::string source;  ///< for the profile
  std::string date;    ///< YYYY-MM-DD, or empty
};

struct Timings {
  std::vector<Run> runs;
  std::vector<TimedUnit> units;
  std::vector<profiles::Note> notes;
};

/// GPU types are those of `plan`, where it is given, and of `devices`; with a plan the model and the links behind the
/// predictions are its own where it ran in the header's run, else those of the header and of one host.
[[nodiscard]] Expected<Timings> read_timings(const std::vector<profiles::SourceFile>& files,
                                             std::span<const cluster::GpuType> devices,
                                             const plan::LaunchPlan* plan = nullptr);

/// Megatron-LM sums up the passes of a stage over an iteration. The time of one microbatch is shared out among the
/// stage's units as the cost model predicts them. Fails on logs without the timers, and says which flags print them.
[[nodiscard]] Expected<Timings> read_megatron_log(const std::vector<profiles::SourceFile>& files,
                                                  const plan::LaunchPlan& plan);

}  // namespace tangram::calibrate
