// The cache of searches never changes a plan: random small fleets, then the same fleets with hosts of other names in
// another order, planned with the cache and without.
#include "tangram/planner/search_cache.hpp"
#include "support/property.hpp"
#include "support/scratch_folder.hpp"
#include "support/topology.hpp"
#include "tangram/plan/launch_plan.hpp"
#include "tangram/planner/plan.hpp"
#include "unit/planner/inputs.hpp"

using namespace tangram;
using namespace tangram::planner;

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

std::string text_of(Expected<Planned> planned) {
  return planned ? plan::write_plan(planned->plan) : render(planned.error());
}

}  // namespace

TEST_CASE("search cache: fleets of other names have the same plan, byte for byte, looked up or not") {
  const model::Model model = planner::tests::mini_model();
  std::int64_t hits = 0;
  std::int64_t misses = 0;
  testing::holds(25, [&] {
    const testing::ScratchFolder folder;
    SearchCache cache(*cache::CacheFile::open(folder.file("new/searches.sqlite"), Bytes(1 << 30)), "program");
    const std::vector<Host> hosts = random_hosts();
    PlanOptions plain;
    plain.target = *rc::gen::element(runtime::Target::kGeneric, runtime::Target::kFlagscale);
    PlanOptions caching = plain;
    caching.cache = &cache;
    std::vector<std::string> names{"a", "b", "c", "d", "e", "f"};
    for (int i = 0; i < 3; ++i) {
      const cluster::Fleet fleet = fleet_of(hosts, names);
      const std::string expected = text_of(make_plan(fleet, model, plain));
      RC_ASSERT(text_of(make_plan(fleet, model, caching)) == expected);
      const std::int64_t before = cache.misses();
      RC_ASSERT(text_of(make_plan(fleet, model, caching)) == expected);
      RC_ASSERT(cache.misses() == before);  // the same fleet is never searched twice
      names = *rc::gen::suchThat(
          rc::gen::container<std::vector<std::string>>(
              names.size(), rc::gen::map(rc::gen::inRange(0, 1000), [](int n) { return "h" + std::to_string(n); })),
          [](std::vector<std::string> all) {
            std::sort(all.begin(), all.end());
            return std::adjacent_find(all.begin(), all.end()) == all.end();
          });
    }
    hits += cache.hits();
    misses += cache.misses();
  });
  CHECK(hits > 2 * misses);  // other names seldom make another search
}
