#include <tbb/parallel_for.h>

#include "query_groups.hpp"
#include "search.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {
namespace {

class Enumerator final : public Parallelizer {
 public:
  Enumerator(const model::Model& model, const cost::ProfileSet* profiles) : model_(model), profiles_(profiles) {}

  [[nodiscard]] const ParallelizerInfo& info() const override { return info_; }

  [[nodiscard]] std::vector<Outcome> solve(std::span<const Query> queries) const override {
    const Grouping grouping = group_queries(model_, profiles_, queries);
    std::vector<Outcome> outcomes(queries.size());
    tbb::parallel_for(std::size_t{0}, queries.size(), [&](std::size_t q) {
      outcomes[q] = search(grouping.groups[grouping.group_of[q]].space, queries[q], info_.name);
    });
    return outcomes;
  }

 private:
  const model::Model& model_;
  const cost::ProfileSet* profiles_;
  ParallelizerInfo info_{.name = "enumerator", .version = "1", .deterministic = true, .modelled = true};
};

}  // namespace

std::unique_ptr<Parallelizer> make_enumerator(const model::Model& model, const cost::ProfileSet* profiles) {
  return std::make_unique<Enumerator>(model, profiles);
}

}  // namespace tangram::parallelizer
