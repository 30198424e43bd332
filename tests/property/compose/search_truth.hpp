// The minimum over the named space by plain enumeration, and the price of one composition. Shares no code with the
// composer: shapes, splits, links and what crosses islands are worked out here from their definitions
// (src/compose/README.md, space.hpp, pricing.hpp, links.hpp); only the prices of single transfers are the cost model's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "search_case.hpp"
#include "tangram/compose/program.hpp"
#include "tangram/compose/search.hpp"

namespace tangram::tests {

class SearchTruth {
 public:
  explicit SearchTruth(const SearchCase& job) : model_(*job.model), job_(job) {}

  /// nullopt: no plan at all.
  [[nodiscard]] std::optional<std::int64_t> best(const compose::SearchOptions& options = {}) const;

  /// From its parts and their partial plans alone; nullopt: not a plan of the space. Only stages are looked at, with
  /// boundaries worked out anew.
  [[nodiscard]] std::optional<std::int64_t> price(const compose::Composition& composition) const;

  struct Part {
    int island_class = 0;
    int gpus = 0;
    int samples = 0;
  };
  using Parts = std::vector<Part>;

 private:
  [[nodiscard]] const cluster::IslandLevel& level(std::size_t index) const { return job_.hierarchy.levels[index]; }
  [[nodiscard]] std::vector<Parts> options(std::size_t at, int replicas, std::int64_t microbatch,
                                           const compose::SearchOptions& options) const;
  [[nodiscard]] std::optional<Parts> mixed(std::size_t at, Part a, Part b) const;
  [[nodiscard]] std::int64_t one_block(std::size_t at, const Part& part) const;
  [[nodiscard]] std::vector<parallelizer::PartialPlan> plans(std::size_t at, const Part& part, int first,
                                                             int last) const;
  [[nodiscard]] std::vector<compose::Candidate> stages(std::size_t at, int replicas, const Parts& parts, int first,
                                                       int last) const;
  [[nodiscard]] compose::Candidate alone(std::size_t at, int replicas, const Parts& parts, int first, int last,
                                         const parallelizer::PartialPlan& plan) const;
  [[nodiscard]] Nanoseconds crossing(std::size_t at, int replicas, const Parts& parts, int first, int last,
                                     Bytes volume) const;
  [[nodiscard]] compose::Price boundary(std::size_t at, const Parts& from, const Parts& to, int cut,
                                        std::int64_t microbatch) const;
  [[nodiscard]] std::optional<std::int64_t> best_of(std::size_t at, int replicas, std::int64_t microbatch,
                                                    const compose::SearchOptions& options, std::int64_t below) const;

  const model::Model& model_;
  const SearchCase& job_;
};

}  // namespace tangram::tests
