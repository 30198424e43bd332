// Kept searches never change a plan: random small fleets, then the same fleets with hosts of other names in another
// order, planned with what was kept and without.
#include "inputs.hpp"
#include "planning.hpp"
#include "support/property.hpp"
#include "support/scratch_folder.hpp"
#include "support/topology.hpp"
#include "tangram/plan/launch_plan.hpp"

using namespace tangram;
using namespace tangram::app;

namespace {

struct Host {
  std::string type;  // as topology.hpp writes it, with options
  bool new_rack = false;
};

/// The hosts with names of their own, in this order.
cluster::Fleet fleet_of(const std::vector<Host>& hosts, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i > 0) text += hosts[i].new_rack ? "--eth25--" : "==ib100==";
    const std::size_t space = hosts[i].type.find(' ');
    text += "[" + hosts[i].type.substr(0, space) + " " + names[i] +
            (space == std::string::npos ? "" : hosts[i].type.substr(space)) + "]";
  }
  return testing::topology(text);
}

std::vector<Host> random_hosts() {
  const std::vector<std::string> types{"A100-80x4", "V100-32x4", "A100-80x4 compute=0.6", "V100-32x2",
                                       "A100-40x2+V100-32x2"};
  std::vector<Host> hosts;
  const int count = *rc::gen::inRange(1, 6);
  for (int i = 0; i < count; ++i) {
    hosts.push_back({*rc::gen::elementOf(types), *rc::gen::inRange(0, 4) == 0});
  }
  return hosts;
}

std::string text_of(Expected<PlannedResult> planned) {
  return planned ? plan::write_plan(planned->plan) : render(planned.error());
}

}  // namespace

TEST_CASE("kept searches: fleets of other names have the same plan, byte for byte, kept or not") {
  const auto model = load_model(std::string(TANGRAM_SOURCE_DIR) + "/tests/cli/inputs/mini.yaml");
  REQUIRE(model);
  std::int64_t found = 0;
  std::int64_t made = 0;
  testing::holds(25, [&] {
    const testing::ScratchFolder folder;
    compose::KeptSearches kept(*cache::CacheFile::open(folder.file("new/kept.sqlite"), Bytes(1 << 30)), "program");
    const std::vector<Host> hosts = random_hosts();
    PlanningOptions plain;
    plain.target = *rc::gen::element(compose::Target::kGeneric, compose::Target::kFlagscale);
    PlanningOptions keeping = plain;
    keeping.kept = &kept;
    std::vector<std::string> names{"a", "b", "c", "d", "e", "f"};
    for (int i = 0; i < 3; ++i) {
      const cluster::Fleet fleet = fleet_of(hosts, names);
      const std::string expected = text_of(make_plan(fleet, *model, plain));
      RC_ASSERT(text_of(make_plan(fleet, *model, keeping)) == expected);
      const std::int64_t before = kept.made();
      RC_ASSERT(text_of(make_plan(fleet, *model, keeping)) == expected);
      RC_ASSERT(kept.made() == before);  // the same fleet is never searched twice
      names = *rc::gen::suchThat(
          rc::gen::container<std::vector<std::string>>(
              names.size(), rc::gen::map(rc::gen::inRange(0, 1000), [](int n) { return "h" + std::to_string(n); })),
          [](std::vector<std::string> all) {
            std::sort(all.begin(), all.end());
            return std::adjacent_find(all.begin(), all.end()) == all.end();
          });
    }
    found += kept.found();
    made += kept.made();
  });
  CHECK(found > 2 * made);  // other names seldom make another search
}
