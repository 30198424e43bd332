#include "small_model.hpp"

#include <string>
#include <utility>

#include "support/catch.hpp"
#include "tangram/io/file.hpp"
#include "tangram/kernels/launched_graph.hpp"
#include "tangram/ptx/launches.hpp"
#include "tangram/ptx/parse.hpp"

namespace tangram::testing {

namespace {

std::string text_of(const std::string& name) {
  auto text = io::read_file(TANGRAM_SOURCE_DIR "/tests/data/dispatch/" + name);
  REQUIRE(text);
  return *std::move(text);
}

}  // namespace

SmallModel small_model(int streams) {
  const auto module = ptx::parse(text_of("model.ptx"), "model.ptx");
  REQUIRE(module);
  const std::string lines = text_of("launches.jsonl");
  const auto launches = ptx::read_launches(lines, "launches.jsonl");
  REQUIRE(launches);
  const auto graph =
      kernels::graph_of_launches({&*module, 1}, *launches, "launches.jsonl", {}, kernels::KernelCosts({}));
  REQUIRE(graph);
  auto code = dispatch::code_of(*graph, *module, lines, "launches.jsonl");
  REQUIRE(code);
  SmallModel model{*graph, *std::move(code)};
  for (std::size_t k = 0; k < model.graph.kernels.size(); ++k) {
    model.graph.kernels[k].stream = static_cast<int>(k) % streams;
  }
  return model;
}

}  // namespace tangram::testing
