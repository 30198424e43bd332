// What a stored search is found by, that it reads back as it was, and what is never stored.
#include <functional>
#include <memory>

#include "leaves.hpp"
#include "search_cache/result_text.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"
#include "tangram/planner/search_cache.hpp"
#include "unit/compose/fixtures.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::planner;
using namespace tangram::compose::fixtures;
using tangram::planner::tests::ChangeOne;
using tangram::planner::tests::Fill;
using tangram::planner::tests::leaves_of;
using tangram::planner::tests::visit_leaves;
using tangram::runtime::Target;
using tangram::testing::ScratchFolder;

namespace {

constexpr Bytes kRoomy(std::int64_t{1} << 30);

std::shared_ptr<cache::CacheFile> open_in(const ScratchFolder& folder, Bytes limit = kRoomy) {
  auto opened = cache::CacheFile::open(folder.file("new/searches.sqlite"), limit);
  REQUIRE(opened);
  return *opened;
}

/// Two classes, on hosts of their own, or the first island of each on the same one.
cluster::IslandHierarchy hierarchy_of(bool shared_host = false) {
  cluster::IslandClass first = class_of(1, 1, 2);
  cluster::IslandClass second = class_of(1, 1, 2);
  second.alias = "other";
  second.device.name = "other";
  second.islands = {2, 3};
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {level_of({first, second})};
  for (int i = 0; i < 4; ++i) {
    cluster::Island island;
    island.id = i;
    island.island_class = i / 2;
    island.members = {{static_cast<std::size_t>(shared_host ? i % 2 : i), 0, 0, 1}};
    hierarchy.levels[0].islands.push_back(island);
  }
  return hierarchy;
}

/// Counts what it is asked, and does as it is told.
class Told final : public ConstantParallelizer {
 public:
  Told() : ConstantParallelizer({{"gpu", {100, 0, 0}}, {"other", {100, 0, 0}}}) {}
  [[nodiscard]] const parallelizer::ParallelizerInfo& info() const override { return told; }
  [[nodiscard]] std::vector<parallelizer::Outcome> solve(std::span<const parallelizer::Query> queries) const override {
    ++asked;
    auto outcomes = ConstantParallelizer::solve(queries);
    if (!fails) return outcomes;
    outcomes.back() = {};
    outcomes.back().status = parallelizer::OutcomeStatus::kFailed;
    outcomes.back().failure = parallelizer::Failure{*fails, "failed", ""};
    return outcomes;
  }

  parallelizer::ParallelizerInfo told{"told", "1", true, true, false, ""};
  std::optional<parallelizer::FailureKind> fails;
  mutable int asked = 0;
};

/// A question with all it is about, so that any part of it can be changed.
struct Asked {
  Target target = Target::kGeneric;
  model::Model model = model_of(2);
  cluster::IslandHierarchy hierarchy = hierarchy_of();
  Told parallelizer;
  SearchOptions options;
  cost::ProfileSet profiles;
  std::string program = "program";

  [[nodiscard]] std::optional<std::string> key() const {
    const parallelizer::Parallelizer* const list[] = {&parallelizer};
    return search_key({target, model, hierarchy, list, options}, program);
  }
  SearchResult search(SearchCache& cache) const {
    const parallelizer::Parallelizer* const list[] = {&parallelizer};
    return cache.search({target, model, hierarchy, list, options}, {});
  }
};

/// Every change of one leaf or length of `part` is another key. How many there were.
template <class Part>
int check_every_change(const std::function<Part&(Asked&)>& part) {
  Asked before;
  const auto key = before.key();
  for (int number = 0;; ++number) {
    Asked asked;
    ChangeOne change(number);
    visit_leaves(part(asked), change);
    if (!change.done()) return number;
    INFO("leaf " << number);
    CHECK(asked.key() != key);
  }
}

/// One change of the question is another key.
void check_change(const std::function<void(Asked&)>& change) {
  Asked before;
  Asked after;
  change(after);
  CHECK(before.key() != after.key());
}

cost::Profile some_profile() {
  cost::Profile profile;
  profile.units.emplace_back().rows.emplace_back();
  profile.collectives.emplace_back().points.emplace_back();
  return profile;
}

}  // namespace

TEST_CASE("search cache: whatever a search reads is in its key") {
  CHECK(check_every_change<model::Model>([](Asked& a) -> model::Model& { return a.model; }) >= 70);
  CHECK(check_every_change<Constraints>([](Asked& a) -> Constraints& { return a.options.constraints; }) > 9);
  CHECK(check_every_change<cluster::GpuType>(
            [](Asked& a) -> cluster::GpuType& { return a.hierarchy.levels[0].classes[1].device; }) > 20);
  CHECK(check_every_change<std::vector<cluster::Link>>(
            [](Asked& a) -> std::vector<cluster::Link>& { return a.hierarchy.levels[0].links; }) == 13);
  CHECK(check_every_change<parallelizer::ParallelizerInfo>(
            [](Asked& a) -> parallelizer::ParallelizerInfo& { return a.parallelizer.told; }) == 6);

  check_change([](Asked& a) { a.program = "another"; });
  check_change([](Asked& a) { a.target = Target::kMegatron; });
  check_change([](Asked& a) { a.options.timed = true; });
  check_change([](Asked& a) { ++a.options.top; });
  check_change([](Asked& a) { ++a.options.label_budget; });
  check_change([](Asked& a) { --a.options.max_replicas; });
  check_change([](Asked& a) { --a.options.max_parts; });
  check_change([](Asked& a) { --a.options.cuts.blocks; });
  check_change([](Asked& a) { --a.options.cuts.segments; });
  check_change([](Asked& a) { a.options.constraints.demands.degrees.emplace(); });
  check_change([](Asked& a) { a.options.spend = SpendLimit{Currency::kGpus, 3}; });
  check_change([](Asked& a) { a.options.incumbent = Nanoseconds(7); });
  check_change([](Asked& a) { a.options.accepted_gap = 0.1; });
  check_change([](Asked& a) { a.options.relaxed_bound = Nanoseconds(7); });
  check_change([](Asked& a) { a.options.profiles = &a.profiles; });

  check_change([](Asked& a) { a.hierarchy.tolerance = 0.2; });
  check_change([](Asked& a) { a.hierarchy.levels.push_back(a.hierarchy.levels[0]); });
  check_change([](Asked& a) { a.hierarchy.levels[0].name = "rack"; });
  check_change([](Asked& a) { a.hierarchy.levels[0].threshold = 1; });
  check_change([](Asked& a) { std::swap(a.hierarchy.levels[0].classes[0], a.hierarchy.levels[0].classes[1]); });
  using Class = cluster::IslandClass;
  const std::vector<std::function<void(Class&)>> of_a_class{
      [](Class& c) { c.id = 7; },
      [](Class& c) { c.alias = "x"; },
      [](Class& c) { ++c.gpus_per_member; },
      [](Class& c) { ++c.members_per_island; },
      [](Class& c) { c.islands.push_back(9); },
      [](Class& c) { c.inside_member.latency += 1_us; },
      [](Class& c) { c.between_members.latency += 1_us; },
      [](Class& c) { c.between_islands.latency += 1_us; },
      [](Class& c) { c.price_per_gpu_hour = Dollars(2); },
  };
  for (const auto& change : of_a_class) {
    check_change([&](Asked& a) { change(a.hierarchy.levels[0].classes[1]); });
  }
  // FlagScale may not use both GPU types of a host.
  check_change([](Asked& a) { a.hierarchy = hierarchy_of(/*shared_host=*/true); });
}

TEST_CASE("search cache: what was measured is in the key") {
  const auto key_with = [](const cost::Profile& profile) {
    Asked asked;
    asked.profiles.add(profile);
    asked.options.profiles = &asked.profiles;
    return asked.key();
  };
  const auto before = key_with(some_profile());
  int number = 0;
  for (bool done = false; !done; ++number) {
    cost::Profile profile = some_profile();
    ChangeOne change(number);
    visit_leaves(profile, change);
    done = !change.done();
    if (!done) CHECK(key_with(profile) != before);
  }
  CHECK(number > 50);
}

TEST_CASE("search cache: names and order of hosts are not in the key") {
  Asked before;
  Asked after;
  for (cluster::Island& island : after.hierarchy.levels[0].islands) {
    island.reason = "another";
    for (cluster::IslandMember& member : island.members) {
      member.node += 5;
      member.first_gpu = 3;
    }
  }
  CHECK(before.key() == after.key());
  CHECK(islands_key(before.hierarchy) == islands_key(after.hierarchy));
}

TEST_CASE("search cache: a result reads back as it was") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SearchResult result;
    Fill fill(seed);
    visit_leaves(result, fill);
    const auto text = write_result(result);
    REQUIRE(text);
    const auto read = read_result(*text);
    REQUIRE(read);
    REQUIRE(leaves_of(*read) == leaves_of(result));
  }
  SearchResult odd;
  odd.space.name = "\xff";
  CHECK_FALSE(write_result(odd));
}

namespace {

/// All places of a JSON value where one value of another kind is put, one at a time.
void with_each_replaced(search_cache::Json& root, search_cache::Json& here, const std::function<void()>& check) {
  const search_cache::Json before = here;
  for (const search_cache::Json& other :
       {search_cache::Json("x"), search_cache::Json(-1.5), search_cache::Json(nullptr), search_cache::Json::object()}) {
    if (other.type() == before.type() || (other.is_number() && before.is_number_float())) continue;
    here = other;
    check();
  }
  here = before;
  if (here.is_array() && !here.empty()) {
    here.push_back(here[0]);
    if (!before.empty() && before.size() > 3) check();  // a struct has its members and no more
    here = before;
    for (search_cache::Json& item : here) with_each_replaced(root, item, check);
  }
}

}  // namespace

TEST_CASE("search cache: what is not what was written is not read") {
  SearchResult result;
  result.best.emplace_back().stages.emplace_back().parts.emplace_back();
  result.parallelizers.emplace_back();
  search_cache::Json json = search_cache::to_json(result);
  REQUIRE(read_result(json.dump()));
  int tried = 0;
  with_each_replaced(json, json, [&] {
    ++tried;
    CHECK_FALSE(read_result(json.dump()));
  });
  CHECK(tried > 150);
  const std::string text = json.dump();
  for (std::size_t length = 0; length < text.size(); ++length) CHECK_FALSE(read_result(text.substr(0, length)));
  CHECK_FALSE(read_result(""));
  CHECK_FALSE(read_result("[1e999]"));

  search_cache::Json beyond = json;
  beyond[0][0][0] = std::int64_t{1} << 40;  // Composition::level is an int
  CHECK_FALSE(read_result(beyond.dump()));
  beyond = json;
  beyond[0][0][7][0][3][0][3][1][10] = 4;  // of four kinds of provenance
  CHECK_FALSE(read_result(beyond.dump()));
}

TEST_CASE("search cache: the second search is looked up, and equal") {
  const ScratchFolder folder;
  Asked asked;
  SearchCache first(open_in(folder), "program");
  const SearchResult made = asked.search(first);
  REQUIRE_FALSE(made.best.empty());
  CHECK(first.misses() == 1);
  CHECK(first.stored() == 1);
  const int questions = asked.parallelizer.asked;
  SearchCache second(open_in(folder), "program");
  const SearchResult looked_up = asked.search(second);
  CHECK(second.hits() == 1);
  CHECK(second.misses() == 0);
  CHECK(asked.parallelizer.asked == questions);
  CHECK(leaves_of(looked_up) == leaves_of(made));
  CHECK(search_cache_contents(*open_in(folder)).hits == 1);

  SearchCache upgraded(open_in(folder), "the next program");
  static_cast<void>(asked.search(upgraded));
  CHECK(upgraded.misses() == 1);
  CHECK(clear_search_cache(*open_in(folder)) == 2);
  CHECK(search_cache_contents(*open_in(folder)).searches == 0);
}

TEST_CASE("search cache: failures, clocks and strangers are not stored") {
  const ScratchFolder folder;
  const auto stored_by = [&](const std::function<void(Told&)>& tell) {
    Asked asked;
    tell(asked.parallelizer);
    SearchCache cache(open_in(folder), "program");
    static_cast<void>(asked.search(cache));
    CHECK(cache.misses() == 1);
    return cache.stored();
  };
  using enum parallelizer::FailureKind;
  for (const auto kind : {kUnavailable, kCrashed, kProtocol, kRefused, kTimedOut, kGivenUp, kNotCached}) {
    CHECK(stored_by([&](Told& told) { told.fails = kind; }) == 0);
  }
  CHECK(stored_by([](Told& told) { told.told.built_in = false; }) == 0);
  CHECK(stored_by([](Told& told) { told.told = {"told", "1", /*deterministic=*/false, false, false, "id"}; }) == 0);
  CHECK(stored_by([](Told& told) { told.told = {"told", "1", true, false, false, "id"}; }) == 1);
  CHECK(stored_by([](Told&) {}) == 1);
  CHECK(clear_search_cache(*open_in(folder), "another") == 0);
  CHECK(clear_search_cache(*open_in(folder), "id") == 1);
  CHECK(search_cache_contents(*open_in(folder)).searches == 1);
}

TEST_CASE("search cache: what the clock ended is not stored, and a deadline is no part of the question") {
  const ScratchFolder folder;
  Asked asked;
  const auto key = asked.key();
  asked.options.deadline = Deadline([] { return true; });
  CHECK(asked.key() == key);
  SearchCache late(open_in(folder), "program");
  CHECK(asked.search(late).is_out_of_budget());
  CHECK(late.stored() == 0);
  asked.options.deadline = Deadline::in(1e6);
  SearchCache early(open_in(folder), "program");
  const SearchResult whole = asked.search(early);
  CHECK(whole.finished);
  CHECK(early.stored() == 1);
  asked.options.deadline = Deadline([] { return true; });
  SearchCache again(open_in(folder), "program");
  CHECK(leaves_of(asked.search(again)) == leaves_of(whole));
  CHECK(again.hits() == 1);
}

TEST_CASE("search cache: what a disk did to a result is a miss") {
  const ScratchFolder folder;
  Asked asked;
  SearchCache first(open_in(folder), "program");
  const SearchResult made = asked.search(first);
  for (const char* damage : {"UPDATE search SET body = replace(body, '1', '2')", "UPDATE search SET sum = 'x'",
                             "UPDATE search SET body = ''", "UPDATE search SET body = substr(body, 1, 40)"}) {
    const auto file = open_in(folder);
    file->use([&](const cache::Database& database) { database.run(damage); });
    SearchCache again(open_in(folder), "program");
    CHECK(leaves_of(asked.search(again)) == leaves_of(made));
    CHECK(again.misses() == 1);
    CHECK(again.stored() == 1);
  }
  CHECK(verify_search_cache(*open_in(folder)).whole == 1);
  open_in(folder)->use([](const cache::Database& database) { database.run("UPDATE search SET body = 'x'"); });
  CHECK(verify_search_cache(*open_in(folder)).damaged == 1);
  CHECK(search_cache_contents(*open_in(folder)).searches == 0);
}

TEST_CASE("search cache: what was used longest ago makes room") {
  const ScratchFolder folder;
  Asked asked;
  const auto search = [&](const std::string& program, Bytes limit) {
    SearchCache cache(open_in(folder, limit), program);
    static_cast<void>(asked.search(cache));
    return cache.hits() == 1;
  };
  for (int i = 0; i < 40; ++i) CHECK_FALSE(search(std::to_string(i), kRoomy));
  CHECK(search("0", kRoomy));  // the oldest is used once more
  const Bytes full = open_in(folder)->used();
  CHECK_FALSE(search("40", Bytes(full.value() - 20'000)));
  CHECK(open_in(folder)->used() < full);
  CHECK(search("0", kRoomy));
  CHECK(search("39", kRoomy));
  CHECK_FALSE(search("1", kRoomy));
}
