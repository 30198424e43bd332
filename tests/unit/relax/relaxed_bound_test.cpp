// The bound that takes no search, by hand.
#include "tangram/relax/relaxed_bound.hpp"

#include "support/catch.hpp"
#include "unit/compose/fixtures.hpp"

using namespace tangram;
using namespace tangram::relax;
using namespace tangram::compose::fixtures;

namespace {

cluster::IslandClass gpus(const char* name, double nanoseconds, int count) {
  cluster::IslandClass c = class_of(count, 1, 1);
  c.device = device(name, nanoseconds);
  return c;
}

Nanoseconds work_over_speed(const model::Model& model, const cluster::IslandLevel& level) {
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {level};
  return relaxed_bound(model, hierarchy, false);
}

// Rounded down, after sums in doubles.
void check_bound(Nanoseconds bound, std::int64_t expected) {
  CHECK(bound.value() <= expected);
  CHECK(bound.value() >= expected - 1);
}

}  // namespace

TEST_CASE("alike work spreads over all GPUs in proportion to their speed") {
  // 8 blocks, 6 samples. Three GPUs with 1,000 ns a block and three with 3,000: together 3 / 1,000 + 3 / 3,000 =
  // 4 blocks per 1,000 ns, and 48 blocks take 12,000 ns.
  model::Model model = model_of(8);
  model.job.global_batch = 6;
  check_bound(work_over_speed(model, level_of({gpus("fast", 1000, 3), gpus("slow", 3000, 3)})), 12'000);
  check_bound(work_over_speed(model, level_of({gpus("slow", 3000, 3), gpus("fast", 1000, 3)})), 12'000);
  check_bound(work_over_speed(model, level_of({gpus("fast", 1000, 3)})), 16'000);
  // Neither splitting a class nor drawing it as islands changes its GPUs.
  check_bound(work_over_speed(model, level_of({gpus("a", 1000, 1), gpus("b", 1000, 2), gpus("slow", 3000, 3)})),
              12'000);
}

TEST_CASE("the head is work too") {
  // Logits of a sample are 2 * 4 tokens * 8 * 640 = 40,960 FLOPs; the linear layers of a block 2 * 4 * 512 = 4,096 and
  // its attention less than that. So the head is worth at least 40,960 / 8,192 = 5 blocks of 1,000 ns.
  model::Model model = model_of(2);
  model.job.global_batch = 1;
  model.vocabulary = 640;
  const cluster::IslandClass one = gpus("gpu", 1000, 1);
  const double head = cost::least_gpu_seconds_head(model, one.device) * 1e9;
  CHECK(head >= 5000);
  check_bound(work_over_speed(model, level_of({one})), static_cast<std::int64_t>(2 * 1000 + head));
  check_bound(work_over_speed(model, level_of({gpus("gpu", 1000, 2)})),
              static_cast<std::int64_t>((2 * 1000 + head) / 2));
}

TEST_CASE("work that suits one class better is priced by what it costs there") {
  // fp8: the linear layers of the blocks run on fp8 units, attention and the head stay in 16 bits. One GPU has fp8
  // units four times as fast as its 16-bit units, the other has none and runs everything at that 16-bit speed. The head
  // belongs on the plain GPU, h; x of the 8 blocks on the fast one balance them: x f = (8 - x) p + h. That is what the
  // plain GPU's costs as prices prove: (8 p + h) of work, p / f + 1 of it per second.
  model::Model model = model_of(8);
  model.job.precision = DType::kFp8;
  model.job.global_batch = 1;
  model.vocabulary = 64;
  cluster::IslandClass plain = gpus("plain", 1000, 1);
  plain.device.peak[static_cast<std::size_t>(DType::kFp8)] = FlopsPerSecond(0);
  cluster::IslandClass fast = plain;
  fast.device.name = "fast";
  fast.device.peak[static_cast<std::size_t>(DType::kFp8)] =
      FlopsPerSecond(4 * plain.device.peak_of(DType::kBf16).value());
  const double h = cost::least_gpu_seconds_head(model, plain.device);
  const double on_plain = cost::least_gpu_seconds(model, model.types[0], plain.device);
  const double on_fast = cost::least_gpu_seconds(model, model.types[0], fast.device);
  REQUIRE(on_fast < on_plain);
  REQUIRE(h == cost::least_gpu_seconds_head(model, fast.device));
  const double x = (8 * on_plain + h) / (on_fast + on_plain);
  REQUIRE(x < 8);
  check_bound(work_over_speed(model, level_of({fast, plain})), static_cast<std::int64_t>(x * on_fast * 1e9));
}
