// Two GPUs run other kernels, and other numbers of them: what is matched is the operators.
#include "tangram/kernels/alignment.hpp"

#include "small_graphs.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::kernels;
using namespace tangram::kernels::test;

namespace {

/// norm, then a product of two kernels (split and reduce), then an addition.
KernelGraph on_a100() {
  KernelGraph graph =
      graph_of({buffer("x", 8), buffer("y", 8), buffer("z", 8)},
               {kernel("norm", {{0, 0, 8}}, {{1, 0, 8}}), kernel("split", {{1, 0, 8}}, {{2, 0, 8, false}}),
                kernel("reduce", {{2, 0, 8}}, {{2, 0, 8}}), kernel("add", {{2, 0, 8}}, {{0, 0, 8}})},
               {"A100-80GB-SXM"});
  graph.kernels[0].position = "aten::rms_norm#0";
  graph.kernels[1].position = graph.kernels[2].position = "aten::linear/aten::mm#0";
  graph.kernels[3].position = "aten::add#0";
  graph.kernels[3].after = {1, 2};
  return graph;
}

/// The product in one kernel, of another name.
KernelGraph on_l40s() {
  KernelGraph graph = graph_of({}, {kernel("norm", {}, {}), kernel("cutlass_wmma", {}, {}), kernel("add", {}, {})});
  graph.kernels[0].position = "aten::rms_norm#0";
  graph.kernels[1].position = "aten::linear/aten::mm#0";
  graph.kernels[2].position = "aten::add#0";
  for (Kernel& kernel : graph.kernels) kernel.times[0]->time = Nanoseconds(2000);
  return graph;
}

std::string refusal(const KernelGraph& graph, const KernelGraph& recording) {
  const auto both = aligned(graph, recording);
  REQUIRE_FALSE(both);
  CHECK(both.error().front().code == "not-aligned");
  return both.error().front().message;
}

}  // namespace

TEST_CASE("kernels of two GPUs are matched by operator, whatever they are called") {
  const auto both = aligned(on_a100(), on_l40s());
  REQUIRE(both);
  CHECK(both->gpus == std::vector<std::string>{"A100-80GB-SXM", "L40S"});
  REQUIRE(both->kernel_count() == 3);
  const Kernel& product = both->kernels[1];
  CHECK(product.times[0]->time == Nanoseconds(3000));  // both of its kernels
  CHECK(product.times[1]->time == Nanoseconds(2000));
  CHECK(product.names == std::vector<std::string>{"split_kernel + reduce_kernel", "cutlass_wmma_kernel"});
  CHECK(product.reads.size() == 2);   // y, and z between its parts
  CHECK(product.writes.size() == 2);  // z, surely and not
  CHECK(both->kernels[2].after == std::vector<int>{1});
  CHECK(both->phases.front().count == 3);
}

TEST_CASE("the first operator that differs is named, and nothing is aligned") {
  KernelGraph other = on_l40s();
  other.kernels[1].position = "aten::linear/aten::bmm#0";
  CHECK(refusal(on_a100(), other) ==
        "operator 1 is aten::linear/aten::mm#0 (split_kernel) in the graph and aten::linear/aten::bmm#0 "
        "(cutlass_wmma_kernel) in the recording");
  other = on_l40s();
  other.kernels.pop_back();
  other.phases.front().count = 2;
  CHECK(refusal(on_a100(), other) ==
        "operator 2 is aten::add#0 (add_kernel) in the graph and missing in the recording");
}

TEST_CASE("a third of the kernels called otherwise does not matter, a shift by one does") {
  std::vector<Kernel> kernels;
  for (int k = 0; k < 90; ++k) kernels.push_back(kernel("k" + std::to_string(k), {}, {}));
  const KernelGraph graph = graph_of({}, kernels, {"A100-80GB-SXM"});
  for (std::size_t k = 0; k < kernels.size(); k += 3) kernels[k].names = {"other"};
  const auto both = aligned(graph, graph_of({}, kernels));
  REQUIRE(both);
  CHECK(both->kernel_count() == 90);
  kernels.erase(kernels.begin() + 40);
  CHECK(refusal(graph, graph_of({}, kernels)) ==
        "operator 40 is position/k40 (k40_kernel) in the graph and position/k41 (k41_kernel) in the recording");
}

TEST_CASE("recordings without operators are matched by order and name, on the same GPU") {
  KernelGraph tables = on_a100();
  for (Kernel& kernel : tables.kernels) {
    kernel.position = "#" + std::to_string(kernel.order);
    kernel.times[0]->time = Nanoseconds(700);
  }
  const auto fresh = aligned(on_a100(), tables);
  REQUIRE(fresh);
  CHECK(fresh->gpus.size() == 1);
  CHECK(fresh->kernels[1].times[0]->time == Nanoseconds(700));
  CHECK(fresh->kernels[1].position == "aten::linear/aten::mm#0");
  KernelGraph elsewhere = tables;
  elsewhere.gpus = {"L40S"};
  CHECK_THAT(refusal(on_a100(), elsewhere), ContainsSubstring("the recording knows no operators"));
  tables.kernels[2].names = {"scale_kernel"};
  CHECK(refusal(on_a100(), tables) ==
        "kernel 2 is \"reduce_kernel\" in the graph and \"scale_kernel\" in the recording");
}
