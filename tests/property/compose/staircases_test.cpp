// Slices that were not asked for: nothing that parallelizers would say of them is below what their parts say.
#include "staircases.hpp"

#include <algorithm>
#include <vector>

#include "frontier_store.hpp"
#include "property/random_queries.hpp"

using namespace tangram;
using namespace tangram::parallelizer::random_queries;
using tangram::testing::enough;
using tangram::testing::holds;

namespace {

/// T of the first step that holds so many; INT64_MAX: none does.
std::int64_t time_at(const std::vector<prune::Candidate>& steps, std::int64_t in_flight) {
  const auto step = std::ranges::find_if(steps, [&](const prune::Candidate& c) { return c.n_max >= in_flight; });
  return step == steps.end() ? INT64_MAX : step->T;
}

}  // namespace

TEST_CASE("property staircases: what is asked for is never below its parts") {
  int with_ends = 0;
  int unknown = 0;
  int exact = 0;
  int bound_by_memory = 0;
  holds(1500, [&] {
    const model::Model model = random_model();
    const parallelizer::Query query = random_query(model);
    const auto enumerator = parallelizer::make_enumerator(model);
    const auto layerwise = parallelizer::make_layerwise(model);
    const std::vector<const parallelizer::Parallelizer*> both{enumerator.get(), layerwise.get()};
    const auto parallelizers = std::span(both).subspan(*rc::gen::element<std::size_t>(0, 0, 1));
    const compose::SignatureTable signatures(model);
    compose::StoreLimits limits;
    limits.max_in_flight = *rc::gen::element(1, 2, 5, 20);
    limits.allow = query.allow;
    if (query.samples % 3 == 0) limits.demands.tp_at_ends = 1 + query.samples % 2;
    with_ends += limits.demands.tp_at_ends > 0 ? 1 : 0;
    const std::int64_t slowest = *rc::gen::element<std::int64_t>(50'000'000, 500'000'000, INT64_MAX / 4);

    std::vector<int> few{1, 2, 3, 4};
    if (*rc::gen::element(true, false)) few.push_back(8);
    std::erase_if(few, [&](int length) { return length > model.block_count(); });
    std::vector<int> all;
    for (int length = 1; length <= model.block_count(); ++length) all.push_back(length);

    compose::FrontierStore store(model, signatures, parallelizers, limits);
    const std::vector<int> entries{store.want(query.shape, query.samples, slowest)};
    store.ask(entries, few);
    const std::vector<std::vector<prune::Candidate>> from_parts = store.at(0).staircases;
    store.ask(entries, all);
    for (int s = 0; s < signatures.size(); ++s) {
      const auto at = static_cast<std::size_t>(s);
      const std::vector<prune::Candidate>& whole = store.at(0).staircases[at];
      if (signatures.entry(s).last - signatures.entry(s).first <= 4) {
        RC_ASSERT(from_parts[at].size() == whole.size());
        continue;
      }
      ++unknown;
      for (std::int64_t n = 1; n <= limits.max_in_flight; ++n) {
        const std::int64_t least = time_at(from_parts[at], n);
        const std::int64_t truth = time_at(whole, n);
        RC_ASSERT(least <= truth);
        if (truth == INT64_MAX) continue;
        if (truth - least <= 40) ++exact;
        if (n > 1 && truth > time_at(whole, 1)) ++bound_by_memory;
      }
    }
  });
  CHECK(with_ends >= enough(100));
  CHECK(unknown >= enough(500));
  CHECK(exact >= enough(500));
  CHECK(bound_by_memory >= enough(100));
}
