// The rows of the runtimes.
#include "tangram/runtime/runtime.hpp"

#include <set>
#include <string_view>

#include "support/catch.hpp"

using namespace tangram::runtime;

TEST_CASE("runtime: every row is found by its target and by its name, the generic one first") {
  std::set<std::string_view> names;
  for (const Runtime& row : runtimes()) {
    INFO(row.name);
    CHECK(&runtime_of(row.target) == &row);
    CHECK(target_named(row.name) == row.target);
    CHECK(to_string(row.target) == row.name);
    CHECK(names.insert(row.name).second);
    CHECK_FALSE(row.title.empty());
  }
  CHECK(runtimes().front().target == Target::kGeneric);
  CHECK_FALSE(target_named("megaton"));
}

TEST_CASE("runtime: stages that stop for transfers warm up as the papers have it, or they would never go on") {
  for (const Runtime& row : runtimes()) {
    if (row.semantics.transfers == Transfers::kBlocking) CHECK(row.semantics.warmup == Warmup::kClassic);
    CHECK(row.rules.empty() == (row.target == Target::kGeneric));
  }
}

TEST_CASE("runtime: words of a plan are read back") {
  for (const Transfers transfers : {Transfers::kOverlapped, Transfers::kBlocking}) {
    CHECK(transfers_named(to_string(transfers)) == transfers);
  }
  for (const Warmup warmup : {Warmup::kFree, Warmup::kClassic}) CHECK(warmup_named(to_string(warmup)) == warmup);
  CHECK_FALSE(transfers_named("blocked"));
  CHECK_FALSE(warmup_named(""));
}
