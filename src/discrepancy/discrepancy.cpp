#include "tangram/discrepancy/discrepancy.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>

#include "tangram/base/assert.hpp"

namespace tangram::discrepancy {

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Lower = Eigen::Map<const Matrix>;

Eigen::Index count_of(const std::vector<double>& values) { return static_cast<Eigen::Index>(values.size()); }

std::array<double, 4> degrees_of(const Traits& t) { return {t.tp, t.cp, t.ep, t.stages}; }
std::array<double, 6> sizes_of(const Traits& t) {
  return {t.gpus, t.tokens, t.sequence, t.microbatches, t.hidden, t.blocks};
}

template <std::size_t kCount>
double doublings_between(const std::array<double, kCount>& a, const std::array<double, kCount>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kCount; ++i) sum += std::abs(std::log2(a[i] / b[i]));
  return sum;
}

double distance(const Traits& a, const Traits& b) {
  const int kinds = int{a.parameters != b.parameters} + int{a.experts != b.experts} + int{a.software != b.software} +
                    int{a.precision != b.precision} + int{a.gpu_types != b.gpu_types};
  return kPerDegree * doublings_between(degrees_of(a), degrees_of(b)) +
         kPerSize * doublings_between(sizes_of(a), sizes_of(b)) + kPerKind * kinds;
}

/// Of the logarithms of measured over predicted.
double covariance(const Traits& a, const Traits& b) {
  return kCommon * kCommon + kOwn * kOwn * std::exp(-distance(a, b));
}

Matrix covariances_of(const std::vector<Run>& runs) {
  const auto count = static_cast<Eigen::Index>(runs.size());
  Matrix covariances(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Traits& traits = runs[static_cast<std::size_t>(i)].traits;
    for (Eigen::Index j = 0; j <= i; ++j) {
      covariances(i, j) = covariances(j, i) = covariance(traits, runs[static_cast<std::size_t>(j)].traits);
    }
    covariances(i, i) += kNoise * kNoise;
  }
  return covariances;
}

/// Rounding may leave a variance of nothing below 0.
Correction correction_of(double logarithm, double variance) {
  return {std::exp(logarithm), std::sqrt(std::max(variance, 0.0))};
}

/// Of measured over predicted.
Eigen::VectorXd logarithms_of(const std::vector<Run>& runs) {
  Eigen::VectorXd logarithms(static_cast<Eigen::Index>(runs.size()));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    TANGRAM_ASSERT(runs[i].predicted_s > 0 && runs[i].measured_s > 0);
    logarithms(static_cast<Eigen::Index>(i)) = std::log(runs[i].measured_s / runs[i].predicted_s);
  }
  return logarithms;
}

double expected_error(const Run& run, double ratio) { return run.predicted_s * ratio / run.measured_s - 1; }

}  // namespace

Discrepancy::Discrepancy(std::vector<Run> runs) : runs_(std::move(runs)) {
  TANGRAM_ASSERT(runs_.size() <= kMostRuns);
  const Eigen::LLT<Matrix> decomposition(covariances_of(runs_));  // positive definite: noise is on the diagonal
  const Eigen::VectorXd weights = decomposition.solve(logarithms_of(runs_));
  const Matrix lower = decomposition.matrixL();
  weights_.assign(weights.data(), weights.data() + weights.size());
  cholesky_.assign(lower.data(), lower.data() + lower.size());
}

class Discrepancy::Posterior {
 public:
  Posterior(const Discrepancy& prior, const Traits& traits) : traits_(traits), explained_(count_of(prior.weights_)) {
    for (Eigen::Index i = 0; i < explained_.size(); ++i) {
      explained_(i) = covariance(traits, prior.runs_[static_cast<std::size_t>(i)].traits);
    }
    expected_ = explained_.dot(Eigen::Map<const Eigen::VectorXd>(prior.weights_.data(), explained_.size()));
    const Lower lower(prior.cholesky_.data(), explained_.size(), explained_.size());
    lower.triangularView<Eigen::Lower>().solveInPlace(explained_);
  }

  [[nodiscard]] double expected() const { return expected_; }
  [[nodiscard]] double covariance_with(const Posterior& other) const {
    return covariance(traits_, other.traits_) - explained_.dot(other.explained_);
  }
  [[nodiscard]] double variance() const { return covariance_with(*this); }

 private:
  const Traits& traits_;
  Eigen::VectorXd explained_;  // what the runs tell, in independent parts
  double expected_ = 0;
};

Correction Discrepancy::at(const Traits& traits) const {
  const Posterior posterior(*this, traits);
  return correction_of(posterior.expected(), posterior.variance() + kNoise * kNoise);
}

Correction Discrepancy::between(const Traits& a, const Traits& b) const {
  const Posterior of_a(*this, a);
  const Posterior of_b(*this, b);
  const double variance = of_a.variance() + of_b.variance() - 2 * of_a.covariance_with(of_b);
  return correction_of(of_a.expected() - of_b.expected(), variance);
}

std::vector<Family> families_of(const std::vector<Run>& runs) {
  std::vector<Family> families;
  for (const Run& run : runs) {
    auto family = std::ranges::find(families, run.family, &Family::name);
    if (family == families.end()) family = families.insert(families.end(), Family{run.family, {}});
    family->runs.push_back(run);
  }
  return families;
}

Validation leave_one_out(const std::vector<Run>& runs) {
  Validation errors;
  if (runs.empty()) return errors;
  const Eigen::LLT<Matrix> decomposition(covariances_of(runs));
  const Eigen::VectorXd weights = decomposition.solve(logarithms_of(runs));
  const Eigen::VectorXd precisions = decomposition.solve(Matrix::Identity(weights.size(), weights.size())).diagonal();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto place = static_cast<Eigen::Index>(i);
    // The others expect the run's logarithm less this.
    const double surprise = weights(place) / precisions(place);
    errors.before.push_back(expected_error(runs[i], 1));
    errors.after.push_back(expected_error(runs[i], runs[i].measured_s / runs[i].predicted_s * std::exp(-surprise)));
  }
  return errors;
}

Validation from_each_fold(const std::vector<Run>& runs, std::size_t folds) {
  Validation errors;
  for (std::size_t first = 0; first < std::min(folds, runs.size()); ++first) {
    std::vector<Run> known;
    for (std::size_t i = first; i < runs.size(); i += folds) known.push_back(runs[i]);
    const Discrepancy discrepancy(std::move(known));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (i % folds == first) continue;
      errors.before.push_back(expected_error(runs[i], 1));
      errors.after.push_back(expected_error(runs[i], discrepancy.at(runs[i].traits).ratio));
    }
  }
  return errors;
}

}  // namespace tangram::discrepancy
