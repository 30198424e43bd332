// Programs dropped by what their stages hold: never more than is said, whatever shapes they take.
#include "screening.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "search_case.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "tangram/base/at.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/compose/target.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;
using tangram::testing::pick;

namespace {

struct ScreenedProgram {
  std::vector<ClassShare> shares;
  std::vector<std::vector<OptionPart>> options;
  std::vector<double> times;       // [entry]
  std::vector<double> at_a_depth;  // [entry] blocks that memory holds less with every stage behind
  std::int64_t slowest = 0;
};

constexpr int kMostStages = 40;

OptionPart random_part(std::mt19937_64& random, int island_class, ScreenedProgram& program) {
  OptionPart part;
  part.placement = {island_class, at(program.shares, island_class).unit * pick(random, 1, 4)};
  part.entry = static_cast<int>(program.times.size());
  program.times.push_back(pick(random, 0, 9) == 0 ? 0 : pick(random, 10, 400));
  program.at_a_depth.push_back(pick(random, 0, 2) == 0 ? pick(random, 0, 3) : 0);
  return part;
}

ScreenedProgram random_screened_program(std::mt19937_64& random) {
  ScreenedProgram program;
  const int classes = pick(random, 1, 3);
  for (int k = 0; k < classes; ++k) {
    ClassShare& share = program.shares.emplace_back();
    share.unit = pick(random, 1, 2);
    share.units = pick(random, 0, 5);
  }
  const int options = pick(random, 1, 6);
  for (int i = 0; i < options; ++i) {
    const int k = pick(random, 0, classes - 1);
    std::vector<OptionPart>& parts = program.options.emplace_back();
    parts.push_back(random_part(random, k, program));
    if (k + 1 < classes && pick(random, 0, 3) == 0) parts.push_back(random_part(random, k + 1, program));
  }
  program.slowest = pick(random, 5, 1000);
  return program;
}

// By time, and by memory at a depth from 1 on.
double blocks_of(const ScreenedProgram& program, int entry, int depth) {
  const double by_time = blocks_by_time(at(program.times, entry), program.slowest);
  return std::max(0.0, by_time - (depth - 1) * at(program.at_a_depth, entry));
}

double blocks_of(const ScreenedProgram& program, const std::vector<OptionPart>& parts, int depth) {
  double blocks = std::numeric_limits<double>::infinity();
  for (const OptionPart& part : parts) blocks = std::min(blocks, blocks_of(program, part.entry, depth));
  return blocks;
}

// Every pipeline that the units allow, from its last stage on.
double most_by_trying(const ScreenedProgram& program, const std::vector<int>& left, int depth = 1) {
  double most = 0;
  for (const std::vector<OptionPart>& parts : program.options) {
    const double blocks = blocks_of(program, parts, depth);
    std::vector<int> rest = left;
    for (const OptionPart& part : parts) {
      const int k = part.placement.island_class;
      at(rest, k) -= part.placement.gpus / at(program.shares, k).unit;
    }
    if (blocks <= 0 || std::ranges::any_of(rest, [](int units) { return units < 0; })) continue;
    most = std::max(most, blocks + most_by_trying(program, rest, depth + 1));
  }
  return most;
}

void add_heavy_blocks(int count, model::Model& model) {
  model.types.push_back(model.types.front());
  model.types.back().feed_forward.hidden *= 3;
  std::fill_n(model.blocks.begin(), count, static_cast<int>(model.types.size()) - 1);
}

}  // namespace

TEST_CASE("stages hold no more blocks than screening says") {
  std::mt19937_64 random(17);
  int exact = 0;
  int mixed = 0;
  for (int i = 0; i < cases(3000); ++i) {
    const ScreenedProgram program = random_screened_program(random);
    std::vector<int> units;
    for (const ClassShare& share : program.shares) units.push_back(share.units);
    const double truth = most_by_trying(program, units);
    const double said = most_blocks(program.shares, program.options, kMostStages,
                                    [&](int entry, int depth) { return blocks_of(program, entry, depth); });
    INFO("case " << i);
    REQUIRE(said >= truth - 1e-9);
    if (said <= truth + 1e-9 && truth > 0) ++exact;
    if (std::ranges::any_of(program.options, [](const auto& parts) { return parts.size() > 1; })) ++mixed;
  }
  CHECK(exact >= enough(500));
  CHECK(mixed >= enough(500));
}

TEST_CASE("a screened search finds what one that is not finds, and asks for less") {
  std::mt19937_64 random(18);
  int feasible = 0;
  int spared = 0;
  for (int i = 0; i < cases(400); ++i) {
    const SearchCase job = random_search_case(
        random, {.most_classes = 2, .most_gpus = 4, .most_blocks = 8, .least_blocks = 2, .most_batch = 16});
    const auto enumerator = parallelizer::make_enumerator(*job.model);
    const parallelizer::Parallelizer* const asked[] = {enumerator.get()};
    SearchOptions options;
    options.timed = i % 3 == 0;
    const SearchResult screened = search(*job.model, job.hierarchy, asked, options);
    options.tuning.programs.screening = false;
    const SearchResult whole = search(*job.model, job.hierarchy, asked, options);
    INFO("case " << i);
    REQUIRE(screened.best.empty() == whole.best.empty());
    if (whole.best.empty()) continue;
    ++feasible;
    REQUIRE(screened.optimal);
    REQUIRE(screened.best.front().closed_form == whole.best.front().closed_form);
    REQUIRE(screened.search_bound == whole.search_bound);
    if (screened.statistics.queries < whole.statistics.queries) ++spared;
  }
  CHECK(feasible >= enough(300));
  CHECK(spared >= enough(50));
}

TEST_CASE("a screened search for a runtime finds what one that is not finds, under every schedule") {
  std::mt19937_64 random(19);
  int feasible = 0;
  int spared = 0;
  int unlike = 0;
  int interleaved = 0;
  for (int i = 0; i < cases(200); ++i) {
    SearchCase job = random_search_case(
        random, {.most_classes = 2, .most_gpus = 6, .most_blocks = 12, .least_blocks = 4, .most_batch = 16});
    const int heavy = pick(random, 0, 2);  // blocks in front that are unlike the others
    if (heavy > 0) add_heavy_blocks(heavy, *job.model);
    const auto enumerator = parallelizer::make_enumerator(*job.model);
    const parallelizer::Parallelizer* const asked[] = {enumerator.get()};
    SearchOptions options;
    if (i % 2 == 0) options.schedule = runtime::Schedule::kInterleaved;
    const SearchResult screened = search_target(runtime::Target::kMegatron, *job.model, job.hierarchy, asked, options);
    options.tuning.programs.screening = false;
    const SearchResult whole = search_target(runtime::Target::kMegatron, *job.model, job.hierarchy, asked, options);
    INFO("case " << i);
    REQUIRE(screened.best.empty() == whole.best.empty());
    if (whole.best.empty()) continue;
    ++feasible;
    REQUIRE(screened.finished);
    REQUIRE(screened.best.front().closed_form == whole.best.front().closed_form);
    REQUIRE(screened.search_bound == whole.search_bound);
    if (screened.statistics.queries < whole.statistics.queries) ++spared;
    if (heavy > 0) ++unlike;
    if (screened.best.front().chunks > 1) ++interleaved;
  }
  CHECK(feasible >= enough(75));
  CHECK(spared >= enough(25));
  CHECK(unlike >= enough(25));
  CHECK(interleaved >= enough(10));
}

// What is too slow with one chunk need not be with several.
TEST_CASE("stages of several chunks may be slower: the way through the pipeline is shorter") {
  std::mt19937_64 random(20);
  for (int i = 0; i < cases(1000); ++i) {
    const std::int64_t microbatches = pick(random, 2, 20);
    const std::int64_t time = pick(random, 1000, 100'000);
    const std::int64_t latency = pick(random, 0, static_cast<int>(time));
    std::int64_t before = 0;
    for (int chunks = 1; chunks <= 8; ++chunks) {
      const std::int64_t slowest = slowest_stage(time, latency, microbatches, chunks);
      // In passes of one chunk, all but the last of which the slowest stage works on alone.
      CHECK((microbatches * chunks - 1) * slowest + latency <= time * chunks);
      CHECK(microbatches * slowest <= time);
      CHECK(slowest >= before);
      before = slowest;
    }
  }
}
