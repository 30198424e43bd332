// Compass search against a minimum that is known, and at a limit.
#include "tangram/base/compass_search.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "support/catch.hpp"

using namespace tangram;

namespace {

constexpr std::array kSteps{0.5, 0.1, 0.01, 0.001};

/// Least at 3 and 0.2, seen in logarithms.
double bowl(const std::vector<double>& x) { return std::abs(std::log(x[0] / 3)) + std::abs(std::log(x[1] / 0.2)); }

}  // namespace

TEST_CASE("compass search: ends within a smallest step of the minimum") {
  const std::vector<double> found = compass_search({1, 1}, kSteps, bowl);
  CHECK(found[0] == Approx(3).epsilon(1e-3));
  CHECK(found[1] == Approx(0.2).epsilon(1e-3));
}

TEST_CASE("compass search: an infinite loss is a limit") {
  const std::vector<double> found = compass_search({1, 1}, kSteps, [](const std::vector<double>& x) {
    return x[0] > 2 ? std::numeric_limits<double>::infinity() : bowl(x);
  });
  CHECK(found[0] <= 2);
  CHECK(found[0] == Approx(2).epsilon(2e-3));
  CHECK(found[1] == Approx(0.2).epsilon(1e-3));
}

TEST_CASE("compass search: a start that nothing improves is the answer") {
  CHECK(compass_search({3, 0.2}, kSteps, bowl) == std::vector<double>{3, 0.2});
  CHECK(compass_search({5}, kSteps, [](const std::vector<double>&) { return 1.0; }) == std::vector<double>{5});
}
