#include "support/catch.hpp"
#include "tangram/plan/assemble.hpp"

using namespace tangram;
using namespace tangram::plan;

namespace {

Part part(int first_rank, std::int64_t samples, int tp, int cp, int dp) {
  Part result;
  result.first_rank = first_rank;
  result.samples = samples;
  result.strategy.degrees = {tp, cp, dp, 1, 1, tp > 1};
  return result;
}

Stage stage(std::vector<Part> parts) {
  Stage result;
  result.parts = std::move(parts);
  return result;
}

Transfer transfer(int src, int dst, std::int64_t s0, std::int64_t s1, std::int64_t p0, std::int64_t p1, Bytes bytes) {
  return {src, dst, s0, s1, p0, p1, bytes};
}

}  // namespace

TEST_CASE("equal layouts hand each shard to its twin") {
  // 4 samples of 8 positions and 80 bytes. dp 2 x tp 2 on both sides: rank r of 0..3 owns samples [0,2) or [2,4) and
  // positions [0,4) or [4,8): 2 samples x half a sample of 80 bytes = 80 bytes each.
  const auto transfers = boundary_transfers(stage({part(0, 4, 2, 1, 2)}), stage({part(4, 4, 2, 1, 2)}), 8, Bytes(80));
  CHECK(transfers == std::vector<Transfer>{transfer(0, 4, 0, 2, 0, 4, Bytes(80)), transfer(1, 5, 0, 2, 4, 8, Bytes(80)),
                                           transfer(2, 6, 2, 4, 0, 4, Bytes(80)),
                                           transfer(3, 7, 2, 4, 4, 8, Bytes(80))});
  CHECK(boundary_mode(transfers) == BoundaryMode::kEqual);
}

TEST_CASE("a context-parallel stage hands over like a tensor-parallel one") {
  // cp 2 and tp 2 both halve the sequence: the shards coincide.
  const auto transfers = boundary_transfers(stage({part(0, 1, 1, 2, 1)}), stage({part(2, 1, 2, 1, 1)}), 8, Bytes(8));
  CHECK(transfers == std::vector<Transfer>{transfer(0, 2, 0, 1, 0, 4, Bytes(4)), transfer(1, 3, 0, 1, 4, 8, Bytes(4))});
}

TEST_CASE("cp ranges are cut into tp ranges") {
  // cp 2 x tp 2 of 8 positions: rank 0 [0,2), 1 [2,4), 2 [4,6), 3 [6,8). One sender holds everything.
  const auto transfers = boundary_transfers(stage({part(9, 1, 1, 1, 1)}), stage({part(0, 1, 2, 2, 1)}), 8, Bytes(16));
  CHECK(transfers == std::vector<Transfer>{transfer(9, 0, 0, 1, 0, 2, Bytes(4)), transfer(9, 1, 0, 1, 2, 4, Bytes(4)),
                                           transfer(9, 2, 0, 1, 4, 6, Bytes(4)), transfer(9, 3, 0, 1, 6, 8, Bytes(4))});
  CHECK(boundary_mode(transfers) == BoundaryMode::kFanOut);
}

TEST_CASE("fewer replicas downstream are a fan-in") {
  // dp 4 -> dp 2 of 4 samples: senders hold one sample each, receivers two.
  const auto transfers = boundary_transfers(stage({part(0, 4, 1, 1, 4)}), stage({part(4, 4, 1, 1, 2)}), 8, Bytes(8));
  CHECK(transfers == std::vector<Transfer>{transfer(0, 4, 0, 1, 0, 8, Bytes(8)), transfer(1, 4, 1, 2, 0, 8, Bytes(8)),
                                           transfer(2, 5, 2, 3, 0, 8, Bytes(8)), transfer(3, 5, 3, 4, 0, 8, Bytes(8))});
  CHECK(boundary_mode(transfers) == BoundaryMode::kFanIn);
}

TEST_CASE("unequal replicas hand over what they have") {
  // 5 samples on 3 replicas are 2 + 2 + 1, on 2 they are 3 + 2.
  const auto transfers = boundary_transfers(stage({part(0, 5, 1, 1, 3)}), stage({part(3, 5, 1, 1, 2)}), 8, Bytes(8));
  CHECK(transfers == std::vector<Transfer>{transfer(0, 3, 0, 2, 0, 8, Bytes(16)), transfer(1, 3, 2, 3, 0, 8, Bytes(8)),
                                           transfer(1, 4, 3, 4, 0, 8, Bytes(8)), transfer(2, 4, 4, 5, 0, 8, Bytes(8))});
  CHECK(boundary_mode(transfers) == BoundaryMode::kOverlap);
}

TEST_CASE("degrees that do not divide each other overlap") {
  // dp 2 -> dp 3 of 6 samples: senders [0,3) [3,6), receivers [0,2) [2,4) [4,6). The middle receiver has two senders.
  const auto transfers = boundary_transfers(stage({part(0, 6, 1, 1, 2)}), stage({part(2, 6, 1, 1, 3)}), 4, Bytes(4));
  CHECK(transfers == std::vector<Transfer>{transfer(0, 2, 0, 2, 0, 4, Bytes(8)), transfer(0, 3, 2, 3, 0, 4, Bytes(4)),
                                           transfer(1, 3, 3, 4, 0, 4, Bytes(4)), transfer(1, 4, 4, 6, 0, 4, Bytes(8))});
  CHECK(boundary_mode(transfers) == BoundaryMode::kOverlap);
}

TEST_CASE("parts of a mixed stage take the samples one after another") {
  // 5 samples: 4 on a part with dp 2, 1 on a part with tp 2. Downstream one GPU.
  const auto transfers =
      boundary_transfers(stage({part(0, 4, 1, 1, 2), part(2, 1, 2, 1, 1)}), stage({part(4, 5, 1, 1, 1)}), 2, Bytes(10));
  CHECK(transfers == std::vector<Transfer>{transfer(0, 4, 0, 2, 0, 2, Bytes(20)), transfer(1, 4, 2, 4, 0, 2, Bytes(20)),
                                           transfer(2, 4, 4, 5, 0, 1, Bytes(5)), transfer(3, 4, 4, 5, 1, 2, Bytes(5))});
}

TEST_CASE("a sequence that does not divide is still covered once") {
  // 7 positions over tp 2: [0,3) and [3,7). 10 bytes a sample: positions [0,3) end at byte floor(30/7) = 4, so 4 + 6.
  const auto transfers = boundary_transfers(stage({part(0, 1, 1, 1, 1)}), stage({part(1, 1, 2, 1, 1)}), 7, Bytes(10));
  CHECK(transfers == std::vector<Transfer>{transfer(0, 1, 0, 1, 0, 3, Bytes(4)), transfer(0, 2, 0, 1, 3, 7, Bytes(6))});
}
