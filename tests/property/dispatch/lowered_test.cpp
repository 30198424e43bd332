// Random graphs on random devices: whatever the timing, kernels read what they read on one device; without any one of
// the waits and copies some kernel does not.
#include <random>
#include <string>

#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "support/schedules.hpp"
#include "tangram/dispatch/emulate.hpp"
#include "tangram/dispatch/lower.hpp"

using namespace tangram;
using namespace tangram::dispatch;
using namespace tangram::testing;

namespace {

constexpr int kBytes = 12;

kernels::Access random_access(std::mt19937_64& random, int buffers) {
  const int offset = pick(random, 0, kBytes - 1);
  return {pick(random, 0, buffers - 1), offset, pick(random, 1, kBytes - offset), pick(random, 0, 4) > 0};
}

kernels::KernelGraph random_graph(std::mt19937_64& random) {
  kernels::KernelGraph graph;
  const int buffers = pick(random, 1, 5);
  for (int b = 0; b < buffers; ++b) {
    kernels::Buffer buffer;
    buffer.id = "b" + std::to_string(b);
    buffer.bytes = Bytes(kBytes);
    // Some lie in one storage: none holds what an earlier one held.
    if (pick(random, 0, 3) == 0) buffer.storage = "s";
    buffer.epoch = b;
    graph.buffers.push_back(std::move(buffer));
  }
  const int phases = pick(random, 1, 3);
  for (int f = 0; f < phases; ++f) {
    kernels::Phase phase;
    phase.name = "p" + std::to_string(f);
    phase.first = graph.kernel_count();
    phase.count = pick(random, 1, 8);
    for (int k = 0; k < phase.count; ++k) {
      kernels::Kernel kernel;
      kernel.id = "k" + std::to_string(graph.kernel_count());
      kernel.order = k;
      kernel.stream = pick(random, 0, 2);
      for (int i = pick(random, 0, 2); i > 0; --i) kernel.reads.push_back(random_access(random, buffers));
      for (int i = pick(random, 0, 2); i > 0; --i) kernel.writes.push_back(random_access(random, buffers));
      if (pick(random, 0, 2) == 0) kernel.updates.push_back(random_access(random, buffers));
      graph.kernels.push_back(std::move(kernel));
    }
    graph.phases.push_back(std::move(phase));
  }
  return graph;
}

Schedule random_schedule(const kernels::KernelGraph& graph, std::mt19937_64& random) {
  const int count = pick(random, 1, 3);
  return lowered(graph, random_placement(graph, count, random), devices(count));
}

std::string found_in(const kernels::KernelGraph& graph, const Schedule& schedule, int timings) {
  const auto result = emulate(graph, schedule, {.timings = timings, .passes = 3});
  REQUIRE(result);
  return result->finding ? result->finding->message : "";
}

}  // namespace

TEST_CASE("property: lowered placements are right whatever the timing") {
  std::mt19937_64 random(4);
  for (int i = 0; i < cases(3000); ++i) {
    const auto graph = random_graph(random);
    const Schedule schedule = random_schedule(graph, random);
    INFO("case " << i);
    REQUIRE(check_against(graph, schedule, "s"));
    REQUIRE(found_in(graph, schedule, 20) == "");
  }
}

TEST_CASE("property: hardly a wait and no copy of a lowered placement is one too many") {
  std::mt19937_64 random(5);
  int waits = 0;
  int copies = 0;
  int idle = 0;
  for (int i = 0; i < cases(400); ++i) {
    const auto graph = random_graph(random);
    const Schedule schedule = random_schedule(graph, random);
    for (const Schedule& mutant : without_each_wait(schedule)) {
      ++waits;
      idle += found_in(graph, mutant, 200).empty() ? 1 : 0;
    }
    const auto mutants = without_each_copy(schedule);
    for (std::size_t c = 0; c < mutants.size(); ++c) {
      ++copies;
      INFO("case " << i << ", copy " << c);
      CHECK_FALSE(found_in(graph, mutants[c], 20).empty());
    }
  }
  INFO(waits << " waits, " << copies << " copies, " << idle << " waits that nothing shows");
  // Of two writes that nobody reads before a third one overwrites both, no order shows.
  CHECK(idle <= 0.05 * waits);
}
