// Fleets of many kinds of GPU: the units of every class have their place in a state, or the search says that they do
// not.
#include <algorithm>

#include "fixtures.hpp"
#include "space.hpp"
#include "support/catch.hpp"
#include "tangram/chain/radices.hpp"
#include "tangram/compose/search.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::compose::fixtures;

namespace {

cluster::IslandHierarchy kinds(int classes, int gpus_per_member, int members) {
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels.push_back(level_of(
      std::vector<cluster::IslandClass>(static_cast<std::size_t>(classes), class_of(gpus_per_member, members, 1))));
  return hierarchy;
}

SearchResult searched(const cluster::IslandHierarchy& hierarchy) {
  model::Model model = model_of(8);
  model.job.microbatch = 1;
  model.job.allow.replicas = false;
  model.job.allow.mixed_stages = false;
  const ConstantParallelizer constant({{"gpu", {.block = 300}}});
  const parallelizer::Parallelizer* const asked[] = {&constant};
  SearchOptions options;
  options.label_budget = 2'000;
  return search(model, hierarchy, asked, options);
}

}  // namespace

TEST_CASE("the more classes, the fewer units of each") {
  const auto units_of = [](int classes, int members) {
    const std::vector<ClassShare> shares = share_classes(kinds(classes, 8, members).levels.front(), 1);
    CHECK(std::ranges::all_of(shares, [](const ClassShare& share) { return !share.shapes.empty(); }));
    return shares.back().units;
  };
  // 512 GPUs a class. A word of 63 bits has room for 12 digits of 0 to 32, for 15 of 0 to 16, for 19 of 0 to 8.
  CHECK(units_of(24, 64) == 32);
  CHECK(units_of(36, 64) == 8);
  CHECK(units_of(static_cast<int>(chain::kMostClasses), 64) == 1);
  // 64 GPUs a class, counted one by one where there is room: for 10 digits of 0 to 64.
  CHECK(units_of(20, 8) == 64);
  CHECK(units_of(30, 8) == 16);
}

TEST_CASE("a fleet of many kinds is planned, one of too many is refused") {
  CHECK_FALSE(searched(kinds(40, 8, 64)).best.empty());
  CHECK_FALSE(searched(kinds(static_cast<int>(chain::kMostClasses), 1, 2)).best.empty());
  const SearchResult refused = searched(kinds(static_cast<int>(chain::kMostClasses) + 1, 1, 2));
  CHECK(refused.best.empty());
  REQUIRE(refused.infeasible.size() == 1);
  CHECK(refused.infeasible.front().code == "too-many-classes");
  CHECK(refused.infeasible.front().kind == ErrorKind::kInput);
}
