// The bound by work alone against the linear program it is the dual of.
#include "tangram/multimodal/work_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"

using namespace tangram;
using namespace tangram::multimodal;
using tangram::testing::cases;
using tangram::testing::enough;
using tangram::testing::pick;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

FleetWork random_work(std::mt19937_64& random, int kinds, int classes) {
  std::uniform_real_distribution<double> part(0.05, 1);
  FleetWork work;
  for (int k = 0; k < kinds; ++k) work.amount.push_back(100 * part(random));
  for (int c = 0; c < classes; ++c) work.gpus.push_back(pick(random, c == 0 ? 1 : 0, 64));
  work.gpu_time.assign(kinds, classes, 0);
  for (int k = 0; k < kinds; ++k) {
    for (int c = 0; c < classes; ++c)
      work.gpu_time(k, c) = c > 0 && pick(random, 1, 9) == 1 ? kNever : 1e6 * part(random);
  }
  return work;
}

// Two classes: the kinds that lose most on the second stay on the first, as far as its GPUs go.
double by_comparative_advantage(const FleetWork& work) {
  std::vector<int> kinds(work.amount.size());
  std::iota(kinds.begin(), kinds.end(), 0);
  std::ranges::sort(kinds, std::greater<>(), [&](int k) { return work.gpu_time(k, 1) / work.gpu_time(k, 0); });
  const auto fits = [&](double time) {
    double first = work.gpus[0] * time;
    double second = work.gpus[1] * time;
    for (const int k : kinds) {
      const double whole = work.amount[static_cast<std::size_t>(k)] * work.gpu_time(k, 0);
      const double share = std::min(1.0, first / whole);
      first -= share * whole;
      if (share < 1) second -= (1 - share) * work.amount[static_cast<std::size_t>(k)] * work.gpu_time(k, 1);
    }
    return second >= 0;
  };
  double low = 0;
  double high = 1e12;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

// What prices of blocks prove.
double proven_by(const FleetWork& work, const std::vector<double>& price) {
  double cost = 0;
  for (int c = 0; c < work.gpu_time.columns(); ++c) {
    double most = 0;
    for (int k = 0; k < work.gpu_time.rows(); ++k) {
      most = std::max(most, price[static_cast<std::size_t>(k)] / work.gpu_time(k, c));
    }
    cost += work.gpus[static_cast<std::size_t>(c)] * most;
  }
  return std::inner_product(price.begin(), price.end(), work.amount.begin(), 0.0) / cost;
}

// The time of any shares of the kinds on the classes.
double time_of_random_shares(const FleetWork& work, std::mt19937_64& random) {
  std::vector<double> busy(work.gpus.size(), 0);
  std::exponential_distribution<double> weight;
  for (int k = 0; k < work.gpu_time.rows(); ++k) {
    std::vector<double> shares;
    for (int c = 0; c < work.gpu_time.columns(); ++c) {
      const bool runs = std::isfinite(work.gpu_time(k, c)) && work.gpus[static_cast<std::size_t>(c)] > 0;
      shares.push_back(runs ? weight(random) / work.gpu_time(k, c) : 0);
    }
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (std::size_t c = 0; c < shares.size(); ++c) {
      if (shares[c] == 0) continue;
      busy[c] += shares[c] / sum * work.amount[static_cast<std::size_t>(k)] * work.gpu_time(k, c);
    }
  }
  double time = 0;
  for (std::size_t c = 0; c < busy.size(); ++c) {
    if (busy[c] > 0) time = std::max(time, busy[c] / work.gpus[c]);
  }
  return time;
}

}  // namespace

TEST_CASE("for two classes the bound by work is the value of the linear program") {
  std::mt19937_64 random(41);
  for (int i = 0; i < cases(2000); ++i) {
    const FleetWork work = random_work(random, pick(random, 1, 5), 2);
    const double truth = by_comparative_advantage(work);
    const WorkBound bound = work_bound(work);
    INFO("case " << i);
    REQUIRE(bound.time <= truth * (1 + 1e-12));
    REQUIRE(bound.time >= truth * (1 - 1e-6));
  }
}

TEST_CASE("for more classes no shares are faster than the bound by work, and no prices prove more") {
  std::mt19937_64 random(43);
  std::uniform_real_distribution<double> near(0.9, 1.1);
  for (int i = 0; i < cases(500); ++i) {
    const FleetWork work = random_work(random, pick(random, 1, 6), pick(random, 3, 6));
    const WorkBound bound = work_bound(work);
    INFO("case " << i);
    REQUIRE(bound.time > 0);
    REQUIRE(proven_by(work, bound.block_price) == Approx(bound.time).epsilon(1e-6));
    for (int k = 0; k < 100; ++k) {
      REQUIRE(bound.time <= time_of_random_shares(work, random));
      std::vector<double> others = bound.block_price;
      for (double& price : others) price *= near(random);
      REQUIRE(proven_by(work, others) <= bound.time * (1 + 1e-6));
    }
  }
}

TEST_CASE("a kind that runs nowhere bounds the time by more than any") {
  FleetWork work{{1, 1}, {4, 0}, {2, {1.0, 2.0, kNever, 1.0}}};
  CHECK(std::isinf(work_bound(work).time));
  // Two units of work on four GPUs and one on one: it has them all.
  work.gpus[1] = 1;
  CHECK(work_bound(work).time == Approx(1));
}
