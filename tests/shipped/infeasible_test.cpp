// Exit 3 over everything that is shipped: no chain of stages fits where the planner says that there is no plan, one
// fits where it finds one, and what its message says adds up.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "shipped/fleets_and_models.hpp"
#include "shipped/memory_reach.hpp"
#include "support/catch.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

using namespace tangram;
using namespace tangram::shipped;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kTolerance = 0.10;  // the command line's default
constexpr int kLargeFleet = 200;     // GPUs; mixtures of classes are only enumerated below

Bytes usable(const cluster::Fleet& fleet) {
  Bytes total{0};
  for (const cluster::Node& node : fleet.nodes) {
    for (const cluster::DeviceGroup& group : node.groups) total += group.device.usable() * group.count;
  }
  return total;
}

/// A class alone, the whole fleet as its weakest GPU, then any mixture; at every level of the hierarchy.
std::optional<ChainFound> any_chain(const model::Model& model, const cluster::Fleet& fleet) {
  const cluster::IslandHierarchy hierarchy = cluster::find_islands(fleet, kTolerance);
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    for (const cluster::IslandClass& island_class : level.classes) {
      if (auto found = uniform_chain(model, island_class)) return found;
    }
    if (auto found = uniform_chain(model, weakest_of(level))) return found;
    if (fleet.gpu_count() > kLargeFleet) continue;
    if (auto found = mixed_chain(model, level)) return found;
  }
  return std::nullopt;
}

/// Mixtures of so many classes are beyond any enumeration: there a plan that is found is the chain that fits.
bool has_many_classes(const cluster::Fleet& fleet) {
  constexpr std::size_t kMany = 12;
  return cluster::find_islands(fleet, kTolerance).levels.front().classes.size() > kMany;
}

compose::SearchResult planned(const model::Model& model, const cluster::Fleet& fleet,
                              const compose::SearchOptions& options) {
  const cluster::IslandHierarchy hierarchy = cluster::find_islands(fleet, kTolerance);
  const auto enumerator = parallelizer::make_enumerator(model);
  const parallelizer::Parallelizer* const parallelizers[] = {enumerator.get()};
  return compose::search(model, hierarchy, parallelizers, options);
}

/// What the hint of an exit 3 asks for: "add at least 44 T4 (...)".
struct Addition {
  int gpus = 0;
  std::string type;
};

Addition addition_of(const Diagnostic& diagnostic) {
  Addition addition;
  std::istringstream words(diagnostic.hint);
  std::string add, at, least;
  words >> add >> at >> least >> addition.gpus >> addition.type;
  INFO(diagnostic.hint);
  REQUIRE(add + " " + at + " " + least == "add at least");
  REQUIRE(addition.gpus > 0);
  return addition;
}

/// The fleet with whole nodes more: copies of the first node that has the type, until there are so many GPUs of it.
cluster::Fleet enlarged(const cluster::Fleet& fleet, const Addition& addition) {
  cluster::Fleet larger = fleet;
  for (const cluster::Node& node : fleet.nodes) {
    const auto group = std::find_if(node.groups.begin(), node.groups.end(),
                                    [&](const cluster::DeviceGroup& g) { return g.device.name == addition.type; });
    if (group == node.groups.end()) continue;
    for (int gpus = 0; gpus < addition.gpus; gpus += group->count) {
      cluster::Node copy = node;
      copy.name = fmt::format("zz-added-{:05}", larger.nodes.size());  // after all others, as names sort the nodes
      larger.nodes.push_back(std::move(copy));
    }
    return larger;
  }
  FAIL("no node has a " << addition.type);
  return larger;
}

/// The state fits with the GPUs of the hint added, and not with one fewer.
void check_hint(const Diagnostic& d, Bytes state, Bytes room) {
  const Addition hint = addition_of(d);
  const auto& types = cluster::catalogue();
  const auto type = std::find_if(types.begin(), types.end(), [&](const auto& t) { return t.name == hint.type; });
  REQUIRE(type != types.end());
  CHECK(room + type->usable() * hint.gpus >= state);
  CHECK(room + type->usable() * (hint.gpus - 1) < state);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// State is everything ZeRO-3 can shard: (p + g + o) bytes a parameter. The message states it, the usable memory of
/// all GPUs, and their difference, in GiB with one digit.
void check_message(const Diagnostic& d, const model::Model& model, const cluster::Fleet& fleet) {
  INFO(d.message);
  const Bytes state = least_state(model, model.block_count());
  const Bytes room = usable(fleet);
  CHECK(d.kind == ErrorKind::kInfeasible);
  CHECK(d.code == "out-of-memory");
  if (state > room) {
    check_hint(d, state, room);
    CHECK(contains(
        d.message,
        fmt::format("{} need {:.1f} GiB, the fleet has {:.1f} GiB of usable GPU memory: {:.1f} GiB short", model.name,
                    state.as_double() / kGiB, room.as_double() / kGiB, (state - room).as_double() / kGiB)));
  } else if (contains(d.message, "state of")) {
    CHECK(contains(d.message, fmt::format("state of {:.1f} GiB fits {:.1f} GiB of usable GPU memory",
                                          state.as_double() / kGiB, room.as_double() / kGiB)));
    CHECK(contains(d.message, fmt::format("{:.1f} GiB are left", (room - state).as_double() / kGiB)));
  } else {
    CHECK(contains(d.message, "not even one block"));
  }
}

}  // namespace

TEST_CASE("shipped: a plan is refused where no chain of stages fits, for the reason given; four of five pairs fit") {
  const std::vector<model::Model> all = models();
  int pairs = 0;
  int fitting = 0;
  for (const cluster::Fleet& fleet : fleets()) {
    for (const model::Model& model : all) {
      INFO(fleet.name << " " << model.name);
      ++pairs;
      if (any_chain(model, fleet)) {
        ++fitting;
        continue;
      }
      const bool many = has_many_classes(fleet);
      compose::SearchOptions options;
      if (many) options.label_budget = 10'000;
      const compose::SearchResult result = planned(model, fleet, options);
      if (many && !result.best.empty()) {
        ++fitting;
        continue;
      }
      CHECK(result.best.empty());
      REQUIRE(result.infeasible.size() == 1);
      check_message(result.infeasible.front(), model, fleet);
    }
  }
  INFO(fitting << " of " << pairs << " pairs fit");
  CHECK(5 * fitting >= 4 * pairs);
}

TEST_CASE("shipped: where a chain fits, tightly, the planner does not refuse") {
  const std::vector<model::Model> all = models();
  for (const cluster::Fleet& fleet : fleets()) {
    if (fleet.gpu_count() > 32) continue;
    const Bytes room = usable(fleet);
    for (const model::Model& model : all) {
      if (least_state(model, model.block_count()).as_double() < 0.4 * room.as_double()) continue;
      if (!any_chain(model, fleet)) continue;
      INFO(fleet.name << " " << model.name);
      compose::SearchOptions options;
      options.label_budget = 10'000;
      const compose::SearchResult result = planned(model, fleet, options);
      CHECK(!result.best.empty());
    }
  }
}

// Activations, buffers and whole blocks come on top of the state: twice the GPUs always were enough for these.
TEST_CASE("shipped: twice the GPUs of the hint make the job feasible") {
  const std::vector<std::pair<const char*, const char*>> cases{{"amp", "qwen3-32b"},
                                                               {"geo-two-zones", "llama-2-70b"},
                                                               {"nvlink-pairs", "llama-3-70b"},
                                                               {"l4-a10g-cloud", "mixtral-8x7b"},
                                                               {"rtx-mixed-hosts", "gemma-2-9b"}};
  for (const auto& [fleet_name, model_name] : cases) {
    INFO(fleet_name << " " << model_name);
    const cluster::Fleet small = fleet_named(fleet_name);
    const model::Model job = model_named(model_name);
    Addition addition = addition_of(planned(job, small, {}).infeasible.front());
    addition.gpus *= 2;
    const cluster::Fleet larger = enlarged(small, addition);
    CHECK(any_chain(job, larger));
    compose::SearchOptions options;
    options.label_budget = 1'000;
    CHECK(!planned(job, larger, options).best.empty());
  }
}
