// A target's search, once more with finer cuts where stages of whole segments fit nowhere.
#include <utility>

#include "cut_points.hpp"
#include "tangram/compose/target.hpp"
#include "target_cases.hpp"

namespace tangram::compose {

namespace {

// Whether there may be plans all the same, with stages that end elsewhere.
bool lacks_cuts(const model::Model& model, const SearchOptions& options, const SearchResult& found) {
  const bool has_none = found.best.empty() && !found.is_out_of_budget();
  return has_none && options.incumbent == Nanoseconds::max() && cut_spacing(model, options.cuts) > 1;
}

}  // namespace

SearchResult search_target(Target target, const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                           std::span<const parallelizer::Parallelizer* const> parallelizers, SearchOptions options,
                           const ProgressCallback& progress) {
  SearchResult found = search_cases(target, model, hierarchy, parallelizers, options, progress);
  while (lacks_cuts(model, options, found)) {
    options.cuts.segments *= 2;
    SearchResult finer = search_cases(target, model, hierarchy, parallelizers, options, progress);
    finer.add_effort_of(found);
    found = std::move(finer);
  }
  return found;
}

}  // namespace tangram::compose
