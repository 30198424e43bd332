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

TEST_CASE("replicas share samples as evenly as whole samples can be") {
  const Degrees six{.tp = 2, .cp = 1, .dp = 6};
  const auto begins = [&](std::int64_t samples) {
    std::vector<std::int64_t> first;
    for (int d = 0; d <= 6; ++d) first.push_back(six.samples_before(d, samples));
    return first;
  };
  CHECK(begins(32) == std::vector<std::int64_t>{0, 6, 12, 17, 22, 27, 32});
  CHECK(begins(36) == std::vector<std::int64_t>{0, 6, 12, 18, 24, 30, 36});
  CHECK(begins(6) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
  CHECK(begins(4) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 4, 4});
  for (std::int64_t samples = 0; samples < 100; ++samples) {
    for (int dp = 1; dp <= 12; ++dp) {
      const Degrees degrees{.tp = 1, .cp = 1, .dp = dp};
      std::int64_t most = 0;
      for (int d = 0; d < dp; ++d) {
        const std::int64_t own = degrees.samples_before(d + 1, samples) - degrees.samples_before(d, samples);
        CHECK((own == samples / dp || own == (samples + dp - 1) / dp));
        most = std::max(most, own);
      }
      CHECK(degrees.samples_before(0, samples) == 0);
      CHECK(degrees.samples_before(dp, samples) == samples);
      CHECK(degrees.most_samples(samples) == most);
    }
  }
}
