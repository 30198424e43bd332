// How far predictions are from one's own runs, carried over to runs that are like them. Goes in: runs, with what was
// measured and what is predicted of each. Comes out: for any other run, how much longer it is to be expected than
// predicted, and how sure that is.
//
// What a cost model leaves out (software, the cluster, the habits of a job) is alike in runs that are alike. The
// logarithm of measured over predicted is a Gaussian process over the traits of runs (Rasmussen and Williams, Gaussian
// Processes for Machine Learning, 2006, algorithm 2.1), as in the calibration of computer models (Kennedy and O'Hagan,
// Journal of the Royal Statistical Society B 63, 2001, the model discrepancy). Its covariance is
//
//   k(a, b) = kCommon^2 + kOwn^2 exp(-sum over traits of rate x difference)
//
// with differences of numbers in doublings, and of words 0 or 1: what all runs share, and what the more alike they are
// the more they share. Far from all runs it expects what was predicted, but for what they all share.
//
// The deviations and rates were chosen on the families of runs for fitting of configs/measurements, by what a tenth of
// a family makes of its rest; half or twice any of them changes the median over families by at most 0.6 points.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tangram/cost/strategy.hpp"
#include "tangram/model/model.hpp"

namespace tangram::discrepancy {

inline constexpr double kCommon = 0.05;  ///< standard deviations of the logarithm: of what all runs share,
inline constexpr double kOwn = 0.10;     ///< of what is a run's own,
inline constexpr double kNoise = 0.02;   ///< of a run that is repeated.

inline constexpr double kPerDegree = 0.2;  ///< rates: a doubling of tp, cp, ep or stages,
inline constexpr double kPerSize = 0.10;   ///< of GPUs, tokens, microbatches or sizes of the model,
inline constexpr double kPerKind = 0.7;    ///< another model, software, precision, other GPU types, experts or none.
inline constexpr std::size_t kMostRuns = 4096;  ///< their covariances take 128 MiB

/// What makes runs alike. Degrees of stages that differ are geometric means over the GPUs.
struct Traits {
  double tp = 1;
  double cp = 1;
  double ep = 1;
  double stages = 1;        ///< of a pipeline
  double gpus = 1;          ///< of all pipelines
  double tokens = 1;        ///< of a microbatch on one data-parallel replica
  double sequence = 1;      ///< tokens of a sample
  double microbatches = 1;  ///< of a pipeline
  double hidden = 1;
  double blocks = 1;
  std::int64_t parameters = 0;  ///< another number: another model
  bool experts = false;
  std::string software;  ///< runtime or trainer, as whoever fills this in calls it; empty: not known
  std::string precision;
  std::string gpu_types;  ///< in the order of names: "A100-40GB-SXM+V100-16GB"
};

/// Collects the traits of a run, stage by stage.
class TraitsOfRun {
 public:
  TraitsOfRun(const model::Model& model, std::string software);
  /// GPUs of one type that hold a stage, or a part of it; `samples` of a microbatch.
  void add(const std::string& gpu_type, const cost::Degrees& degrees, std::int64_t samples);
  [[nodiscard]] Traits of_pipelines(double stages, std::int64_t microbatches) const;

 private:
  Traits traits_;  // sums of logarithms, weighted with GPUs, where means are wanted
  std::vector<std::string> types_;
};

struct Run {
  std::string name;
  std::string family;  ///< runs that others of the same family may correct
  Traits traits;
  double predicted_s = 0;  ///< both above 0
  double measured_s = 0;
};

/// Of the time that is predicted.
struct Correction {
  double ratio = 1;      ///< expected over predicted
  double deviation = 0;  ///< standard deviation of its logarithm, so about a share of the time
};

class Discrepancy {
 public:
  /// At most kMostRuns. O(runs^3).
  explicit Discrepancy(std::vector<Run> runs);
  /// O(runs^2).
  [[nodiscard]] Correction at(const Traits& traits) const;
  /// How many times longer `a` is to be expected than `b` where both are predicted to take as long. Where they are
  /// alike that is much surer than what is known of either.
  [[nodiscard]] Correction between(const Traits& a, const Traits& b) const;
  [[nodiscard]] std::size_t runs() const { return runs_.size(); }

 private:
  class Posterior;  // of the logarithm, at one place

  std::vector<Run> runs_;
  std::vector<double> weights_;   // of each run in the expectation
  std::vector<double> cholesky_;  // of the covariance of the runs, lower triangle, by rows
};

/// Runs of one family, in their order.
struct Family {
  std::string name;
  std::vector<Run> runs;
};

/// In the order in which families first appear.
[[nodiscard]] std::vector<Family> families_of(const std::vector<Run>& runs);

/// What each run is expected to take by the others, and their errors as shares of what was measured.
struct Validation {
  std::vector<double> before;  ///< expected over measured, minus one: by the prediction alone
  std::vector<double> after;   ///< with the correction by others
};

/// Each run in turn is expected by all others (equation 5.12 of Rasmussen and Williams). O(runs^3), as one discrepancy.
[[nodiscard]] Validation leave_one_out(const std::vector<Run>& runs);

/// Every fold-th run, from each of the first `folds` ones on, corrects all others: a share of 1 / folds is known.
[[nodiscard]] Validation from_each_fold(const std::vector<Run>& runs, std::size_t folds);

}  // namespace tangram::discrepancy
