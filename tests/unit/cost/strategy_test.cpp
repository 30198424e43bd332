#include "tangram/cost/strategy.hpp"

#include "support/catch.hpp"

using namespace tangram::cost;

namespace {

constexpr BlockPolicy kPlain{1, RecomputeMode::kNone};
constexpr BlockPolicy kFull{1, RecomputeMode::kFull};
constexpr BlockPolicy kSelective{1, RecomputeMode::kSelective};
constexpr BlockPolicy kSharded{3, RecomputeMode::kNone};

}  // namespace

TEST_CASE("runs are used where nothing shorter says it") {
  CHECK(policy_of_runs(1, {{2, kPlain}, {3, kPlain}}) == MemoryPolicy{1, RecomputeMode::kNone, 0});
  CHECK(policy_of_runs(1, {{5, kSelective}}) == MemoryPolicy{1, RecomputeMode::kSelective, 0});
  CHECK(policy_of_runs(1, {{1, kFull}, {1, kFull}, {3, kPlain}}) == MemoryPolicy{1, RecomputeMode::kFull, 2});
  CHECK(policy_of_runs(1, {{5, kFull}}) == MemoryPolicy{1, RecomputeMode::kFull, 5});
  // The last blocks in full, two modes, two ZeRO stages, other ends.
  for (const auto& runs : {std::vector<BlockRun>{{3, kPlain}, {2, kFull}},
                           {{2, kFull}, {3, kSelective}},
                           {{4, kPlain}, {1, kSharded}},
                           {{5, kSharded}}}) {
    const MemoryPolicy policy = policy_of_runs(1, runs);
    CHECK(policy.runs == runs);
    CHECK(policy.recompute == RecomputeMode::kNone);
    CHECK(runs_of(policy, 5) == runs);
  }
}

TEST_CASE("every policy can be told in runs") {
  CHECK(runs_of({1, RecomputeMode::kFull, 2}, 5) == std::vector<BlockRun>{{2, kFull}, {3, kPlain}});
  CHECK(runs_of({1, RecomputeMode::kFull, 9}, 5) == std::vector<BlockRun>{{5, kFull}});
  CHECK(runs_of({1, RecomputeMode::kSelective, 0}, 5) == std::vector<BlockRun>{{5, kSelective}});
  CHECK(runs_of({1, RecomputeMode::kNone, 0}, 5) == std::vector<BlockRun>{{5, kPlain}});
}

TEST_CASE("a stage that grows or shrinks changes the last of its runs") {
  const MemoryPolicy policy = policy_of_runs(1, {{2, kSharded}, {3, kSelective}});
  CHECK(fitted(policy, 7).runs == std::vector<BlockRun>{{2, kSharded}, {5, kSelective}});
  CHECK(fitted(policy, 3).runs == std::vector<BlockRun>{{2, kSharded}, {1, kSelective}});
  CHECK(fitted(policy, 2).runs == std::vector<BlockRun>{{2, kSharded}});
  CHECK(fitted({1, RecomputeMode::kFull, 4}, 3) == MemoryPolicy{1, RecomputeMode::kFull, 3});
}
