// From a run to a profile. Goes in: timings. Comes out: one row for all times of equal units, what the cost model says
// of it, and a profile for each GPU type that `plan --profile` reads.
//
// How many times become one:
//   warm-up     the first steps of each run load kernels and find algorithms: they are left out
//   repeats     the median of what one rank timed of a unit in one step
//   ranks       With the exchanges of tensor parallelism in the times, each rank's time holds its wait for the slowest
//   of
//               its group: the median of all ranks. Without them nobody has waited yet, and a group gets on as fast as
//               its slowest rank: the median over groups of the slowest of tp ranks that follow each other. The slowest
//               group does not decide. A profile speaks of a GPU type, on whose other GPUs the next plan may run; ranks
//               that fall behind are reported instead
//   steps       the median over all steps of all runs, without steps that stand out (profiles::outliers_of_equals)
//   recompute   what was recomputed in full is one more forward pass, taken off. Selective recompute cannot be told
//               apart from backward: such times are left out where others exist, and are reduced by the model's share
//               of recompute where none do
//   elsewhere   A plan that measured rows speak against can turn to degrees and samples that nobody timed, where the
//               model alone would still praise it. There the profile has scaled rows: the model's times, forward and
//               backward each times the median of measured / modelled of the unit's rows
// Exchanges of tp are in the times of a profile where rows of tp > 1 were timed with them. Rows that cannot be true of
// their GPU (cost::find_anomaly) are left out, as `plan` would refuse them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tangram/calibrate/timings.hpp"

namespace tangram::calibrate {

inline constexpr std::int64_t kWarmUpSteps = 2;

/// A rank is reported whose units take longer than the median of its type by this much: twice the 10 % by which
/// measurements of equal GPUs are taken to differ at most.
inline constexpr double kFallsBehind = 1.2;

struct CalibratedRow {
  cluster::GpuType device;
  cost::ProfileUnit unit;  ///< with one row: the measured one
  std::string type;        ///< of a block, as the model calls it
  std::int64_t steps = 0;  ///< that count
  std::int64_t ranks = 0;
  std::int64_t outliers = 0;  ///< steps that stood out
  double spread = 0;  ///< of forward + backward from step to step, relative: 1.4826 median absolute deviations, which
                      ///< is the standard deviation where times are normal
  Modelled modelled;

  [[nodiscard]] const cost::ProfileRow& row() const { return unit.rows.front(); }
  [[nodiscard]] double measured_seconds() const { return to_seconds(row().forward) + to_seconds(row().backward); }
  [[nodiscard]] double modelled_seconds() const { return modelled.forward + modelled.backward; }
  [[nodiscard]] double ratio() const { return measured_seconds() / modelled_seconds(); }
};

struct Options {
  std::int64_t skip = kWarmUpSteps;
  std::string gpu;    ///< the one type that is wanted, by name; empty: all
  bool scale = true;  ///< with rows for degrees and samples that were not timed
};

struct Calibration {
  std::vector<CalibratedRow> rows;      ///< by GPU type, as they were first seen
  std::vector<cost::Profile> profiles;  ///< one a GPU type, by name; read_profile accepts each
  std::vector<profiles::Note> notes;
};

/// Fails where no row is left.
[[nodiscard]] Expected<Calibration> calibrate(const Timings& timings, const Options& options = {});

}  // namespace tangram::calibrate
