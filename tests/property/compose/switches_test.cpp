// Any bound, cut or pass of a search switched off, against the minimum over the whole named space.
#include "search_case.hpp"
#include "search_truth.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/compose/search.hpp"

using namespace tangram;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;

TEST_CASE("without any one bound, cut or pass the driver's optimum is that of the space") {
  for (const compose::SearchSwitch& each : compose::search_switches()) {
    std::mt19937_64 random(71);
    int feasible = 0;
    for (int i = 0; i < cases(40); ++i) {
      const SearchCase job = random_search_case(random, {.most_gpus = 4, .most_blocks = 3, .additive = i % 2 == 0});
      const std::optional<std::int64_t> truth = SearchTruth(job).best();
      compose::SearchOptions options;
      options.timed = i % 3 == 0;
      each.of(options.tuning) = false;
      if (i % 4 == 0) options.label_budget = options.tuning.programs.ample_labels - 1;  // a wide gap is proven first
      const parallelizer::Parallelizer* const asked[] = {&job.parallelizer};
      const compose::SearchResult result = compose::search(*job.model, job.hierarchy, asked, options);
      INFO("without " << each.name << " case " << i);
      REQUIRE(result.best.empty() == !truth.has_value());
      if (!truth) continue;
      ++feasible;
      REQUIRE(result.optimal);
      REQUIRE(result.best.front().closed_form.value() == *truth);
    }
    CHECK(feasible >= enough(10));
  }
}
