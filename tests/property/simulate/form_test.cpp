// What is stated about 1F1B, against the simulator: thousands of random pipelines a statement, shrunk where one fails.
#include <algorithm>

#include "numbers.hpp"
#include "support/property.hpp"

using namespace tangram;
using namespace tangram::simulate;
using tangram::testing::holds;

namespace {

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

Numbers draw(const Ranges& ranges) {
  const auto stages = static_cast<std::size_t>(pick(1, ranges.max_stages));
  Numbers result(stages);
  result.M = pick(1, 4 * static_cast<Int>(stages) + 8);
  for (std::size_t s = 0; s < stages; ++s) {
    const Int T = pick(ranges.min_T, ranges.max_T);
    result.f[s] = T * 100 / (100 + pick(100, ranges.max_ratio_percent));
    result.w[s] = T - result.f[s];
    result.c[s] = pick(0, 1) * pick(0, ranges.max_latency);
    result.g[s] = pick(0, 1) * pick(0, ranges.max_sync);
    result.o[s] = pick(0, ranges.max_step);
  }
  return result;
}

Result simulated(const Numbers& p) {
  const Result result = simulate::simulate(Schedule{{pipeline_of(p)}});
  RC_ASSERT(!result.deadlock);
  return result;
}

/// Adds up to two extra microbatches in flight per stage, keeping the counts falling downstream.
void add_random_extras(Numbers& p) {
  Int extra = 0;
  for (std::size_t s = p.size(); s-- > 0;) {
    extra += pick(0, 2);
    p.n[s] += extra;
  }
}

}  // namespace

TEST_CASE("property simulate: no lower bound exceeds the simulation, whatever the warm-up") {
  holds(5000, [] {
    Ranges ranges;
    ranges.min_T = 1;
    ranges.max_latency = 1500;
    ranges.max_sync = 5000;
    ranges.max_step = 300;
    Numbers p = draw(ranges);
    add_random_extras(p);
    const Result result = simulated(p);
    const LowerBounds bounds = lower_bounds(p);
    RC_ASSERT(bounds.backward <= result.last_backward.value());
    RC_ASSERT(bounds.sync <= result.optimizer_start.value());
    RC_ASSERT(result.iteration.value() == result.optimizer_start.value() + max_of(p.o));
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
      Numbers p = draw(ranges);
      const Int P = period(p) * pick(100, 120) / 100;
      set_in_flight(p, P);
      const Int limit = std::max(form(p, P), corrected_form(p, P)) + exposed_tail(p) + max_of(p.o);
      RC_ASSERT(simulated(p).iteration.value() <= limit);
    });
  }
}

TEST_CASE("property simulate: links that are busy at most the period keep it too") {
  holds(8000, [] {
    Ranges ranges;
    ranges.max_latency = 900;
    Numbers p = draw(ranges);
    for (std::size_t s = 0; s < p.size(); ++s) p.busy[s] = p.c[s] * pick(0, 100) / 100;
    const Int P = period(p);
    set_in_flight(p, P);
    RC_ASSERT(simulated(p).iteration.value() <= std::max(form(p, P), corrected_form(p, P)));
  });
}

TEST_CASE("property simulate: no tail is longer than the tail formula") {
  holds(3000, [] {
    Ranges ranges;
    ranges.max_latency = 300;
    ranges.max_sync = 6000;
    Numbers p = draw(ranges);
    const Result result = simulated(p);
    // Stage 0 drains last; stage s is through at least sum_{j<s} (w_j + c_j) earlier.
    RC_ASSERT(result.iteration.value() <= result.last_backward.value() + exposed_tail(p));
  });
}

TEST_CASE("property simulate: counted in-flight microbatches never exceed the warm-up plus one, nor M") {
  holds(2000, [] {
    Ranges ranges;
    ranges.max_latency = 800;
    Numbers p = draw(ranges);
    add_random_extras(p);
    const Result result = simulated(p);
    for (std::size_t s = 0; s < p.size(); ++s) RC_ASSERT(result.stages[s].max_in_flight == std::min(p.M, p.n[s]));
  });
}

TEST_CASE("property simulate: splitting a stage into equal parts changes nothing") {
  holds(1000, [] {
    Ranges ranges;
    ranges.max_latency = 500;
    ranges.max_sync = 3000;
    const Numbers p = draw(ranges);
    Schedule split{{pipeline_of(p)}};
    for (SimStage& stage : split.pipelines[0].stages) {
      const SimPart part = stage.parts[0];
      stage.parts.assign(static_cast<std::size_t>(pick(1, 3)), part);
    }
    RC_ASSERT(simulate::simulate(split).iteration == simulated(p).iteration);
  });
}
