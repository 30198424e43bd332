// Plans that follow what is measured: times that turn out otherwise, and load that changes.
#include <algorithm>
#include <random>
#include <vector>

#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tables.hpp"
#include "tangram/base/at.hpp"
#include "tangram/disaggregate/adapt.hpp"
#include "tangram/disaggregate/rebalance.hpp"
#include "tangram/disaggregate/serving.hpp"
#include "tangram/disaggregate/solve.hpp"

using namespace tangram;
using namespace tangram::tests;
using namespace tangram::disaggregate;
using tangram::testing::cases;

namespace {

// Every operator's time on every class is off by a factor of its own.
Problem with_noise(const Problem& problem, double noise, std::mt19937_64& random) {
  std::normal_distribution<> normal(1, noise);
  Problem result = problem;
  const int of_layer = problem.repeats.front().kernels;
  Grid<double> factor(of_layer, problem.class_count());
  for (double& f : factor) f = std::max(0.05, normal(random));
  for (int k = 0; k < problem.kernel_count(); ++k) {
    for (int c = 0; c < problem.class_count(); ++c) {
      at(at(result.kernels, k).seconds, c) *= factor(k % of_layer, c);
    }
  }
  return result;
}

Problem scaled(const Problem& problem, double by) {
  Problem result = problem;
  for (Kernel& kernel : result.kernels) {
    for (double& seconds : kernel.seconds) seconds *= by;
  }
  return result;
}

std::vector<Request> conversation(double faster) {
  const Table table("azure_conversation.csv");
  std::vector<Request> requests;
  for (std::size_t row = 0; row < table.size(); ++row) {
    requests.push_back({table.number(row, "ms") * 1e-3 / faster, static_cast<int>(table.number(row, "prompt")),
                        static_cast<int>(table.number(row, "generated"))});
  }
  return requests;
}

// Llama-3.1 8B on an A100 and an L40S, from the tables.
ServingModel served_model() {
  ServingModel model;
  model.cache_seconds_per_token = 131'072 / 23e9;  // staged through the hosts
  const std::vector<double> sizes = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128};
  const std::vector<double> contexts = {1024, 4096};
  for (int g = 0; g < 2; ++g) {
    ServingGpu& gpu = at(model.gpus, g);
    const Problem prefill = model_problem({.phase = "prefill", .requests = 1});
    gpu.prefill_seconds_per_token = at(seconds_on_each(prefill), g) / 2048;
    gpu.decode = {sizes, contexts, {sizes.size(), contexts.size()}};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (std::size_t j = 0; j < contexts.size(); ++j) {
        const Problem step = model_problem(
            {.requests = static_cast<int>(sizes[i]), .context = static_cast<int>(contexts[j]), .head = true});
        gpu.decode.seconds(i, j) = at(seconds_on_each(step), g);
      }
    }
  }
  return model;
}

}  // namespace

TEST_CASE("disaggregate adapt: the robust interval covers what noise makes of a plan") {
  const Problem problem = model_problem({});
  const Solution solution = solve(problem, Objective::kThroughput);
  std::mt19937_64 random(22);
  for (const double noise : {0.05, 0.1, 0.2}) {
    // Normal errors of this deviation are 0.8 of it in the mean; the interval reaches two and a half times as far.
    const double reach = 2.5 * 0.8 * noise;
    const double low = usage_of(scaled(problem, 1 - reach), solution.placement).period;
    const double high = usage_of(scaled(problem, 1 + reach), solution.placement).period;
    const int draws = 1000;
    int covered = 0;
    for (int i = 0; i < draws; ++i) {
      const double period = usage_of(with_noise(problem, noise, random), solution.placement).period;
      covered += period >= low && period <= high ? 1 : 0;
    }
    INFO("noise " << noise << ": " << covered);
    CHECK(covered >= 0.95 * draws);
  }
}

TEST_CASE("disaggregate adapt: moving a few kernels recovers most of what wrong times cost") {
  const Problem truth = model_problem({});
  std::mt19937_64 random(23);
  const double best = solve(truth, Objective::kThroughput).value;
  for (const double noise : {0.05, 0.1, 0.2}) {
    double lost = 0;
    double left = 0;
    constexpr int draws = 20;  // a mean over fewer scatters too much
    for (int i = 0; i < draws; ++i) {
      const Problem planned = with_noise(truth, noise, random);
      Placement placement = solve(planned, Objective::kThroughput).placement;
      lost += usage_of(truth, placement).period - best;
      for (int window = 0; window < 12; ++window) {
        placement = rebalanced(planned, placement, {usage_of(truth, placement).gpu, 8, {}});
      }
      left += usage_of(truth, placement).period - best;
    }
    INFO("noise " << noise << ": lost " << lost / draws / best << ", left " << left / draws / best);
    CHECK(lost > 0);
    CHECK(lost - left >= 0.65 * lost);
  }
}

TEST_CASE("disaggregate adapt: the monitor against static modes and the oracle") {
  const ServingModel model = served_model();
  for (const double faster : {0.5, 1.0, 2.0}) {
    const std::vector<Request> requests = conversation(faster);
    int before = 1'000'000;
    for (const double window : {0.03, 0.3, 1.5}) {
      INFO(faster << " times the load, window " << window);
      MonitorRule rule;
      rule.window = window;
      const Adaptation plain = judge(requests, model, rule);
      rule.down = 0.8 * rule.up;
      rule.least_stay = 2;  // 129 tokens, the median, at 15 ms: until what is under way has drained
      const Adaptation calm = judge(requests, model, rule);
      CHECK(plain.switches <= before);
      before = plain.switches;
      if (window < 1) CHECK(2 * calm.switches <= plain.switches);
      CHECK(plain.oracle <= at(plain.statics, plain.best));
    }
  }
}

TEST_CASE(
    "disaggregate recovery: times that are nearly exact lose nothing, wrong ones lose and are made good, the same each "
    "time") {
  const Problem problem = model_problem({.layers = 2});
  const disaggregate::Recovery exact = disaggregate::recovery_from(problem, 1e-9, 2, 1);
  CHECK(exact.lost == Approx(0).margin(1e-6));
  CHECK(exact.left == Approx(0).margin(1e-6));
  const disaggregate::Recovery noisy = disaggregate::recovery_from(problem, 0.2, 10, 7);
  CHECK(noisy.noise == 0.2);
  CHECK(noisy.lost > 0);
  CHECK(noisy.left >= -1e-9);
  CHECK(noisy.left < noisy.lost);
  const disaggregate::Recovery again = disaggregate::recovery_from(problem, 0.2, 10, 7);
  CHECK(again.lost == noisy.lost);
  CHECK(again.left == noisy.left);
}
