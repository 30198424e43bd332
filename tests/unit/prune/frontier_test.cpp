#include "tangram/prune/frontier.hpp"

#include "support/catch.hpp"

using namespace tangram::prune;

namespace {

Candidate candidate(std::int64_t T, std::int64_t F, std::int64_t A, std::int64_t o, std::int64_t n_max,
                    std::int32_t source = 0) {
  return {.T = T, .F = F, .A = A, .o = o, .n_max = n_max, .source = source};
}

}  // namespace

TEST_CASE("prune: each component decides by itself") {
  // `base` and `better` differ in exactly one component, in which `better` is better: it dominates, base does not.
  // Were the component left out of the comparison, base would dominate as well, and this test would fail.
  const Candidate base = candidate(10, 4, 12, 3, 5);
  const Candidate better = GENERATE(candidate(9, 4, 12, 3, 5), candidate(10, 3, 12, 3, 5), candidate(10, 4, 11, 3, 5),
                                    candidate(10, 4, 12, 2, 5), candidate(10, 4, 12, 3, 6));
  CHECK(dominates(better, base));
  CHECK_FALSE(dominates(base, better));
  CHECK(pareto(std::vector{base, better}) == std::vector{better});
}

TEST_CASE("prune: each component can save a candidate that is worse in all others") {
  // `good` beats `odd` in four components and loses in one: neither dominates, both stay. Without that component in
  // the comparison `odd` would be dropped.
  const Candidate good = candidate(10, 4, 12, 3, 5, 0);
  const Candidate odd =
      GENERATE(candidate(9, 5, 13, 4, 4, 1), candidate(11, 3, 13, 4, 4, 1), candidate(11, 5, 11, 4, 4, 1),
               candidate(11, 5, 13, 2, 4, 1), candidate(11, 5, 13, 4, 6, 1));
  CHECK_FALSE(dominates(good, odd));
  CHECK_FALSE(dominates(odd, good));
  CHECK(pareto(std::vector{good, odd}).size() == 2);
}

TEST_CASE("prune: of equal vectors the smallest source stays") {
  const std::vector<Candidate> equal{candidate(1, 1, 1, 1, 1, 7), candidate(1, 1, 1, 1, 1, 2),
                                     candidate(1, 1, 1, 1, 1, 5)};
  REQUIRE(pareto(equal).size() == 1);
  CHECK(pareto(equal).front().source == 2);
}

TEST_CASE("prune: order is (T, F, A, o, -n_max, source)") {
  // Five candidates, none dominated: slower ones hold more. The two with T = 10 are told apart by F.
  const std::vector<Candidate> in{candidate(30, 9, 30, 1, 9, 0), candidate(10, 5, 10, 1, 1, 1),
                                  candidate(20, 9, 20, 1, 5, 2), candidate(10, 4, 11, 1, 1, 3),
                                  candidate(20, 9, 20, 2, 6, 4)};
  const auto out = pareto(in);
  REQUIRE(out.size() == 5);
  CHECK(out == std::vector{in[3], in[1], in[2], in[4], in[0]});
}

TEST_CASE("prune: nothing in, nothing out") { CHECK(pareto({}).empty()); }
