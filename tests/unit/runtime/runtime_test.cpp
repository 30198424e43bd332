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
    CHECK(row.in_words.empty() == row.rules.empty());
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

TEST_CASE("runtime: without a rule the others remain, and without the rules on transfers nothing stops") {
  std::set<std::string_view> names;
  for (const Runtime& row : runtimes()) {
    for (const Rule rule : rules_of(row)) {
      INFO(row.name << ' ' << to_string(rule));
      names.insert(to_string(rule));
      const Runtime relaxed = row.without(rule);
      CHECK(rules_of(relaxed).size() + 1 == rules_of(row).size());
      CHECK_FALSE(relaxed.has(rule));
      const bool is_free = rule == Rule::kSchedule;
      const bool is_overlapped = is_free || rule == Rule::kBlockingTransfers;
      CHECK((relaxed.semantics.transfers == Transfers::kOverlapped) == is_overlapped);
      CHECK((relaxed.semantics.warmup == Warmup::kFree) == is_free);
      CHECK(relaxed.interleaved.has_value() == row.interleaved.has_value());
    }
  }
  CHECK(names.size() == 20);
  CHECK(rules_of(runtimes().front()).empty());
}
