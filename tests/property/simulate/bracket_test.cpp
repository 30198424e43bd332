// The closed form of 1F1B brackets the simulation: 100,000 random pipelines a statement, drawn without rapidcheck,
// which would take most of the time.
#include <algorithm>
#include <sstream>

#include "draws.hpp"
#include "numbers.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::simulate;

namespace {

constexpr int kCases = 100'000;

Numbers draw_shape(Draws& draws) {
  Numbers p(static_cast<std::size_t>(draws.pick(1, 8)));
  p.M = draws.pick(1, 24);
  return p;
}

Result run(const Numbers& p) {
  const Result result = simulate::simulate(Schedule{{pipeline_of(p)}});
  REQUIRE_FALSE(result.deadlock);
  return result;
}

/// Fails with the numbers of the pipeline; an INFO for each would take longer than the simulation.
void require(bool holds, const char* statement, const Numbers& p) {
  if (holds) return;
  std::ostringstream text;
  text << statement << ": " << p;
  FAIL(text.str());
}

}  // namespace

TEST_CASE(
    "property simulate: without latency and with max f + max w within the period, the form brackets the simulation") {
  // max f + max w <= max T means that some stage has both the slowest forward and the slowest backward pass.
  Draws draws(2026);
  int exact = 0;
  for (int i = 0; i < kCases; ++i) {
    Numbers p = draw_shape(draws);
    const Int slowest_f = draws.pick(1, 500);
    const Int slowest_w = draws.pick(1, 1000);
    const bool uneven = draws.pick(0, 1) == 0;
    for (std::size_t s = 0; s < p.size(); ++s) {
      p.f[s] = draws.pick(uneven ? 0 : slowest_f * 9 / 10, slowest_f);
      p.w[s] = draws.pick(uneven ? 0 : slowest_w * 9 / 10, slowest_w);
    }
    const auto bottleneck = static_cast<std::size_t>(draws.pick(0, static_cast<Int>(p.size()) - 1));
    p.f[bottleneck] = slowest_f;
    p.w[bottleneck] = slowest_w;

    const Int P = period(p);
    require(max_of(p.f) + max_of(p.w) <= P, "the draw keeps its promise", p);
    std::size_t last = 0;
    for (std::size_t s = 0; s < p.size(); ++s) {
      if (p.T(s) == P) last = s;
    }
    Int slack = 0;
    for (std::size_t s = last + 1; s < p.size(); ++s) slack += P - p.T(s);
    const Int simulated = run(p).iteration.value();
    require(simulated <= form(p, P), "the form is not below the simulation", p);
    require(form(p, P) - slack <= simulated, "the form is high by at most the slack after the last bottleneck", p);
    exact += simulated == form(p, P) ? 1 : 0;
  }
  CHECK(exact > kCases / 10);  // the bracket is not kept by distance alone
  CHECK(exact < kCases);
}

TEST_CASE("property simulate: the corrected form is never below the simulation, the lower bounds never above") {
  Draws draws(2027);
  int corrected = 0;
  for (int i = 0; i < kCases; ++i) {
    Numbers p = draw_shape(draws);
    for (std::size_t s = 0; s < p.size(); ++s) {
      p.f[s] = draws.pick(1, 600);
      p.w[s] = draws.pick(1, 1200);
      p.c[s] = draws.sometimes(1500);
      p.busy[s] = draws.sometimes(p.c[s]);
      p.g[s] = draws.sometimes(5000);
      p.o[s] = draws.pick(0, 300);
    }
    const Int P = period(p) * draws.pick(100, 120) / 100;
    set_in_flight(p, P);
    const Result result = run(p);
    const Int tail = exposed_tail(p) + max_of(p.o);
    const Int limit = std::max(form(p, P), corrected_form(p, P)) + tail;
    require(result.iteration.value() <= limit, "the corrected form is not below the simulation", p);
    corrected += result.iteration.value() > form(p, P) + tail ? 1 : 0;
    const LowerBounds bounds = lower_bounds(p);
    require(bounds.backward <= result.last_backward.value(), "no backward pass ends before its bound", p);
    require(bounds.sync <= result.optimizer_start.value(), "no synchronisation ends before its bound", p);
  }
  CHECK(corrected > 0);  // the uncorrected form can be low
}
