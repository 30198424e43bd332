#include "skyline.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "support/catch.hpp"

using tangram::parallelizer::Skyline;
using tangram::prune::Candidate;

namespace {

/// Few values, so that many components are equal and many candidates dominated.
Candidate draw(std::mt19937& random, std::int32_t source) {
  const auto value = [&random] { return static_cast<std::int64_t>(random() % 12); };
  return {.T = value(), .F = value(), .A = value(), .o = value(), .n_max = value(), .source = source};
}

std::int64_t largest_cover(const std::vector<Candidate>& all, Candidate candidate) {
  candidate.n_max = 0;
  std::int64_t most = 0;
  for (const Candidate& other : all) {
    if (tangram::prune::dominates(other, candidate)) most = std::max(most, other.n_max);
  }
  return most;
}

}  // namespace

TEST_CASE("skyline: holds the frontier of all that came in, in its order") {
  std::mt19937 random(1);  // its sequence is fixed by the standard
  for (int round = 0; round < 50; ++round) {
    Skyline skyline;
    std::vector<Candidate> all;
    for (std::int32_t i = 0; i < 200; ++i) {
      const Candidate candidate = draw(random, i);
      all.push_back(candidate);
      if (skyline.cover(candidate, -1, candidate.n_max) < candidate.n_max) skyline.insert(candidate);
    }
    const auto held = skyline.held();
    CHECK(std::vector<Candidate>(held.begin(), held.end()) == tangram::prune::pareto(all));
  }
}

TEST_CASE("skyline: cover is the most in flight with no worse times") {
  std::mt19937 random(2);
  Skyline skyline;
  std::vector<Candidate> all;
  for (std::int32_t i = 0; i < 500; ++i) {
    const Candidate candidate = draw(random, i);
    const std::int64_t cover = largest_cover(all, candidate);
    CHECK(skyline.cover(candidate, 0, 12) == cover);
    // Below `least` it is not looked for; from `enough` on any will do; no slower ones than `after` need be seen.
    CHECK(skyline.cover(candidate, 5, 12) == std::max<std::int64_t>(5, cover));
    CHECK((skyline.cover(candidate, 0, 3) >= 3) == (cover >= 3));
    const std::int64_t seen = skyline.cover(candidate, 0, 12, candidate.T / 2);
    CHECK(seen <= cover);
    Candidate faster = candidate;
    faster.T = candidate.T / 2;
    CHECK(std::max(seen, largest_cover(all, faster)) == cover);
    if (cover < candidate.n_max) skyline.insert(candidate);
    all.push_back(candidate);
  }
}
