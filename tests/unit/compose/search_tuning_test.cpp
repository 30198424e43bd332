// Names of what can be switched off.
#include "tangram/compose/search_tuning.hpp"

#include <set>

#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::compose;

TEST_CASE("each switch has a name of its own, is on, and switches off one thing") {
  std::set<std::string_view> names;
  for (const SearchSwitch& each : search_switches()) {
    INFO(each.name);
    CHECK(names.insert(each.name).second);
    SearchTuning usual;
    CHECK(each.of(usual));
    auto tuning = without({}, each.name);
    REQUIRE(tuning);
    CHECK_FALSE(each.of(*tuning));
    CHECK_FALSE(*tuning == usual);
    each.of(*tuning) = true;
    CHECK(*tuning == usual);
  }
}

TEST_CASE("several names are separated by commas, and none leaves the tuning as it is") {
  CHECK(*without({}, "") == SearchTuning{});
  const auto tuning = without({}, "knapsack,presolve");
  REQUIRE(tuning);
  CHECK_FALSE(tuning->solver.cuts.knapsack);
  CHECK_FALSE(tuning->solver.cuts.presolve);
  CHECK(tuning->solver.cuts.capacity);
}

TEST_CASE("an unknown name is told with those that there are") {
  const auto tuning = without({}, "knapsack,presolv");
  REQUIRE_FALSE(tuning);
  const Diagnostic& wrong = tuning.error().front();
  CHECK(wrong.kind == ErrorKind::kUsage);
  CHECK(wrong.message == "the search has nothing called \"presolv\" to be switched off; did you mean \"presolve\"?");
  for (const SearchSwitch& each : search_switches()) CHECK(wrong.hint.find(each.name) != std::string::npos);
}
