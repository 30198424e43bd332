// Proven statements about pipelines, against the simulator (design: iteration time, its bounds, the in-flight
// recursion). Each property draws thousands of random pipelines.
#include <rapidcheck.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "tangram/simulate/simulate.hpp"

using namespace tangram;
using namespace tangram::simulate;

namespace {

using Int = std::int64_t;

/// A pipeline in plain numbers; c is the one-way latency after each stage (the last is not used).
struct Draw {
  std::vector<Int> f, w, c, g, o, n;
  Int M = 1;
  [[nodiscard]] std::size_t size() const { return f.size(); }
  [[nodiscard]] Int T(std::size_t s) const { return f[s] + w[s]; }
};

struct Ranges {
  int max_stages = 10;
  Int min_T = 300, max_T = 1000;
  Int max_ratio_percent = 400;  // w / f between 100 % and this
  Int max_latency = 0;
  Int max_sync = 0;
  Int max_step = 0;
};

/// Uniform in [low, high] from the first case on, and shrunk towards low.
Int pick(Int low, Int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<Int>(low, high + 1)); }

Draw draw(const Ranges& ranges) {
  Draw result;
  const auto stages = static_cast<std::size_t>(pick(1, ranges.max_stages));
  result.M = pick(1, 4 * static_cast<Int>(stages) + 8);
  for (std::size_t s = 0; s < stages; ++s) {
    const Int T = pick(ranges.min_T, ranges.max_T);
    const Int forward = T * 100 / (100 + pick(100, ranges.max_ratio_percent));
    result.f.push_back(forward);
    result.w.push_back(T - forward);
    result.c.push_back(pick(0, 1) * pick(0, ranges.max_latency));
    result.g.push_back(pick(0, 1) * pick(0, ranges.max_sync));
    result.o.push_back(pick(0, ranges.max_step));
    result.n.push_back(static_cast<Int>(stages - s));  // the classic warm-up
  }
  return result;
}

Result run(const Draw& p, const std::vector<Int>& occupancy = {}) {
  SimPipeline pipeline;
  pipeline.microbatches = p.M;
  for (std::size_t s = 0; s < p.size(); ++s) {
    SimStage stage;
    stage.parts.push_back({Nanoseconds(p.f[s]), Nanoseconds(p.w[s]), Nanoseconds(p.g[s]), Nanoseconds(p.o[s])});
    stage.warmup = p.n[s] - 1;
    stage.latency = Nanoseconds(p.c[s]);
    if (!occupancy.empty()) stage.occupancy = Nanoseconds(occupancy[s]);
    pipeline.stages.push_back(stage);
  }
  const Result result = simulate::simulate(Schedule{{pipeline}});
  RC_ASSERT(!result.deadlock);
  return result;
}

Int max_of(const std::vector<Int>& values) { return *std::max_element(values.begin(), values.end()); }

Int period(const Draw& p) {
  Int P = 0;
  for (std::size_t s = 0; s < p.size(); ++s) P = std::max(P, p.T(s));
  return P;
}

/// Sum of T plus both ways of all boundaries: what one microbatch takes alone.
Int latency(const Draw& p) {
  Int sum = 0;
  for (std::size_t s = 0; s < p.size(); ++s) sum += p.T(s) + (s + 1 < p.size() ? 2 * p.c[s] : 0);
  return sum;
}

/// max_s (g_s - sum_{j<s} (w_j + c_j))^+
Int exposed_tail(const Draw& p) {
  Int tail = 0, hidden = 0;
  for (std::size_t s = 0; s < p.size(); ++s) {
    tail = std::max(tail, p.g[s] - hidden);
    hidden += p.w[s] + p.c[s];
  }
  return tail;
}

/// In-flight counts that keep the period P, from the last stage to the first:
///   x_s = T_s + 2 c_s + Q_{s+1},  n_s = max(n_{s+1} + 1, ceil(x_s / P)),  Q_s = max(P (n_s - 1) + T_s, x_s).
void set_in_flight(Draw& p, Int P) {
  Int n = 0, Q = 0;
  for (std::size_t s = p.size(); s-- > 0;) {
    const Int x = p.T(s) + (s + 1 < p.size() ? 2 * p.c[s] + Q : 0);
    n = std::max(n + 1, (x + P - 1) / P);
    Q = std::max(P * (n - 1) + p.T(s), x);
    p.n[s] = n;
  }
}

/// max_t [ sum_{j<=t} T_j + 2 sum_{j<t} c_j + W (max_{j<=t} f + max_{j<=t} w) + (M-1-W) P ], W = min(n_t - 1, M - 1):
/// filling and draining at the pace of the slowest forward and the slowest backward. A link that is busy for a while
/// per transfer is as slow as a stage, in both directions.
Int corrected_form(const Draw& p, Int P, const std::vector<Int>& occupancy) {
  Int best = 0, before = 0, slowest_f = 0, slowest_w = 0;
  for (std::size_t t = 0; t < p.size(); ++t) {
    before += p.T(t) + (t > 0 ? 2 * p.c[t - 1] : 0);
    const Int link = t > 0 ? occupancy[t - 1] : 0;
    slowest_f = std::max({slowest_f, p.f[t], link});
    slowest_w = std::max({slowest_w, p.w[t], link});
    const Int W = std::min(p.n[t] - 1, p.M - 1);
    best = std::max(best, before + W * (slowest_f + slowest_w) + (p.M - 1 - W) * P);
  }
  return best;
}

/// Adds up to two extra microbatches in flight per stage, keeping the counts falling downstream.
void add_random_extras(Draw& p) {
  Int extra = 0;
  for (std::size_t s = p.size(); s-- > 0;) {
    extra += pick(0, 2);
    p.n[s] += extra;
  }
}

template <class Property>
void holds(int cases, Property&& property) {
  rc::detail::TestParams parameters;
  parameters.seed = 2026;  // the same cases on every run
  parameters.maxSuccess = cases;
  const auto result =
      rc::detail::checkTestable(std::forward<Property>(property), rc::detail::TestMetadata{}, parameters);
  std::ostringstream report;
  rc::detail::printResultMessage(result, report);
  INFO(report.str());
  CHECK(result.template is<rc::detail::SuccessResult>());
}

}  // namespace

TEST_CASE("property simulate: no lower bound exceeds the simulation, whatever the warm-up") {
  holds(5000, [] {
    Ranges ranges;
    ranges.min_T = 1;
    ranges.max_latency = 1500;
    ranges.max_sync = 5000;
    ranges.max_step = 300;
    Draw p = draw(ranges);
    add_random_extras(p);
    const Result result = run(p);
    Int upstream_T = 0, upstream_f = 0;
    for (std::size_t k = 0; k < p.size(); ++k) {
      RC_ASSERT(p.M * p.T(k) + upstream_T <= result.last_backward.value());
      RC_ASSERT(p.M * p.T(k) + upstream_f + p.g[k] <= result.optimizer_start.value());
      upstream_T += p.T(k) + 2 * p.c[k];
      upstream_f += p.f[k] + p.c[k];
    }
    RC_ASSERT(latency(p) <= result.last_backward.value());
    RC_ASSERT(result.iteration.value() == result.optimizer_start.value() + max_of(p.o));
  });
}

TEST_CASE("property simulate: without latency and with max f + max w within the period, the form brackets the simulation") {
  holds(5000, [] {
    Ranges ranges;
    ranges.min_T = 200;
    Draw p = draw(ranges);
    // One w/f for all stages makes max f + max w = max T = P, up to the rounding taken away here.
    const Int ratio = pick(100, 300);
    for (std::size_t s = 0; s < p.size(); ++s) {
      const Int units = pick(20, 100);
      p.f[s] = 100 * units;
      p.w[s] = ratio * units;
    }
    const Int P = period(p);
    RC_ASSERT(max_of(p.f) + max_of(p.w) <= P);
    const Int form = latency(p) + (p.M - 1) * P;
    std::size_t last_bottleneck = 0;
    for (std::size_t s = 0; s < p.size(); ++s) {
      if (p.T(s) == P) last_bottleneck = s;
    }
    Int slack = 0;
    for (std::size_t s = last_bottleneck + 1; s < p.size(); ++s) slack += P - p.T(s);
    const Int simulated = run(p).iteration.value();
    RC_ASSERT(simulated <= form);
    RC_ASSERT(form - slack <= simulated);
  });
}

TEST_CASE("property simulate: the in-flight recursion keeps its period through slow links") {
  for (const Int ratio : {200, 300, 400}) {
    holds(4000, [ratio] {
      Ranges ranges;
      ranges.max_ratio_percent = ratio;
      ranges.max_latency = 1200;
      ranges.max_sync = 4000;
      ranges.max_step = 200;
      Draw p = draw(ranges);
      const Int P = period(p) * pick(100, 120) / 100;
      set_in_flight(p, P);
      const Int form = latency(p) + (p.M - 1) * P;
      const std::vector<Int> no_occupancy(p.size(), 0);
      const Int limit = std::max(form, corrected_form(p, P, no_occupancy)) + exposed_tail(p) + max_of(p.o);
      RC_ASSERT(run(p).iteration.value() <= limit);
    });
  }
}

TEST_CASE("property simulate: links that are busy at most the period keep it too") {
  holds(8000, [] {
    Ranges ranges;
    ranges.max_latency = 900;
    Draw p = draw(ranges);
    std::vector<Int> occupancy;
    for (const Int c : p.c) occupancy.push_back(c * pick(0, 100) / 100);
    const Int P = std::max(period(p), max_of(occupancy));
    set_in_flight(p, P);
    const Int form = latency(p) + (p.M - 1) * P;
    RC_ASSERT(run(p, occupancy).iteration.value() <= std::max(form, corrected_form(p, P, occupancy)));
  });
}

TEST_CASE("property simulate: no tail is longer than the tail formula") {
  holds(3000, [] {
    Ranges ranges;
    ranges.max_latency = 300;
    ranges.max_sync = 6000;
    Draw p = draw(ranges);
    const Result result = run(p);
    // Stage 0 drains last; stage s is through at least sum_{j<s} (w_j + c_j) earlier.
    RC_ASSERT(result.iteration.value() <= result.last_backward.value() + exposed_tail(p));
  });
}

TEST_CASE("property simulate: counted in-flight microbatches never exceed the warm-up plus one, nor M") {
  holds(2000, [] {
    Ranges ranges;
    ranges.max_latency = 800;
    Draw p = draw(ranges);
    add_random_extras(p);
    const Result result = run(p);
    for (std::size_t s = 0; s < p.size(); ++s) RC_ASSERT(result.stages[s].max_in_flight == std::min(p.M, p.n[s]));
  });
}

TEST_CASE("property simulate: splitting a stage into equal parts changes nothing") {
  holds(1000, [] {
    Ranges ranges;
    ranges.max_latency = 500;
    ranges.max_sync = 3000;
    const Draw p = draw(ranges);
    Schedule split{{SimPipeline{}}};
    split.pipelines[0].microbatches = p.M;
    for (std::size_t s = 0; s < p.size(); ++s) {
      SimStage stage;
      const SimPart part{Nanoseconds(p.f[s]), Nanoseconds(p.w[s]), Nanoseconds(p.g[s]), Nanoseconds(p.o[s])};
      stage.parts.assign(static_cast<std::size_t>(pick(1, 3)), part);
      stage.warmup = p.n[s] - 1;
      stage.latency = Nanoseconds(p.c[s]);
      split.pipelines[0].stages.push_back(stage);
    }
    RC_ASSERT(simulate::simulate(split).iteration == run(p).iteration);
  });
}
