// The correction by own runs, against the textbook's formula worked out by elimination; what one more run may change;
// and what is left out when families are validated.
#include "tangram/discrepancy/discrepancy.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "support/catch.hpp"
#include "support/random.hpp"

using namespace tangram::discrepancy;
using tangram::testing::pick;

namespace {

double power_of_two(std::mt19937_64& random, int most) { return std::exp2(pick(random, 0, most)); }

Traits random_traits(std::mt19937_64& random) {
  Traits t;
  for (double* degree : {&t.tp, &t.cp, &t.ep, &t.stages}) *degree = power_of_two(random, 3);
  for (double* size : {&t.gpus, &t.tokens, &t.sequence, &t.microbatches, &t.hidden, &t.blocks}) {
    *size = power_of_two(random, 6);
  }
  t.parameters = pick(random, 1, 2);
  t.experts = pick(random, 0, 1) == 1;
  t.software = pick(random, 0, 1) == 1 ? "megatron" : "torch";
  t.precision = pick(random, 0, 1) == 1 ? "bf16" : "fp8";
  t.gpu_types = pick(random, 0, 1) == 1 ? "A" : "B";
  return t;
}

Run random_run(std::mt19937_64& random) {
  const double predicted = pick(random, 1, 100);
  return {"", "", random_traits(random), predicted, predicted * std::exp(0.01 * pick(random, -40, 40))};
}

std::vector<Run> random_runs(std::mt19937_64& random, int most) {
  std::vector<Run> runs;
  for (int i = pick(random, 1, most); i > 0; --i) runs.push_back(random_run(random));
  return runs;
}

/// As the header has it.
double covariance(const Traits& a, const Traits& b) {
  const auto doublings = [](double x, double y) { return std::abs(std::log2(x) - std::log2(y)); };
  double distance = kPerDegree * (doublings(a.tp, b.tp) + doublings(a.cp, b.cp) + doublings(a.ep, b.ep) +
                                  doublings(a.stages, b.stages));
  distance += kPerSize * (doublings(a.gpus, b.gpus) + doublings(a.tokens, b.tokens) +
                          doublings(a.sequence, b.sequence) + doublings(a.microbatches, b.microbatches) +
                          doublings(a.hidden, b.hidden) + doublings(a.blocks, b.blocks));
  if (a.parameters != b.parameters) distance += kPerKind;
  if (a.experts != b.experts) distance += kPerKind;
  if (a.software != b.software) distance += kPerKind;
  if (a.precision != b.precision) distance += kPerKind;
  if (a.gpu_types != b.gpu_types) distance += kPerKind;
  return kCommon * kCommon + kOwn * kOwn * std::exp(-distance);
}

/// Mean and covariance of what is asked for, given the runs: the rows of the runs are eliminated from the joint
/// covariance.
struct Conditional {
  std::vector<double> mean;
  std::vector<std::vector<double>> covariance;
};

Conditional given_runs(const std::vector<Run>& runs, const std::vector<Traits>& asked) {
  std::vector<Traits> all;
  std::vector<double> values;
  for (const Run& run : runs) {
    all.push_back(run.traits);
    values.push_back(std::log(run.measured_s / run.predicted_s));
  }
  all.insert(all.end(), asked.begin(), asked.end());
  values.resize(all.size(), 0);
  std::vector<std::vector<double>> joint(all.size(), std::vector<double>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) joint[i][j] = covariance(all[i], all[j]);
    if (i < runs.size()) joint[i][i] += kNoise * kNoise;
  }
  for (std::size_t k = 0; k < runs.size(); ++k) {
    for (std::size_t i = k + 1; i < all.size(); ++i) {
      const double factor = joint[i][k] / joint[k][k];
      for (std::size_t j = k; j < all.size(); ++j) joint[i][j] -= factor * joint[k][j];
      values[i] -= factor * values[k];
    }
  }
  Conditional result;
  for (std::size_t i = runs.size(); i < all.size(); ++i) {
    result.mean.push_back(-values[i]);
    result.covariance.emplace_back(joint[i].begin() + static_cast<std::ptrdiff_t>(runs.size()), joint[i].end());
  }
  return result;
}

}  // namespace

TEST_CASE("own runs correct as a Gaussian process does, worked out by elimination", "[discrepancy]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::vector<Run> runs = random_runs(random, 8);
    const Traits a = random_traits(random);
    const Traits b = random_traits(random);
    const Conditional wanted = given_runs(runs, {a, b});
    const Discrepancy discrepancy(runs);
    const Correction at = discrepancy.at(a);
    REQUIRE(std::log(at.ratio) == Approx(wanted.mean[0]).margin(1e-9));
    REQUIRE(at.deviation == Approx(std::sqrt(wanted.covariance[0][0] + kNoise * kNoise)));
    const Correction between = discrepancy.between(a, b);
    REQUIRE(std::log(between.ratio) == Approx(wanted.mean[0] - wanted.mean[1]).margin(1e-9));
    const double variance = wanted.covariance[0][0] + wanted.covariance[1][1] - 2 * wanted.covariance[0][1];
    REQUIRE(between.deviation * between.deviation == Approx(variance).margin(1e-12));
  }
}

TEST_CASE("without runs what is predicted is expected", "[discrepancy]") {
  std::mt19937_64 random(2);
  const Discrepancy none({});
  const Correction correction = none.at(random_traits(random));
  CHECK(none.runs() == 0);
  CHECK(correction.ratio == 1);
  CHECK(correction.deviation == Approx(std::sqrt(kCommon * kCommon + kOwn * kOwn + kNoise * kNoise)));
}

TEST_CASE("a run says most about runs that are like it", "[discrepancy]") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    Run run = random_run(random);
    run.measured_s = run.predicted_s * 1.2;
    const Discrepancy discrepancy({run});
    Traits other = run.traits;
    double last = discrepancy.at(other).ratio;
    CHECK(last > 1.19);
    for (int doublings = 0; doublings < 10; ++doublings) {
      other.tp *= 2;
      const Correction correction = discrepancy.at(other);
      CHECK(correction.ratio < last);
      CHECK(correction.ratio > 1);
      last = correction.ratio;
    }
    CHECK(discrepancy.between(run.traits, run.traits).ratio == 1);
    CHECK(discrepancy.between(run.traits, run.traits).deviation == Approx(0).margin(1e-9));
  }
}

TEST_CASE("one more run never makes a correction less sure, and their order does not matter", "[discrepancy]") {
  std::mt19937_64 random(4);
  for (int i = 0; i < 500; ++i) {
    std::vector<Run> runs = random_runs(random, 10);
    const Traits asked = random_traits(random);
    const Correction before = Discrepancy(runs).at(asked);
    std::ranges::shuffle(runs, random);
    const Correction shuffled = Discrepancy(runs).at(asked);
    CHECK(shuffled.ratio == Approx(before.ratio));
    CHECK(shuffled.deviation == Approx(before.deviation));
    runs.push_back(random_run(random));
    CHECK(Discrepancy(runs).at(asked).deviation <= before.deviation + 1e-12);
  }
}

TEST_CASE("validation never lets a run correct itself", "[discrepancy]") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 50; ++i) {
    std::vector<Run> runs = random_runs(random, 12);
    const Validation each = leave_one_out(runs);
    const Validation thirds = from_each_fold(runs, 3);
    REQUIRE(each.before.size() == runs.size());
    REQUIRE(each.after.size() == runs.size());
    REQUIRE(thirds.before.size() == thirds.after.size());
    REQUIRE(thirds.after.size() == (runs.size() > 1 ? runs.size() * (std::min<std::size_t>(runs.size(), 3) - 1) : 0));
    // Its own time changes what is expected of others alone.
    const double expected = runs.front().measured_s * (1 + each.after.front());
    runs.front().measured_s *= 3;
    CHECK(runs.front().measured_s * (1 + leave_one_out(runs).after.front()) == Approx(expected));
  }
}

TEST_CASE("what the others expect is what a discrepancy of the others expects", "[discrepancy]") {
  std::mt19937_64 random(6);
  for (int i = 0; i < 200; ++i) {
    const std::vector<Run> runs = random_runs(random, 12);
    const Validation each = leave_one_out(runs);
    for (std::size_t k = 0; k < runs.size(); ++k) {
      std::vector<Run> others = runs;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
      const double ratio = Discrepancy(others).at(runs[k].traits).ratio;
      REQUIRE(each.after[k] == Approx(runs[k].predicted_s * ratio / runs[k].measured_s - 1).margin(1e-9));
    }
  }
}

TEST_CASE("families keep their order and that of their runs", "[discrepancy]") {
  std::vector<Run> runs(4);
  const char* const names[] = {"b", "a", "b", "a"};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].family = names[i];
    runs[i].name = std::to_string(i);
  }
  const std::vector<Family> families = families_of(runs);
  REQUIRE(families.size() == 2);
  CHECK(families[0].name == "b");
  CHECK(families[0].runs[1].name == "2");
  CHECK(families[1].runs[0].name == "1");
}
