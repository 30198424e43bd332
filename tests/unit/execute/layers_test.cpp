// The backward passes, against differences of the loss: on one rank, where nothing but the mathematics can be wrong.
#include <cmath>

#include "rank.hpp"
#include "reduction.hpp"
#include "run.hpp"
#include "support/catch.hpp"
#include "unit/execute/tiny_plan.hpp"

using namespace tangram;
using namespace tangram::execute;

namespace {

/// The loss on one rank after `change` was added to one value of one weight.
double loss_of(const Job& job, std::size_t parameter, std::size_t value, double change) {
  Communicator communicator({"rank 0"});
  RankProgram rank(job, 0, communicator, {});
  const std::map<std::string, Holders> none;
  rank.set_holders(&none);
  rank.parameters()[parameter].value.values()[value] += change;
  std::vector<Task<void>> tasks;
  tasks.push_back(rank.run());
  REQUIRE_FALSE(communicator.run(tasks));
  return rank.loss();
}

}  // namespace

TEST_CASE("gradients are the slopes of the loss") {
  const std::string types = GENERATE("d", "g", "m", "s", "l", "p", "w", "k", "ed", "M", "D", "a", "q", "f");
  const bool tied = GENERATE(false, true);
  CAPTURE(types, tied);
  const plan::LaunchPlan plan =
      tiny::make_plan(tiny::make_model(types, tied), {{1, 2, {{static_cast<int>(types.size()), {{{}, 1}}}}}});
  const Job job = reduce(plan).job;
  const Run analytic = run(job);
  REQUIRE_FALSE(analytic.stopped);
  const auto& parameters = analytic.ranks.front()->parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    // Central differences: with h = 1e-4 and slopes of third derivatives near 1, the error is near 1e-8.
    constexpr double kStep = 1e-4;
    const std::size_t last = parameters[p].shard_gradient.size() - 1;
    for (const std::size_t k : {std::size_t{0}, last / 2, last}) {
      const double slope = (loss_of(job, p, k, kStep) - loss_of(job, p, k, -kStep)) / (2 * kStep);
      CAPTURE(parameters[p].name, k);
      CHECK(std::abs(slope - parameters[p].shard_gradient[k]) < 1e-6);
    }
  }
}

TEST_CASE("a weight has the same values whoever holds it, and others than its neighbours") {
  CHECK(initial_value("block 3 query", 2, 5) == initial_value("block 3 query", 2, 5));
  CHECK(initial_value("block 3 query", 2, 5) != initial_value("block 3 query", 5, 2));
  CHECK(initial_value("block 3 query", 2, 5) != initial_value("block 3 key", 2, 5));
  CHECK(std::abs(initial_value("block 3 query", 2, 5)) <= 0.5);
}
