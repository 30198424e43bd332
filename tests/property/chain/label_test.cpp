// Dominance between labels against what it promises: no stage in front of both makes the dominated one the better.
#include <optional>
#include <random>

#include "labels/label.hpp"
#include "random_program.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"

using namespace tangram;
using namespace tangram::tests;
using chain::Label;
using chain::LabelAlgebra;
using prune::Candidate;
using tangram::testing::cases;
using tangram::testing::enough;
using tangram::testing::pick;

namespace {

struct Head {
  Label label;
  int key = -1;
};

// A run of a few random stages, or nothing where the period does not allow one of them.
std::optional<Head> random_run(std::mt19937_64& random, const chain::Program& program, const LabelAlgebra& algebra,
                               std::int64_t period) {
  Head head;
  for (int stages = pick(random, 1, 3); stages > 0; --stages) {
    const Candidate plan = random_plan(random, period);
    Label next;
    const int key = pick(random, 0, program.keys - 1);
    if (!algebra.prepend(head.label, head.key, plan, key, /*cut=*/1, next)) return std::nullopt;
    head = {next, key};
  }
  return head;
}

// Whether a stage in front leaves x feasible wherever y is, and no worse.
bool is_no_worse(const Label& x, const Label& y) {
  return x.latency <= y.latency && x.a <= y.a && x.o <= y.o && x.n <= y.n && x.q <= y.q;
}

}  // namespace

TEST_CASE("a label that dominates is no worse behind any stage") {
  std::mt19937_64 random(21);
  int dominated = 0;
  int only_further = 0;
  int blocking = 0;
  for (int i = 0; i < cases(4000); ++i) {
    const std::int64_t period = pick(random, 4, 40);
    chain::Program program = random_hops(random, 3, period);
    program.classic_warmup = program.blocking_transfers = i % 3 == 0;
    const chain::BoundaryPrices hops(program, period);
    const LabelAlgebra algebra(program, hops, period);
    for (int pair = 0; pair < 40; ++pair) {
      const std::optional<Head> x = random_run(random, program, algebra, period);
      const std::optional<Head> y = random_run(random, program, algebra, period);
      if (!x || !y) continue;
      const bool dominates = algebra.dominates(algebra.dominance_key(x->label, x->key),
                                               algebra.dominance_key(y->label, y->key), hops.latency_gap_at(/*cut=*/1));
      // Where transfers block, labels are compared with others as deep.
      if (!dominates || (program.blocking_transfers && x->label.n != y->label.n)) continue;
      ++dominated;
      blocking += program.blocking_transfers ? 1 : 0;
      only_further += x->key != y->key ? 1 : 0;
      for (int front = 0; front < program.keys; ++front) {
        Candidate plan = random_plan(random, period);
        plan.n_max = 1'000'000;
        Label before_x;
        Label before_y;
        if (!algebra.prepend(y->label, y->key, plan, front, 1, before_y)) continue;
        REQUIRE(algebra.prepend(x->label, x->key, plan, front, 1, before_x));
        REQUIRE(is_no_worse(before_x, before_y));
      }
    }
  }
  CHECK(dominated >= enough(5000));
  CHECK(only_further >= enough(1000));
  CHECK(blocking >= enough(1000));
}
