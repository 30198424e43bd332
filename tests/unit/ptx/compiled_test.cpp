// Kernels that clang compiled (tests/data/ptx): their reads and writes, and the bytes of launches, worked out by hand.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "kernels.hpp"
#include "tangram/ptx/launches.hpp"

namespace tangram::testing {
namespace {

std::string text_of(const std::string& name) {
  std::ifstream file(TANGRAM_SOURCE_DIR "/tests/data/ptx/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A letter for each parameter that is accessed, in order: its number and r, w, u, ! for offsets that depend on data.
std::string used(const ptx::Module& module, const std::string& entry) {
  const auto analysis = ptx::analyze(module, entry);
  REQUIRE(analysis.has_value());
  std::string result;
  for (const ptx::ParameterUse& use : analysis->parameters) {
    result += fmt::format("{}{}{}{}{}{}", result.empty() ? "" : " ", use.base.index, use.reads ? "r" : "",
                          use.writes ? "w" : "", use.updates ? "u" : "", use.indirect ? "!" : "");
  }
  return result + (analysis->pinned.empty() ? "" : " pinned");
}

TEST_CASE("compiled kernels read and write what their source says") {
  const ptx::Module module = module_of(text_of("kernels.ptx"));
  CHECK(used(module, "add") == "0r 1r 2w");
  CHECK(used(module, "residual") == "0rw 1r");
  CHECK(used(module, "rms_norm") == "0r 1r 2w");
  CHECK(used(module, "matmul") == "0r 1r 2w");
  CHECK(used(module, "gather") == "0r! 1r 2w");
  CHECK(used(module, "write_kv") == "0r 1w! 2r");
  CHECK(used(module, "grouped") == "0r 1w pinned");
  CHECK(used(module, "histogram") == "0r 1u!");
  CHECK(used(module, "integers") == "0r 1r 2w 3w");
  CHECK(used(module, "floats") == "0r 1r 2w 3w");
}

TEST_CASE("every access of a compiled kernel has one base") {
  const ptx::Module module = module_of(text_of("kernels.ptx"));
  int accesses = 0;
  for (const std::string& entry : module.entries()) {
    const auto analysis = ptx::analyze(module, entry);
    REQUIRE(analysis.has_value());
    for (const ptx::Access& access : analysis->accesses) {
      INFO(entry << " line " << access.place.line);
      CHECK(access.bases.size() == 1);
      ++accesses;
    }
  }
  CHECK(accesses == 32);
}

TEST_CASE("launches of compiled kernels touch what their source says") {
  const ptx::Module module = module_of(text_of("kernels.ptx"));
  const auto launches = ptx::read_launches(text_of("launches.jsonl"), "launches.jsonl");
  REQUIRE(launches.has_value());
  const auto ranges = [&](std::size_t number) {
    const auto found = ptx::ranges_of(module, (*launches)[number].launch);
    REQUIRE(found.has_value());
    return found->ranges;
  };
  const auto add = ranges(0);  // 200 floats
  REQUIRE(add.size() == 3);
  CHECK(std::ranges::all_of(add, &ptx::BufferRange::exact));
  CHECK(add[2].bytes == std::vector<ptx::ByteSet>{{1024, 800, {}}});
  const auto matmul =
      ranges(1);  // a tile of 16 x 16: 16 rows of 64 floats, 16 columns of 64 rows of 48, 16 by 16 of 48
  REQUIRE(matmul.size() == 3);
  CHECK(std::ranges::all_of(matmul, &ptx::BufferRange::exact));
  CHECK(matmul[0].bytes == std::vector<ptx::ByteSet>{{0, 4096, {}}});
  CHECK(matmul[1].bytes == std::vector<ptx::ByteSet>{{0, 64, {{192, 64}}}});
  CHECK(matmul[2].bytes == std::vector<ptx::ByteSet>{{0, 64, {{192, 16}}}});
  const auto histogram = ranges(2);
  REQUIRE(histogram.size() == 2);
  CHECK(histogram[0].exact);
  CHECK_FALSE(histogram[1].exact);
  CHECK(histogram[1].bytes == std::vector<ptx::ByteSet>{{0, 64, {}}});  // keys & 15
}

TEST_CASE("launches are refused with the line that they stand on") {
  const auto mistake = [](const std::string& text) {
    const auto launches = ptx::read_launches(text, "l.jsonl");
    REQUIRE_FALSE(launches.has_value());
    const Diagnostic& first = launches.error().front();
    return fmt::format("{}: {}", first.where.line, first.message);
  };
  CHECK(mistake("\n{\"entry\": \"k\", \"grid\": [1]}\n") == "2: missing key \"block\"");
  CHECK(mistake("{\"entry\": \"k\", \"grid\": [0], \"block\": [1]}") ==
        "1: \"grid\" is one to three whole numbers from 1 on");
  CHECK(mistake("{\"entry\": \"k\", \"grid\": [1], \"block\": [1], \"arguments\": [{\"value\": \"x\"}]}") ==
        "1: \"value\" is a number");
  CHECK(mistake("\n\n") == "0: the file holds no launches");
}

}  // namespace
}  // namespace tangram::testing
