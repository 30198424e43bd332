// What a planner could not use is an error, what it should know a warning.
#include "tangram/kernels/check.hpp"

#include <algorithm>

#include "small_graphs.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::kernels;
using namespace tangram::kernels::test;

namespace {

std::vector<std::string> codes_of(const KernelGraph& graph) {
  std::vector<std::string> codes;
  for (const Finding& finding : check(graph)) codes.push_back(finding.code);
  return codes;
}

using Codes = std::vector<std::string>;

}  // namespace

TEST_CASE("a sound graph has no findings") { CHECK(codes_of(repeated_graph()).empty()); }

TEST_CASE("a kernel that waits for a later one closes a cycle") {
  KernelGraph graph = repeated_graph();
  graph.kernels[0].after = {2};
  CHECK(codes_of(graph) == Codes{"cycle"});
  CHECK(check(graph).front().message == "it waits for back, which is launched later");
}

TEST_CASE("a kernel without a time on any GPU is an error, on one of two a warning") {
  KernelGraph graph = repeated_graph();
  graph.kernels[3].times = {std::nullopt};
  CHECK(codes_of(graph) == Codes{"missing-time", "gpu-without-time"});
  graph = repeated_graph();
  graph.gpus.push_back("T4");
  for (Kernel& kernel : graph.kernels) kernel.times.push_back(KernelTime{Nanoseconds(900)});
  graph.kernels[1].times[1].reset();
  CHECK(codes_of(graph) == Codes{"gpu-without-time"});
  CHECK(check(graph).front().about == "T4");
}

TEST_CASE("a buffer is not touched after another took its storage") {
  KernelGraph graph = repeated_graph();
  graph.buffers[0].storage = graph.buffers[1].storage = "pool";
  graph.buffers[1].epoch = 1;  // y is written while x is still read in the next pass
  CHECK(codes_of(graph).front() == "epoch-order");
}

TEST_CASE("copies of a buffer are those of its repeat") {
  KernelGraph graph = repeated_graph();
  graph.buffers[2].copies = 2;
  CHECK(codes_of(graph) == Codes{"copies"});
}

TEST_CASE("kernels that are matched by order alone say nothing of a second GPU") {
  KernelGraph graph = repeated_graph();
  graph.kernels[0].position = "#0";
  CHECK(codes_of(graph).empty());
  graph.gpus.push_back("T4");
  for (Kernel& kernel : graph.kernels) kernel.times.push_back(KernelTime{Nanoseconds(900)});
  CHECK(codes_of(graph) == Codes{"unknown-position"});
}

TEST_CASE("what is known by signature alone is told, by family") {
  KernelGraph graph = repeated_graph();
  graph.kernels[0].evidence = graph.kernels[2].evidence = Evidence::kSignature;
  graph.kernels[0].signature = "gemm";
  graph.kernels[2].signature = "attention";
  REQUIRE(codes_of(graph) == Codes{"signature"});
  CHECK(check(graph).front().message == "what 2 of 4 kernels touch is known by signature (attention, gemm)");
}

TEST_CASE("pins and uncertain times are warned of") {
  KernelGraph graph = repeated_graph();
  graph.kernels[0].pinned = Pin::kCollective;
  for (Kernel& kernel : graph.kernels) kernel.times[0]->error = 0.3;
  const auto findings = check(graph);
  REQUIRE(codes_of(graph) == Codes{"pinned", "uncertain"});
  CHECK(findings[0].message == "1 of 4 kernels stay with their neighbours: collective (first_kernel)");
  CHECK(findings[1].message == "its times are off by 30 % in the mean");
  CHECK(std::ranges::all_of(findings, [](const Finding& f) { return f.severity == Severity::kWarning; }));
}
