// Placements, simulated.
#include "tangram/disaggregate/timeline.hpp"

#include "random_problem.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/base/at.hpp"
#include "tangram/disaggregate/usage.hpp"

using namespace tangram;
using namespace tangram::tests;
using tangram::testing::cases;

namespace {

disaggregate::Placement random_placement(const disaggregate::Problem& problem, std::mt19937_64& random) {
  disaggregate::Placement placement;
  for (const disaggregate::Kernel& kernel : problem.kernels) {
    int on = 0;
    do {
      on = static_cast<int>(random() % problem.classes.size());
    } while (std::isinf(at(kernel.seconds, on)));
    placement.push_back(on);
  }
  return placement;
}

}  // namespace

TEST_CASE("disaggregate timeline: one pass alone takes its latency, and nothing is busy less than the rows say") {
  std::mt19937_64 random(8);
  for (int i = 0; i < cases(500); ++i) {
    INFO("case " << i);
    disaggregate::Problem problem = random_problem(random, {12, 1, 3});
    problem.phases.resize(1);
    for (disaggregate::Kernel& kernel : problem.kernels) kernel.phase = 0;
    problem.phases.front() = {"decode", 1, 1};
    for (disaggregate::Buffer& buffer : problem.buffers) buffer.messages = 0;
    const disaggregate::Placement placement = random_placement(problem, random);
    const disaggregate::Usage usage = disaggregate::usage_of(problem, placement);
    const streams::Run alone = streams::run(disaggregate::schedule_of(problem, {{1, placement}}, 1));
    CHECK(alone.end == Approx(usage.latency.front()));
    for (int c = 0; c < problem.class_count(); ++c) {
      CHECK(at(alone.busy, c) == Approx(at(usage.gpu, c) * at(problem.classes, c).count));
    }
    problem.phases.front().in_flight = 4;
    const int rounds = 12;
    const streams::Run run = streams::run(disaggregate::schedule_of(problem, {{1, placement}}, rounds));
    // Two GPUs of a class share four places evenly, and so do twelve passes over three rounds of them.
    CHECK(run.end >= rounds * disaggregate::usage_of(problem, placement).period * (1 - 1e-9) - usage.latency.front());
    CHECK(run.end <= rounds * usage.latency.front() * (1 + 1e-9));
  }
}
