// Labels that the cases of a target share: what they leave open is said, and searched again with what others spared.
#include <algorithm>
#include <cstdint>
#include <random>

#include "search_case.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/compose/target.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;

namespace {

SearchCase random_job(std::mt19937_64& random) {
  return random_search_case(
      random, {.most_classes = 2, .most_gpus = 6, .most_blocks = 12, .least_blocks = 4, .most_batch = 16});
}

SearchResult search_with(const SearchCase& job, std::int64_t labels = 1'000'000) {
  const auto enumerator = parallelizer::make_enumerator(*job.model);
  const parallelizer::Parallelizer* const asked[] = {enumerator.get()};
  SearchOptions options;
  options.label_budget = labels;
  return search_target(runtime::Target::kMegatron, *job.model, job.hierarchy, asked, options);
}

}  // namespace

TEST_CASE("a search for a runtime whose cases run out of labels says so, and its bound still holds") {
  std::mt19937_64 random(43);
  int open = 0;
  int none = 0;
  int through = 0;
  for (int i = 0; i < cases(200); ++i) {
    const SearchCase job = random_job(random);
    const SearchResult whole = search_with(job);
    if (whole.best.empty()) continue;
    INFO("case " << i);
    REQUIRE(whole.optimal);
    const Nanoseconds best = whole.best.front().closed_form;
    // From a share of a label for each case to as many as all need together.
    const std::int64_t labels = 1 + whole.statistics.labels * (i % 8) / 7;
    const SearchResult few = search_with(job, labels);
    CHECK(few.search_bound <= best);
    if (few.best.empty()) {
      CHECK(few.is_out_of_budget());
      ++none;
      continue;
    }
    CHECK(few.best.front().closed_form >= best);
    CHECK(few.optimal == (few.search_bound == few.best.front().closed_form));
    if (few.finished) CHECK(few.best.front().closed_form == best);
    ++(few.finished ? through : open);
  }
  CAPTURE(open, none, through);
  CHECK(open >= enough(10));
  CHECK(through >= enough(20));
}

TEST_CASE("cases whose share of the labels was too small are searched again with what the others spared") {
  std::mt19937_64 random(44);
  int again = 0;
  int through = 0;
  for (int i = 0; i < cases(200); ++i) {
    const SearchCase job = random_job(random);
    const SearchResult whole = search_with(job);
    if (whole.best.empty()) continue;
    // Of so many a case has a quarter at first, and some need more than that.
    const SearchResult some = search_with(job, whole.statistics.labels + 20);
    if (some.statistics.queries <= whole.statistics.queries) continue;
    INFO("case " << i);
    ++again;
    if (!some.finished) continue;
    ++through;
    CHECK(some.best.front().closed_form == whole.best.front().closed_form);
  }
  CAPTURE(again, through);
  CHECK(again >= enough(10));
  CHECK(through >= enough(5));
}
