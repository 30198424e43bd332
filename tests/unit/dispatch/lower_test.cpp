// What a placement needs: copies and waits, worked out by hand.
#include "tangram/dispatch/lower.hpp"

#include <vector>

#include "small_model.hpp"
#include "support/catch.hpp"
#include "support/schedules.hpp"

using namespace tangram;
using namespace tangram::dispatch;
using namespace tangram::testing;

TEST_CASE("dispatch: attention on a device of its own takes the new row of the cache and the queries") {
  const SmallModel model = small_model();
  std::vector<int> on(model.graph.kernels.size(), 0);
  on[4] = 1;  // attend of the first layer
  const Schedule schedule = lowered(model.graph, on, devices(2));
  // 4.attend reads the queries (64 of 192 bytes of each of 4 rows of qkv) and the cache, of which 3.write_cache writes
  // 128 bytes of each request. 5.project on A reads what it leaves.
  REQUIRE(schedule.copies.size() == 3);
  CHECK(schedule.copies[0] == Copy{"qkv", {{0, 64}, {192, 64}, {384, 64}, {576, 64}}, 0, 1, 0, 0});
  CHECK(schedule.copies[1] == Copy{"cache0", {{512, 128}, {1280, 128}, {2048, 128}, {2816, 128}}, 0, 1, 0, 0});
  CHECK(schedule.copies[2] == Copy{"attended", {{0, 256}}, 1, 0, 0, 0});
  // A: up to the products that are sent, the cache, what follows attention; B: attention.
  REQUIRE(schedule.segments.size() == 4);
  CHECK(schedule.segments[0].kernels == std::vector<std::string>{"0.embed", "1.norm", "2.project"});
  CHECK(schedule.segments[0].sends == std::vector<int>{0});
  CHECK(schedule.segments[1].kernels == std::vector<std::string>{"3.write_cache"});
  CHECK(schedule.segments[2].device == 1);
  CHECK(schedule.segments[2].takes == std::vector<int>{0, 1});
  CHECK(schedule.segments[2].sends == std::vector<int>{2});
  CHECK(schedule.segments[3].takes == std::vector<int>{2});
  CHECK(schedule.segments[3].kernels.size() == 21);
}
