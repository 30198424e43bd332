#include <tbb/parallel_for.h>

#include "query_groups.hpp"
#include "search.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {
namespace {

class Enumerator final : public Parallelizer {
 public:
  Enumerator(const model::Model& model, const cost::ProfileSet* profiles) : groups_(model, profiles) {}

  [[nodiscard]] const ParallelizerInfo& info() const override { return info_; }

  [[nodiscard]] std::vector<Outcome> solve(std::span<const Query> queries) const override {
    const Grouping grouping = groups_.of(queries);
    std::vector<Outcome> outcomes(queries.size());
    tbb::parallel_for(std::size_t{0}, queries.size(), [&](std::size_t q) {
      outcomes[q] = search(*grouping.spaces[grouping.space_of[q]], queries[q], info_.name);
    });
    return outcomes;
  }

 private:
  QueryGroups groups_;
  ParallelizerInfo info_{.name = "enumerator", .version = "1", .deterministic = true, .modelled = true};
};

}  // namespace

std::unique_ptr<Parallelizer> make_enumerator(const model::Model& model, const cost::ProfileSet* profiles) {
  return std::make_unique<Enumerator>(model, profiles);
}

}  // namespace tangram::parallelizer
