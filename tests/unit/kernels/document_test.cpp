// The file of a kernel graph: what is written reads back, and what is wrong is told with its place.
#include "tangram/kernels/document.hpp"

#include <nlohmann/json.hpp>

#include "small_graphs.hpp"
#include "support/catch.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/kernels/unroll.hpp"

using namespace tangram;
using namespace tangram::kernels;
using namespace tangram::kernels::test;

namespace {

std::string text_of(const KernelGraph& graph) { return io::write_canonical(kernel_graph_json(graph)); }

/// A graph with something in every field.
KernelGraph full_graph() {
  KernelGraph graph = repeated_graph();
  graph.sources.push_back({"model", "llama.yaml", "00ff"});
  graph.gpus.push_back("A100-80GB-SXM");
  graph.phases.front().requests = 32;
  graph.phases.front().tokens = 64;
  graph.phases.front().context = 2048;
  graph.buffers[0].storage = "7";
  graph.buffers[0].epoch = 2;
  graph.buffers[0].formats = {"", "marlin"};
  Kernel& kernel = graph.kernels[1];
  kernel.part = Part::kAttention;
  kernel.shape = {32, 6144, 4096};
  kernel.stream = 20;
  kernel.updates = {{1, 2, 3, false}};
  kernel.after = {0};
  kernel.evidence = Evidence::kTrace;
  kernel.pinned = Pin::kCollective;
  kernel.launch = Launch{{48, 2, 1}, {128, 1, 1}, Bytes(49152)};
  for (Kernel& k : graph.kernels) {
    k.times.resize(2);
    k.names.resize(2);
  }
  kernel.times[1] = KernelTime{Nanoseconds(76'103), TimeSource::kInterpolated, 0.081};
  return graph;
}

std::string first_mistake(const std::string& text) {
  const auto graph = read_kernel_graph(text, "graph.json");
  REQUIRE_FALSE(graph);
  return render(graph.error().front());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  return text.replace(place, from.size(), to);
}

}  // namespace

TEST_CASE("kernel graphs read back as they were written") {
  for (const KernelGraph& graph : {full_graph(), repeated_graph(), unrolled(repeated_graph())}) {
    const std::string text = text_of(graph);
    const auto read = read_kernel_graph(text, "graph.json");
    REQUIRE(read);
    CHECK(*read == graph);
    CHECK(text_of(*read) == text);
  }
}

TEST_CASE("mistakes in kernel graphs are told with their place") {
  const std::string text = text_of(full_graph());
  CHECK_THAT(first_mistake(replaced(text, R"("buffer": "weight")", R"("buffer": "wieght")")),
             ContainsSubstring("there is no buffer \"wieght\"") && ContainsSubstring("did you mean \"weight\"?") &&
                 ContainsSubstring("graph.json:"));
  CHECK_THAT(first_mistake(replaced(text, R"("bytes": 16})", R"("bytes": 17})")),
             ContainsSubstring("bytes 0 to 17 of \"weight\", which has 16"));
  CHECK_THAT(first_mistake(replaced(text, R"("id": "back")", R"("id": "layer")")),
             ContainsSubstring("two kernels are called \"layer\""));
  CHECK_THAT(first_mistake(replaced(text, R"("order": 3)", R"("order": 1)")),
             ContainsSubstring("kernel \"last\" stands after \"back\", and was launched before it"));
  CHECK_THAT(first_mistake(replaced(text, R"("count": 4)", R"("count": 3)")),
             ContainsSubstring("the phases hold 3 of 4 kernels"));
  CHECK_THAT(first_mistake(replaced(text, R"("first": 1, "kernels": 2)", R"("first": 1, "kernels": 4)")),
             ContainsSubstring("kernels 1 to 5 are not within the phase"));
  CHECK_THAT(first_mistake(replaced(text, R"("after": ["first"])", R"("after": ["fist"])")),
             ContainsSubstring("there is no kernel \"fist\"") && ContainsSubstring("did you mean \"first\"?"));
  CHECK_THAT(first_mistake(replaced(text, R"("us": 76.103)", R"("us": -1)")),
             ContainsSubstring("\"us\" must be at least"));
  CHECK_THAT(first_mistake(replaced(text, R"("grid": [48, 2, 1])", R"("grid": [48, 2])")),
             ContainsSubstring("\"grid\" must be three integers"));
  CHECK_THAT(first_mistake(replaced(text, "tangram.kernels/1", "tangram.cluster/1")),
             ContainsSubstring("this is a fleet, not a kernel graph"));
}

TEST_CASE("unrolled graphs have every pass, each on its own copies") {
  const KernelGraph graph = unrolled(repeated_graph());
  REQUIRE(graph.kernel_count() == 8);  // first, three times (layer, back), last
  CHECK(graph.kernels[3].id == "layer[1]");
  CHECK(graph.kernels[3].layer == 1);
  CHECK(graph.kernels[7].order == 7);
  REQUIRE(graph.buffers.size() == 5);  // x, y, three weights
  CHECK(graph.buffers[4].id == "weight[2]");
  CHECK(graph.kernels[5].reads[1].buffer == 4);  // layer[2] reads weight[2]
  CHECK(graph.kernels[5].reads[0].buffer == 0);  // and x, as all do
  CHECK(unrolled(repeated_graph(), 2).kernel_count() == 6);
  CHECK(unrolled(graph) == graph);
}
