// Logs of Triton runs, made of the kernels that clang compiled (tests/data/ptx).
#include "tangram/ptx/triton_log.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <variant>

#include "support/catch.hpp"
#include "tangram/ptx/analysis.hpp"

namespace tangram::testing {
namespace {

std::string as_json(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + '"';
}

/// The entry, compiled as kernel `hash`.
std::string compilation(const std::string& hash, const std::string& entry, const std::string& more = "") {
  std::ifstream file(TANGRAM_SOURCE_DIR "/tests/data/ptx/kernels.ptx");
  std::ostringstream ptx;
  ptx << file.rdbuf();
  return fmt::format(
      R"({{"event_type": "compilation", "payload": {{"metadata": {{"hash": "{}", "name": "{}", "num_warps": 2{}}},)"
      R"( "file_content": {{"{}.ttir": "", "{}.ptx": {}}}}}}})"
      "\n",
      hash, entry, more, entry, entry, as_json(ptx.str()));
}

std::string launch(const std::string& hash, const std::string& arguments) {
  return fmt::format(R"({{"event_type": "launch", "name": "k", "grid": [4], "compilation_metadata": {{"hash": "{}"}},)"
                     R"( "extracted_args": {{{}}}}})"
                     "\n",
                     hash, arguments);
}

std::string tensor(const std::string& name, const std::string& pointer, int elements, int offset = 0) {
  return fmt::format(
      R"("{}": {{"type": "tensor", "shape": [{}], "stride": [1], "element_size": 4, "storage_offset": {},)"
      R"( "data_ptr": "{}"}})",
      name, elements, offset, pointer);
}

std::string scalar(const std::string& name, const std::string& value) {
  return fmt::format(R"("{}": {{"type": "int", "value": {}}})", name, value);
}

const ptx::BufferArgument& buffer(const ptx::TritonLog& log, std::size_t at, std::size_t argument) {
  return std::get<ptx::BufferArgument>(log.launches.at(at).launch.arguments.at(argument));
}

/// The codes of all mistakes.
std::string mistakes_of(const std::string& text) {
  const auto log = ptx::read_triton_log(text, "log");
  std::string codes;
  if (log) return codes;
  for (const Diagnostic& mistake : log.error()) codes += fmt::format("{}@{} ", mistake.code, mistake.where.line);
  return codes;
}

const std::string kAdd = tensor("x", "0x1000", 200) + ", " + tensor("y", "0x2000", 200) + ", ";

TEST_CASE("a Triton log: launches have the addresses of their tensors, and no constants") {
  const std::string text = compilation("a", "add", R"x(, "src_constants": {"(2,)": 1, "(5,)": 64})x") +
                           launch("a", kAdd + scalar("one", "1") + ", " + tensor("sum", "0x3400", 200, 256) + ", " +
                                           scalar("n", "200") + ", " + scalar("BLOCK", "64"));
  REQUIRE(ptx::is_triton_log(text));
  const auto log = ptx::read_triton_log(text, "log");
  REQUIRE(log.has_value());
  REQUIRE(log->launches.size() == 1);
  const ptx::RecordedLaunch& recorded = log->launches.front();
  CHECK(recorded.line == 2);
  CHECK(recorded.launch.block == std::array<std::int64_t, 3>{64, 1, 1});
  CHECK(recorded.launch.grid == std::array<std::int64_t, 3>{4, 1, 1});
  REQUIRE(recorded.launch.arguments.size() == 4);
  CHECK(buffer(*log, 0, 0).bytes == 800);
  CHECK(buffer(*log, 0, 2).name == "0x3000");
  CHECK(buffer(*log, 0, 2).offset == 1024);
  const auto ranges = ptx::ranges_of(log->modules.at(0), recorded.launch);
  REQUIRE(ranges.has_value());
  REQUIRE(ranges->ranges.size() == 3);
  CHECK(ranges->ranges[2].bytes == std::vector<ptx::ByteSet>{{1024, 800, {}}});
}

TEST_CASE("a Triton log: tensors that overlap are views of one allocation, in all launches") {
  const std::string text =
      compilation("a", "residual") +
      launch("a", tensor("x", "0x1000", 100) + ", " + tensor("y", "0x2000", 100) + ", " + scalar("n", "100")) +
      launch("a", tensor("x", "0x1100", 200) + ", " + tensor("y", "0x2190", 100) + ", " + scalar("n", "100"));
  const auto log = ptx::read_triton_log(text, "log");
  REQUIRE(log.has_value());
  CHECK(buffer(*log, 0, 0).bytes == 256 + 800);
  CHECK(buffer(*log, 1, 0).name == "0x1000");
  CHECK(buffer(*log, 1, 0).offset == 256);
  CHECK(buffer(*log, 0, 1).bytes == 400);  // the other one begins where it ends
  CHECK(buffer(*log, 1, 1).name == "0x2190");
}

TEST_CASE("a Triton log: pointers behind the arguments are scratch memory") {
  const auto log = ptx::read_triton_log(
      compilation("a", "residual") + launch("a", tensor("x", "0x1000", 100) + ", " + tensor("y", "0x2000", 100)),
      "log");
  REQUIRE(log.has_value());
  CHECK(log->launches.front().launch.arguments.size() == 3);
}

TEST_CASE("a Triton log: mistakes have their lines") {
  const std::string compiled = compilation("a", "add");
  CHECK(mistakes_of(compiled) == "no-launches@0 ");
  CHECK(mistakes_of(compiled + launch("b", "")) == "unknown-kernel@2 ");
  CHECK(mistakes_of(compiled + launch("a", "")) == "argument-count@2 ");
  CHECK(mistakes_of(compiled + launch("a", R"("d": {"type": "TensorDescriptor"})")) == "unknown-argument@2 ");
  CHECK(mistakes_of(compiled + launch("a", tensor("x", "1000", 4))) == "unknown-argument@2 ");
  CHECK(mistakes_of(compilation("a", "add", R"(, "num_ctas": 2)") + launch("a", "")) ==
        "block-cluster@1 unknown-kernel@2 ");
  CHECK(mistakes_of(compiled + launch("a", R"("x": {"data_ptr": "0x10", "shape": [4611686018427387904, 4], )"
                                           R"("stride": [4611686018427387904, 1], "element_size": 4})")) ==
        "unknown-argument@2 ");
  CHECK(mistakes_of(compiled + R"({"event_type": "launch", "grid": [0], "compilation_metadata": {"hash": "a"}})") ==
        "wrong-grid@2 ");
  CHECK(mistakes_of(compilation("a", "add", R"(, "num_warps": 33)")) != "");
  CHECK(mistakes_of(compiled + "{\"event_type\": ") != "");
  CHECK_FALSE(ptx::is_triton_log("digraph {}"));
}

}  // namespace
}  // namespace tangram::testing
