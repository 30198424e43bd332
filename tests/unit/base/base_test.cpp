#include "support/catch.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/base/deadline.hpp"
#include "tangram/base/diagnostic.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/base/dtype.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/base/units.hpp"

using namespace tangram;
using namespace tangram::literals;

TEST_CASE("units: times and sizes round up") {
  // 3 bytes at 2 GB/s take 1.5 ns, and a transfer is never shorter than it takes.
  CHECK(transfer_time(3_B, 2_GBps) == 2_ns);
  CHECK(ceil_to_nanoseconds(1e-9) == 1_ns);
  CHECK(ceil_to_nanoseconds(-1) == 0_ns);
  CHECK(ceil_to_nanoseconds(1e30) == Nanoseconds::max());
  CHECK(1_GiB == 1024_MiB);
  CHECK(2_us + 500_ns == Nanoseconds(2500));
}

TEST_CASE("deadline: what one copy saw pass has passed for all") {
  const Deadline never;
  CHECK_FALSE(never.has_passed());
  CHECK_FALSE(never.is_missed());
  CHECK(never.seconds() == 0);

  int asked = 0;
  const Deadline first([&asked] { return ++asked > 2; }, 5);
  const Deadline second = first;  // NOLINT(performance-unnecessary-copy-initialization): the copy is what is tested
  CHECK_FALSE(first.has_passed());
  CHECK_FALSE(second.has_passed());
  CHECK_FALSE(first.is_missed());
  CHECK(first.missed_seconds() == 0);
  CHECK(second.has_passed());
  CHECK(first.is_missed());
  CHECK(first.missed_seconds() == 5);
  CHECK(first.has_passed());
  CHECK(asked == 3);

  CHECK(Deadline::in(1e-9).has_passed());
  CHECK_FALSE(Deadline::in(1e300).has_passed());
  CHECK(Deadline::in(604'800).seconds() == 604'800);
}

TEST_CASE("dtype: names and sizes agree") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    CHECK(parse_dtype(to_string(type)) == type);
  }
  CHECK_FALSE(parse_dtype("int4"));
  CHECK(bytes_of(DType::kFp8) == 1);
  for (const auto& [name, type] : kPrecisions) CHECK(parse_dtype(name) == type);
  CHECK(kPrecisions.size() == kDTypeCount);
}

TEST_CASE("digest: XXH3-128 of known inputs") {
  // Published test vector of XXH3_128bits for the empty input.
  CHECK(digest("") == "99aa06d3014798d86001c324468d497f");
  CHECK(digest("a") != digest("b"));
}

TEST_CASE("spelling: the nearest word, if near enough") {
  const std::vector<std::string> words{"bandwidth_gb_s", "latency_us", "count"};
  CHECK(closest("bandwith_gb_s", words) == "bandwidth_gb_s");
  CHECK(closest("cuont", words) == "count");
  CHECK_FALSE(closest("price", words));
  CHECK(edit_distance("abc", "acb") == 1);
}

TEST_CASE("diagnostic: place, line, caret, hint") {
  Diagnostic d;
  d.where = {"cluster.json", 3, 5};
  d.message = "unknown key \"cuont\"";
  d.hint = "did you mean \"count\"?";
  d.source_line = "    \"cuont\": 4";
  d.length = 7;
  CHECK(render(d) ==
        "cluster.json:3:5: error: unknown key \"cuont\"\n"
        "      \"cuont\": 4\n"
        "      ^~~~~~~\n"
        "  hint: did you mean \"count\"?\n");
  CHECK(render(Diagnostics(22, d)).ends_with("... and 2 more errors\n"));
}

TEST_CASE("assert: a broken invariant names its place") {
  CHECK_THROWS_WITH(TANGRAM_ASSERT(1 == 2), ContainsSubstring("broken invariant: 1 == 2"));
}
