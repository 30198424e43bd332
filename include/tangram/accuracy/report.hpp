// How far predictions are from measurements. Goes in: measurements. Comes out: one line for each, and statistics of
// groups of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tangram/accuracy/measurement.hpp"
#include "tangram/accuracy/prediction.hpp"
#include "tangram/discrepancy/discrepancy.hpp"

namespace tangram::accuracy {

struct Line {
  Measurement measurement;
  Prediction prediction;
  discrepancy::Traits traits;
  std::string reason;  ///< why it cannot be expressed; empty: it was

  [[nodiscard]] bool timed() const { return reason.empty() && measurement.iteration_s > 0; }
  [[nodiscard]] bool refused() const { return prediction.usable_share > 1; }
  /// What a run had when it ran out is no peak.
  [[nodiscard]] bool weighed() const {
    return reason.empty() && measurement.peak_memory > 0 && !measurement.out_of_memory;
  }
  /// Predicted over measured, minus one.
  [[nodiscard]] double time_error() const { return prediction.iteration_s / measurement.iteration_s - 1; }
  [[nodiscard]] double predicted_memory() const {
    return measurement.of_allocator ? prediction.peak_allocated : prediction.peak_memory;
  }
  [[nodiscard]] double memory_error() const { return predicted_memory() / measurement.peak_memory - 1; }
};

/// Of absolute relative errors; bias is the mean of the signed ones. All 0 where there are none.
struct Errors {
  int count = 0;
  double median = 0;
  double mean = 0;
  double p90 = 0;  ///< nearest rank
  double largest = 0;
  double bias = 0;
};

struct Group {
  std::string kind;  ///< "grade", "dataset", "GPU", "parallelism"
  std::string name;
  Errors time;
  Errors memory;
  double spearman = 0;  ///< rank correlation of predicted and measured times; 0 with fewer than three
  int not_expressible = 0;
};

/// Of the runs that can be expressed: whether memory was enough, and whether it is predicted to be.
struct MemoryVerdicts {
  int ran_out = 0;        ///< of memory
  int ran_out_found = 0;  ///< and are predicted to
  int ran = 0;
  int ran_refused = 0;  ///< although they are predicted to run out of memory
};

/// Predicts each measurement. O(rows); independent of each other. Without one of `methods` it shows what that brings.
[[nodiscard]] std::vector<Line> judge(std::vector<Measurement> measurements, std::span<const cluster::GpuType> devices,
                                      const cost::ProfileSet& profiles, const cluster::ExecutionMethods& methods = {});

/// Of a line that has a time.
[[nodiscard]] discrepancy::Run run_of(const Line& line, std::string name);

/// Predicted times as own runs say.
void correct(std::span<Line> lines, const discrepancy::Discrepancy& own_runs);

[[nodiscard]] MemoryVerdicts verdicts_of(std::span<const Line> lines);

[[nodiscard]] Errors errors_of(std::vector<double> signed_errors);

/// Spearman's coefficient with average ranks for ties.
[[nodiscard]] double spearman(const std::vector<double>& a, const std::vector<double>& b);

/// All lines; grades A and A- alone, those derived from FLOP/s apart; then by dataset, GPU type and parallelism, each
/// in the order of names.
[[nodiscard]] std::vector<Group> summarize(std::span<const Line> lines);

/// "tp+dp", "tp+pp+cp", "FSDP", "single": what a measurement combined.
[[nodiscard]] std::string parallelism_of(const Measurement& measurement);

}  // namespace tangram::accuracy
