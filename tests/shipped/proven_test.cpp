// The searches of shipped fleets of up to 256 GPUs that take many labels: they end with a proof within the usual
// budget. scripts/plan_all looks at all the others.
#include <string>

#include "shipped/fleets_and_models.hpp"
#include "support/catch.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

using namespace tangram;
using namespace tangram::shipped;

namespace {

void check_proven(const std::string& fleet_name, const std::string& model_name) {
  CAPTURE(fleet_name, model_name);
  constexpr double kTolerance = 0.10;  // the command line's default
  const cluster::Fleet fleet = fleet_named(fleet_name);
  const model::Model model = model_named(model_name);
  const cluster::IslandHierarchy hierarchy = cluster::find_islands(fleet, kTolerance);
  const auto enumerator = parallelizer::make_enumerator(model);
  const parallelizer::Parallelizer* const parallelizers[] = {enumerator.get()};
  compose::SearchOptions options;
  options.label_budget = compose::usual_label_budget(fleet.gpu_count());
  const compose::SearchResult result = compose::search(model, hierarchy, parallelizers, options);
  REQUIRE_FALSE(result.best.empty());
  CHECK(result.optimal);
  CHECK(result.statistics.labels <= options.label_budget);
}

}  // namespace

TEST_CASE("the usual budget proves plans up to 256 GPUs: one program needs most of it") {
  check_proven("a100-l40s", "qwen3-235b-a22b");
}

TEST_CASE("the usual budget proves plans up to 256 GPUs: many programs stay open") {
  check_proven("a100-l40s", "gpt-neox-20b");
}
