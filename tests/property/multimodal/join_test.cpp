// Selections of modules on toy fleets against every plan, and no plan below the bound.
#include "tangram/multimodal/join.hpp"

#include <algorithm>
#include <array>

#include "every_selection.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/multimodal/closed_form.hpp"
#include "tangram/multimodal/share.hpp"
#include "tangram/multimodal/work_bound.hpp"
#include "toy_fleet.hpp"

using namespace tangram;
using namespace tangram::multimodal;
using namespace tangram::tests;
using tangram::testing::cases;

namespace {

void keep_less(std::int64_t& best, const std::optional<std::int64_t>& time) {
  if (time) best = std::min(best, *time);
}

// The best of each mode, each found and, where there is a search, tried one by one.
struct Modes {
  std::int64_t homogeneous = INT64_MAX;
  std::int64_t disjoint = INT64_MAX;
  std::int64_t colocated = INT64_MAX;
  std::int64_t periods = 0;

  [[nodiscard]] std::int64_t best() const { return std::min({homogeneous, disjoint, colocated}); }
};

Modes modes_of(const ToyFleet& fleet) {
  Modes modes;
  std::int64_t incumbent = INT64_MAX;
  for (const ToyBatch& batch : toy_batches()) {
    keep_less(modes.homogeneous, fastest_homogeneous(fleet, batch));
    const JoinProblem disjoint = disjoint_problem(fleet, batch);
    const bool runs = !disjoint.language.empty() &&
                      std::ranges::none_of(disjoint.encoders, [](const Encoder& e) { return e.choices.empty(); });
    if (runs) {
      REQUIRE(check(disjoint).has_value());
      const auto truth = fastest_of_all(disjoint);
      const JoinResult found = join(disjoint);
      REQUIRE(found.finished);
      REQUIRE(found.best.has_value() == truth.has_value());
      if (truth) REQUIRE(found.time == *truth);
      if (truth) REQUIRE(closed_form(graph_of(disjoint, *found.best))->time == *truth);
      keep_less(modes.disjoint, truth);
      const JoinResult faster = join(disjoint, incumbent);
      REQUIRE(faster.best.has_value() == (truth && *truth < incumbent));
      REQUIRE(faster.bound == std::min(incumbent, truth.value_or(INT64_MAX)));
      incumbent = std::min(incumbent, faster.time);
      modes.periods += found.periods;
    }
    const ShareProblem colocated = colocated_problem(fleet, batch);
    if (colocated.language.empty()) continue;
    REQUIRE(check(colocated).has_value());
    const auto truth = fastest_of_all(colocated);
    const auto found = share(colocated);
    REQUIRE(found.has_value() == truth.has_value());
    if (truth) REQUIRE(found->time == *truth);
    keep_less(modes.colocated, truth);
  }
  return modes;
}

}  // namespace

TEST_CASE("selections on toy fleets are those of every plan, all three modes win, and no plan is below the bound") {
  std::mt19937_64 random(5);
  std::array<int, 3> wins{};
  std::vector<double> gaps;
  const int fleets = cases(60);
  for (int i = 0; i < fleets; ++i) {
    const ToyFleet fleet = random_fleet(random, i % 3 == 2 ? 2 : 1);
    INFO("fleet " << i);
    const Modes modes = modes_of(fleet);
    if (modes.best() == INT64_MAX) continue;
    const double bound = work_bound(work_of(fleet)).time;
    REQUIRE(bound > 0);
    REQUIRE(static_cast<double>(modes.best()) >= bound);
    gaps.push_back(static_cast<double>(modes.best()) / bound - 1);
    const std::array<std::int64_t, 3> times{modes.homogeneous, modes.disjoint, modes.colocated};
    ++wins[static_cast<std::size_t>(std::ranges::min_element(times) - times.begin())];
  }
  std::ranges::sort(gaps);
  INFO("wins: homogeneous " << wins[0] << ", disjoint " << wins[1] << ", colocated " << wins[2]
                            << "; above the bound: " << gaps.front() << ", median " << gaps[gaps.size() / 2]);
  constexpr int kFewFleets = 30;
  if (fleets >= kFewFleets) CHECK(*std::ranges::min_element(wins) >= 1);
  CHECK(static_cast<int>(gaps.size()) >= fleets * 9 / 10);
}
