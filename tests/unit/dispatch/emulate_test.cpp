// Schedules on emulated devices: right ones compute what one device computes, and what is missing is found and named.
#include "tangram/dispatch/emulate.hpp"

#include <random>
#include <string>

#include "small_model.hpp"
#include "support/catch.hpp"
#include "support/schedules.hpp"
#include "tangram/dispatch/lower.hpp"

using namespace tangram;
using namespace tangram::dispatch;
using namespace tangram::testing;

namespace {

Emulation run(const kernels::KernelGraph& graph, const Schedule& schedule, const EmulationOptions& options) {
  const auto result = emulate(graph, schedule, options);
  if (!result) FAIL(render(result.error()));
  return *result;
}

/// Kernels that each take the id, reads and writes of a case.
struct Line {
  std::string id;
  std::vector<kernels::Access> reads;
  std::vector<kernels::Access> writes;
  int stream = 0;
};

kernels::KernelGraph graph_of(const std::vector<std::pair<std::string, std::int64_t>>& buffers,
                              const std::vector<Line>& lines) {
  kernels::KernelGraph graph;
  for (const auto& [name, bytes] : buffers) {
    kernels::Buffer buffer;
    buffer.id = name;
    buffer.bytes = Bytes(bytes);
    buffer.kind = name == "cache" ? kernels::BufferKind::kKv : kernels::BufferKind::kActivation;
    graph.buffers.push_back(std::move(buffer));
  }
  for (const Line& line : lines) {
    kernels::Kernel kernel;
    kernel.id = line.id;
    kernel.reads = line.reads;
    kernel.writes = line.writes;
    kernel.stream = line.stream;
    kernel.order = graph.kernel_count();
    graph.kernels.push_back(std::move(kernel));
  }
  graph.phases.push_back({"step", 1, 1, 0, 0, graph.kernel_count(), {}});
  return graph;
}

std::string found_in(const kernels::KernelGraph& graph, const Schedule& schedule) {
  const Emulation result = run(graph, schedule, {});
  return result.finding ? std::string(to_string(result.finding->fault)) + ": " + result.finding->message : "nothing";
}

}  // namespace

TEST_CASE("dispatch: PTX on several devices is bit-equal to one device, whatever the timing") {
  std::mt19937_64 random(18);
  for (const int streams : {1, 2}) {
    const SmallModel model = small_model(streams);
    const int count = streams + 1;
    const Schedule schedule = lowered(model.graph, random_placement(model.graph, count, random), devices(count));
    CHECK_FALSE(schedule.copies.empty());
    const Emulation result = run(model.graph, schedule, {.code = &model.code});
    if (result.finding) FAIL(result.finding->message);
    CHECK(result.timings == 50);
    CHECK(result.kernels == 50 * 2 * 26);
    CHECK(result.bytes_compared > 0);
  }
}

TEST_CASE("dispatch: a wait or a copy that is missing is found, and changes what PTX computes") {
  const SmallModel model = small_model(2);
  std::mt19937_64 random(19);
  int mutants = 0;
  int other_bytes = 0;
  for (int draw = 0; draw < 2; ++draw) {
    const Schedule schedule = lowered(model.graph, random_placement(model.graph, 2, random), devices(2));
    auto all = without_each_wait(schedule);
    const auto copies = without_each_copy(schedule);
    all.insert(all.end(), copies.begin(), copies.end());
    for (const Schedule& mutant : all) {
      ++mutants;
      CHECK(run(model.graph, mutant, {}).finding);
      const EmulationOptions bytes{.timings = 3, .code = &model.code, .by_bytes_alone = true};
      other_bytes += run(model.graph, mutant, bytes).finding ? 1 : 0;
    }
  }
  INFO(mutants << " mutants, " << other_bytes << " compute other bytes");
  CHECK(mutants >= 40);
  CHECK(other_bytes == mutants);
}

TEST_CASE("dispatch: what a device does not have is named, and why") {
  // write: x on A; read: x on B.
  const auto graph = graph_of({{"x", 64}}, {{"write", {}, {{0, 0, 64}}}, {"read", {{0, 16, 32}}, {}}});
  const std::vector<int> on{0, 1};
  const Schedule schedule = lowered(graph, on, devices(2));
  REQUIRE(schedule.copies.size() == 1);
  CHECK(schedule.copies.front() == Copy{"x", {{16, 32}}, 0, 1, 0, 0});
  CHECK(found_in(graph, schedule) == "nothing");
  CHECK(found_in(graph, without_each_copy(schedule).front()) ==
        "not copied: read reads bytes [16, 48) of x on B, which write writes on A: no copy brings them, they are as at "
        "the beginning");
}

TEST_CASE("dispatch: a cache that nobody sends on is stale") {
  // append writes the newest row of the cache on A, attend reads all of it on B: in the first pass that row is
  // missing, rows that were there before are not.
  const auto graph = graph_of({{"cache", 96}}, {{"append", {}, {{0, 32, 32}}}, {"attend", {{0, 0, 96}}, {}}});
  const std::vector<int> on{0, 1};
  const Schedule schedule = lowered(graph, on, devices(2));
  CHECK(found_in(graph, schedule) == "nothing");
  CHECK(found_in(graph, without_each_copy(schedule).front()) ==
        "stale cache: attend reads bytes [32, 64) of cache on B, which append writes on A: no copy brings them, they "
        "are as at the beginning");
}

TEST_CASE("dispatch: a copy from a device that never had the bytes") {
  // read: x on B, as it is at the beginning. A touches y alone, and sends x.
  const auto graph = graph_of({{"x", 64}, {"y", 64}}, {{"other", {}, {{1, 0, 64}}}, {"read", {{0, 0, 64}}, {}}});
  Schedule schedule = lowered(graph, std::vector<int>{0, 1}, devices(2));
  REQUIRE(schedule.segments.size() == 2);
  schedule.copies.push_back({"x", {{0, 64}}, 0, 1, 0, 0});
  schedule.segments[0].sends = {0};
  schedule.segments[1].takes = {0};
  REQUIRE(check_against(graph, schedule, "s"));
  CHECK(found_in(graph, schedule) ==
        "overwritten: bytes [0, 64) of x on B are overwritten before read reads them: a copy brings them from where "
        "they never were");
}

TEST_CASE("dispatch: streams of one device that do not wait for each other") {
  // The first writes, the second reads on another stream, the third overwrites on the first one's.
  const auto graph = graph_of(
      {{"x", 64}}, {{"write", {}, {{0, 0, 64}}, 0}, {"read", {{0, 0, 64}}, {}, 1}, {"again", {}, {{0, 0, 64}}, 0}});
  const std::vector<int> on{0, 0, 0};
  const Schedule schedule = lowered(graph, on, devices(1));
  CHECK(found_in(graph, schedule) == "nothing");
  const auto mutants = without_each_wait(schedule);
  REQUIRE(mutants.size() == 2);  // read after write, write after read; write after write is the stream's order
  CHECK(found_in(graph, mutants[0]) ==
        "too early: read reads bytes [0, 64) of x on A before write has written them: it does not wait for that");
  CHECK(found_in(graph, mutants[1]) ==
        "overwritten: bytes [0, 64) of x on A are overwritten by again before read reads them: it does not wait for "
        "that");
}

TEST_CASE("dispatch: memory that an allocator gives again is ordered on one device alone") {
  // Buffers a and b lie in one storage: read_a before write_b on one device, and no edge where they are on two.
  auto graph = graph_of({{"a", 64}, {"b", 64}}, {{"write_a", {}, {{0, 0, 64}}, 0},
                                                 {"read_a", {{0, 0, 64}}, {}, 0},
                                                 {"write_b", {}, {{1, 0, 64}}, 1},
                                                 {"read_b", {{1, 0, 64}}, {}, 1}});
  for (int b = 0; b < 2; ++b) {
    graph.buffers[static_cast<std::size_t>(b)].storage = "s";
    graph.buffers[static_cast<std::size_t>(b)].epoch = b;
  }
  const Schedule one = lowered(graph, std::vector<int>{0, 0, 0, 0}, devices(1));
  CHECK(found_in(graph, one) == "nothing");
  const auto mutants = without_each_wait(one);
  REQUIRE(mutants.size() == 1);
  CHECK(run(graph, mutants.front(), {}).finding);
  const Schedule two = lowered(graph, std::vector<int>{0, 0, 1, 1}, devices(2));
  CHECK(without_each_wait(two).empty());
  CHECK(two.copies.empty());
  CHECK(found_in(graph, two) == "nothing");
}

TEST_CASE("dispatch: PTX that touches what the graph does not list is found out") {
  SmallModel model = small_model();
  const std::vector<int> on(model.graph.kernels.size(), 0);
  model.graph.kernels[1].reads.erase(model.graph.kernels[1].reads.begin());
  const Emulation result = run(model.graph, lowered(model.graph, on, devices(1)), {.code = &model.code});
  REQUIRE(result.finding);
  CHECK(result.finding->fault == Fault::kUnlisted);
  CHECK(result.finding->message == "1.norm reads byte 0 of hidden, which the graph does not list");
}

TEST_CASE("dispatch: segments that wait for each other") {
  const auto graph = graph_of({{"x", 64}}, {{"write", {}, {{0, 0, 64}}, 0}, {"read", {{0, 0, 64}}, {}, 1}});
  Schedule schedule = lowered(graph, std::vector<int>{0, 1}, devices(2));
  REQUIRE(schedule.segments.size() == 2);
  std::swap(schedule.segments[0].takes, schedule.segments[1].takes);
  std::swap(schedule.segments[0].sends, schedule.segments[1].sends);
  schedule.segments[1].sends.clear();
  schedule.segments[0].sends = {0};
  CHECK(run(graph, schedule, {}).finding->fault == Fault::kDeadlock);
}
