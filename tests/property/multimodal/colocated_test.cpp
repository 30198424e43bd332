// Encoders on the GPUs of the language model: the closed form beside lanes and stages as early as they can.
#include "tangram/multimodal/colocated.hpp"

#include <array>
#include <cmath>

#include "excess.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "tangram/multimodal/uneven.hpp"

using namespace tangram;
using namespace tangram::multimodal;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::pick;

namespace {

constexpr int kPlans = 150;

struct ColocatedFlavour {
  double spread = 0;         ///< of stages, to both sides
  double lane_spread = 0;    ///< of lanes, to one side
  std::int64_t latency = 0;  ///< ns; a stage takes a million
};

class PlanMaker {
 public:
  PlanMaker(std::mt19937_64& random, const ColocatedFlavour& flavour) : random_(random), flavour_(flavour) {}

  // Encoder passes take a fifth of the time that the language model does.
  Colocated make(std::int64_t microbatches) {
    Colocated plan;
    const int stages = pick(random_, 1, 8);
    const int super_lanes = 1 << pick(random_, 0, 2);
    for (int i = 0; i < super_lanes; ++i) {
      SuperLane& own = plan.super_lanes.emplace_back();
      own.language = language(stages, microbatches);
      own.gather = own.broadcast = 50'000;
      for (int s = 0; s < stages; ++s) {
        const double share = 0.2 * static_cast<double>(microbatches) * (1 + flavour_.lane_spread * part());
        own.lanes.push_back({s, std::llround(1e6 * share), std::llround(2e6 * share)});
      }
    }
    plan.sync = 400'000;
    plan.step = 100'000;
    return plan;
  }

 private:
  StageGraph language(int stages, std::int64_t microbatches) {
    StageGraph graph;
    graph.microbatches = microbatches;
    for (int s = 0; s < stages; ++s) {
      Stage& stage = graph.stages.emplace_back();
      stage.plan.F = std::llround(1e6 / 3 * (1 + flavour_.spread * (2 * part() - 1)));
      stage.plan.T = stage.plan.A = 3 * stage.plan.F;
      stage.plan.n_max = stages - s;
      if (s > 0) graph.edges.push_back({s - 1, s, {flavour_.latency, 0}});
    }
    return graph;
  }

  double part() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  std::mt19937_64& random_;
  ColocatedFlavour flavour_;
};

}  // namespace

TEST_CASE("where stages and lanes are alike, the closed form of three phases is the timetable") {
  std::mt19937_64 random(3);
  for (int i = 0; i < cases(500); ++i) {
    const Colocated plan = PlanMaker(random, {}).make(pick(random, 1, 64));
    REQUIRE(check(plan).has_value());
    REQUIRE(closed_form(plan) == timetable(plan));
  }
}

TEST_CASE("no timetable of three phases is above its closed form, and medians are near it") {
  // A tenth above what 3,000 plans have (src/multimodal/README.md).
  constexpr std::array<double, 5> kMostMedian{0.022, 0.015, 0.010, 0.007, 0.005};
  for (const ColocatedFlavour& flavour : {ColocatedFlavour{0.3, 0.5, 0}, ColocatedFlavour{0.1, 0.5, 50'000}}) {
    std::mt19937_64 random(9);
    for (std::size_t m = 0; m < kMicrobatches.size(); ++m) {
      Excess excess;
      for (int i = 0; i < cases(kPlans); ++i) {
        const Colocated plan = PlanMaker(random, flavour).make(kMicrobatches[m]);
        const auto form = closed_form(plan);
        const auto time = timetable(plan);
        REQUIRE(form.has_value());
        REQUIRE(time.has_value());
        excess.add(*form, *time);
      }
      INFO("M = " << kMicrobatches[m] << ", in percent: " << excess.text());
      CHECK(excess.least() >= 0);
      if (cases(kPlans) >= kPlans) CHECK(excess.median() <= kMostMedian[m]);
    }
  }
}

TEST_CASE("one microbatch a round without pipelines takes M times everything, and rounds of k the same passes") {
  std::mt19937_64 random(13);
  for (int i = 0; i < cases(500); ++i) {
    Colocated plan;
    SuperLane& own = plan.super_lanes.emplace_back();
    const std::int64_t forward = pick(random, 1, 100);
    const std::int64_t backward = pick(random, 1, 200);
    const std::int64_t k = pick(random, 1, 8);
    own.gather = own.broadcast = pick(random, 0, 9);
    own.lanes.push_back({0, k * forward, k * backward});
    own.language.stages.push_back({{.T = 300, .F = 100, .A = 300, .o = 0, .n_max = 1}});
    own.language.microbatches = k;
    plan.rounds = pick(random, 1, 9);
    plan.sync = pick(random, 0, 50);
    plan.step = pick(random, 0, 50);
    const std::int64_t microbatch = forward + 300 + backward;
    const std::int64_t expected = plan.rounds * (k * microbatch + 2 * own.gather) + plan.sync + plan.step;
    REQUIRE(closed_form(plan) == expected);
    REQUIRE(timetable(plan) == expected);
  }
}

TEST_CASE("three phases with uneven samples, some without images, take what the slowest lane says") {
  constexpr int kLanes = 16;
  constexpr int kSamples = 8;
  constexpr double kMean = 1e5;  // ns of a sample
  const SampleSpread spread{.variation = 0.6, .none = 0.2};
  std::mt19937_64 random(17);
  std::lognormal_distribution<double> items(-std::log1p(0.36) / 2, std::sqrt(std::log1p(0.36)));
  const auto plan_of = [](const std::array<double, kLanes>& work) {
    Colocated plan;
    SuperLane& own = plan.super_lanes.emplace_back();
    own.language.microbatches = kSamples;
    own.language.stages.assign(4, {{.T = 300'000, .F = 100'000, .A = 300'000, .o = 0, .n_max = 4}});
    for (int s = 1; s < 4; ++s) own.language.edges.push_back({s - 1, s, {}});
    for (int lane = 0; lane < kLanes; ++lane) {
      own.lanes.push_back({lane / 4, std::llround(work[static_cast<std::size_t>(lane)]),
                           std::llround(2 * work[static_cast<std::size_t>(lane)])});
    }
    return plan;
  };
  double sum = 0;
  constexpr int kBatchesDrawn = 500;
  for (int i = 0; i < kBatchesDrawn; ++i) {
    std::array<double, kLanes> work{};
    for (double& of_lane : work) {
      for (int sample = 0; sample < kSamples; ++sample) of_lane += pick(random, 1, 5) == 1 ? 0 : kMean * items(random);
    }
    sum += static_cast<double>(*timetable(plan_of(work)));
  }
  std::array<double, kLanes> priced{};
  priced.fill(kSamples * kMean * (1 - spread.none) * slowest_lane(spread, kLanes, kSamples));
  CHECK(static_cast<double>(*closed_form(plan_of(priced))) == Approx(sum / kBatchesDrawn).epsilon(0.02));
}
