// The fastest simulated plan against all plans that differ from it in one thing: none is faster by a thousandth.
// judge_neighbours looks at all shipped fleets and models.
#include "shipped/neighbours.hpp"

#include <string>

#include "shipped/fleets_and_models.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::shipped;

namespace {

void check_pair(const std::string& fleet, const std::string& model) {
  CAPTURE(fleet, model);
  const auto result = neighbour_of_best(fleet_named(fleet), model_named(model));
  REQUIRE(result);
  CAPTURE(result->change, result->tried);
  CHECK(result->tried > 0);
  CHECK(result->gain() < kWorthwhile);
}

}  // namespace

TEST_CASE("neighbours: none of the fastest plan is faster by a thousandth") {
  check_pair("azure-mixed", "gpt-6.7b");
  check_pair("h100-a100-v100", "gpt-13b");
}
