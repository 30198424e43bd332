// A fleet and a kernel graph as a problem, by hand.
#include "tangram/disaggregate/bind.hpp"

#include <algorithm>
#include <string>

#include "support/catch.hpp"
#include "tangram/base/at.hpp"

using namespace tangram;
using namespace tangram::disaggregate;

namespace {

cluster::GpuType gpu(const std::string& name, std::int64_t gigabytes) {
  cluster::GpuType type;
  type.name = name;
  type.memory = Bytes(gigabytes * 1'000'000'000);
  type.reserved = Bytes(1'000'000'000);
  return type;
}

// [Big x2]==25 GB/s==[Small x4]
cluster::Fleet two_nodes() {
  cluster::Fleet fleet;
  const cluster::Link network{BytesPerSecond(25e9), Nanoseconds(3000)};
  cluster::Node big;
  big.name = "big";
  big.groups.push_back({gpu("Big", 80), 2, 2, {}});
  big.network = network;
  cluster::Node small;
  small.name = "small";
  small.groups.push_back({gpu("Small", 24), 4, 4, {}});
  small.network = network;
  fleet.nodes = {big, small};
  return fleet;
}

kernels::KernelTime time_of(std::int64_t microseconds, double error) {
  return {Nanoseconds(microseconds * 1000), kernels::TimeSource::kMeasured, error};
}

kernels::Kernel kernel(const std::string& id, int layer, kernels::Part part) {
  kernels::Kernel added;
  added.id = added.position = id;
  added.layer = layer;
  added.part = part;
  added.times = {time_of(20, 0.1), time_of(10, 0.05)};
  return added;
}

kernels::Buffer buffer(const std::string& id, std::int64_t bytes, kernels::BufferKind kind, std::int64_t copies) {
  kernels::Buffer added;
  added.id = id;
  added.bytes = Bytes(bytes);
  added.kind = kind;
  added.copies = copies;
  return added;
}

// Two layers of attention (reads its weight and cache, adds to the residual stream) and one kernel behind them.
kernels::KernelGraph two_layers() {
  using kernels::BufferKind;
  kernels::KernelGraph graph;
  graph.gpus = {"Small", "Big"};
  graph.buffers = {buffer("hidden", 1000, BufferKind::kActivation, 1), buffer("weight", 5000, BufferKind::kWeight, 2),
                   buffer("cache", 7000, BufferKind::kKv, 2), buffer("logits", 300, BufferKind::kOutput, 1)};
  kernels::Kernel attention = kernel("attention", 0, kernels::Part::kAttention);
  attention.reads = {{1, 0, 5000, true}, {2, 0, 7000, true}};
  attention.updates = {{0, 0, 1000, true}};
  kernels::Kernel head = kernel("head", -1, kernels::Part::kHead);
  head.reads = {{0, 0, 1000, true}};
  head.writes = {{3, 0, 300, true}};
  head.order = 1;
  graph.kernels = {attention, head};
  kernels::Phase phase;
  phase.name = "decode";
  phase.requests = 16;
  phase.count = 2;
  phase.repeats = {{0, 1, 2}};
  graph.phases = {phase};
  return graph;
}

/// Puts a phase in front, whose one kernel writes so many bytes of the first layer's cache.
void add_prefill(kernels::KernelGraph& graph, std::int64_t bytes) {
  kernels::Kernel writer = kernel("write", -1, kernels::Part::kAttention);
  writer.writes = {{2, 0, bytes, true}};
  for (kernels::Kernel& of_decode : graph.kernels) ++of_decode.order;
  graph.kernels.insert(graph.kernels.begin(), writer);
  kernels::Phase prefill;
  prefill.name = "prefill";
  prefill.requests = 4;
  prefill.count = 1;
  kernels::Phase decode = graph.phases.front();
  decode.first = 1;
  decode.repeats.front().first = 1;
  graph.phases = {prefill, decode};
}

}  // namespace

TEST_CASE("disaggregate bind: types of GPUs are classes, launches are kernels") {
  const auto problem = problem_of(two_nodes(), two_layers(), {});
  REQUIRE(problem);
  REQUIRE(problem->class_count() == 2);
  CHECK(problem->classes[0].name == "Big");
  CHECK(problem->classes[0].count == 2);
  CHECK(problem->classes[1].memory == 23e9);
  CHECK(problem->links(0, 1).bytes_per_second == 25e9);
  CHECK(problem->links(0, 1).seconds_per_message == Approx(8e-6));
  REQUIRE(problem->kernel_count() == 3);
  CHECK(problem->kernels[0].seconds == std::vector<double>{10e-6, 20e-6});  // by class, not as in the graph
  CHECK(problem->kernels[0].error == 0.1);
  CHECK(problem->kernels[1].layer == 1);
  CHECK(problem->kernels[2].layer == 2);  // behind the layers
  REQUIRE(problem->repeats.size() == 1);
  CHECK(problem->repeats[0].times == 2);
  CHECK(requests_of(two_layers()) == 16);
}

TEST_CASE("disaggregate bind: the residual stream is sent, weights and caches stay") {
  const auto problem = problem_of(two_nodes(), two_layers(), {});
  REQUIRE(problem);
  std::vector<std::string> found;
  for (const Buffer& held : problem->buffers) {
    std::string text = held.kind == BufferKind::kMessage  ? "message"
                       : held.kind == BufferKind::kWeight ? "weight"
                                                          : "cache";
    text += ' ' + std::to_string(static_cast<int>(held.bytes)) + " from " + std::to_string(held.writer) + " to";
    for (const int reader : held.readers) text += ' ' + std::to_string(reader);
    found.push_back(text);
  }
  std::ranges::sort(found);
  CHECK(found == std::vector<std::string>{"cache 7000 from -1 to 0", "cache 7000 from -1 to 1",
                                          "message 1000 from 0 to 1", "message 1000 from 1 to 2",
                                          "weight 5000 from -1 to 0", "weight 5000 from -1 to 1"});
}

TEST_CASE("disaggregate bind: a state that is updated in place stays where it is, and prefill sends it") {
  kernels::KernelGraph graph = two_layers();
  kernels::Kernel& scan = graph.kernels.front();
  scan.updates.push_back({2, 0, 7000, true});
  scan.reads.pop_back();
  const auto is_cache = [](const Buffer& held) { return held.kind == BufferKind::kCache; };
  const auto alone = problem_of(two_nodes(), graph, {});
  REQUIRE(alone);
  CHECK(std::ranges::count_if(alone->buffers, is_cache) == 2);
  add_prefill(graph, 7000);
  const auto both = problem_of(two_nodes(), graph, {});
  REQUIRE(both);
  const auto sent = std::ranges::find(both->buffers, 0, &Buffer::writer);
  REQUIRE(sent != both->buffers.end());
  CHECK(sent->bytes == 7000);
  CHECK(sent->readers == std::vector<int>{1});
}

TEST_CASE("disaggregate bind: a GPU type without times is named") {
  kernels::KernelGraph graph = two_layers();
  graph.gpus = {"Small", "Other"};
  const auto problem = problem_of(two_nodes(), graph, {});
  REQUIRE_FALSE(problem);
  CHECK(problem.error().front().code == "gpu-without-times");
  CHECK_THAT(problem.error().front().message, ContainsSubstring("Big"));
}

TEST_CASE("disaggregate bind: a pinned kernel is one with what it reads from") {
  kernels::KernelGraph graph = two_layers();
  graph.kernels[1].pinned = kernels::Pin::kHost;
  const auto problem = problem_of(two_nodes(), graph, {});
  REQUIRE(problem);
  REQUIRE(problem->kernel_count() == 2);
  CHECK(problem->kernels[1].name == "attention[1]+head");
  CHECK(problem->kernels[1].seconds == std::vector<double>{20e-6, 40e-6});
  const auto messages = std::ranges::count(problem->buffers, BufferKind::kMessage, &Buffer::kind);
  CHECK(messages == 1);  // between the layers
  CHECK(problem->repeats.empty());
}

TEST_CASE("disaggregate bind: prefill sends its cache to decode, once for so many passes of it") {
  kernels::KernelGraph graph = two_layers();
  add_prefill(graph, 600);
  Deployment deployment;
  deployment.generated_tokens = 100;
  const auto problem = problem_of(two_nodes(), graph, deployment);
  REQUIRE(problem);
  CHECK(problem->phases[0].passes == Approx(16.0 / 100 / 4));
  const auto sent = std::ranges::find(problem->buffers, 0, &Buffer::writer);
  REQUIRE(sent != problem->buffers.end());
  CHECK(sent->bytes == 600);
  CHECK(sent->readers == std::vector<int>{1});
  CHECK_FALSE(problem->is_within_pass(*sent));
}
