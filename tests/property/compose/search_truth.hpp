// The minimum over the named space by plain enumeration, and the price of one composition. Shares no code with the
// composer: shapes, splits, links and what crosses islands are worked out here from their definitions
// (src/chain/README.md, space.hpp, pricing.hpp, links.hpp); only the prices of single transfers are the cost model's.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "search_case.hpp"
#include "tangram/chain/program.hpp"
#include "tangram/compose/links.hpp"
#include "tangram/compose/search.hpp"

namespace tangram::tests {

class SearchTruth {
 public:
  /// `cuts`: blocks in front of the places where stages may begin and end, both ends of the model among them; empty:
  /// anywhere.
  explicit SearchTruth(const SearchCase& job, runtime::Semantics semantics = {}, std::vector<int> cuts = {});

  /// nullopt: no plan at all.
  [[nodiscard]] std::optional<std::int64_t> best(const compose::SearchOptions& options = {}) const;

  /// From its parts and their partial plans alone, in each reach that it may have been searched in; empty: not a plan
  /// of the space. Only stages are looked at, with boundaries worked out anew. `put_off`: weight gradients are, of
  /// stages whose memory holds what is in flight so.
  [[nodiscard]] std::set<std::int64_t> prices(const compose::Composition& composition, bool put_off = false) const;

  struct Part {
    int island_class = 0;
    int gpus = 0;
    int samples = 0;
    int run = 0;  ///< GPUs of a member, with those of stages behind it that share it
  };
  using Parts = std::vector<Part>;

 private:
  /// What one program of the search is about.
  struct Space {
    std::size_t at = 0;  ///< level
    int replicas = 1;
    std::int64_t microbatch = 1;
    compose::Reach reach;
    int chunks = 1;
    bool put_off = false;
  };

  [[nodiscard]] const cluster::IslandLevel& level(std::size_t index) const { return job_.hierarchy.levels[index]; }
  [[nodiscard]] std::vector<compose::Reach> reaches(std::size_t at, int replicas) const;
  [[nodiscard]] int share(const Space& space, int k) const;
  [[nodiscard]] static bool with_replicas(const Space& space, int k);
  [[nodiscard]] bool in_one_member(const Space& space, int k) const;
  [[nodiscard]] std::vector<Parts> options(const Space& space, const compose::SearchOptions& options) const;
  [[nodiscard]] std::optional<Parts> mixed(std::size_t at, Part a, Part b) const;
  [[nodiscard]] std::int64_t one_segment(std::size_t at, const Part& part) const;
  [[nodiscard]] bool is_between_cuts(int first, int last) const;
  [[nodiscard]] std::vector<parallelizer::PartialPlan> plans(std::size_t at, const Part& part, int first,
                                                             int last) const;
  [[nodiscard]] std::vector<prune::Candidate> stages(const Space& space, const Parts& parts, int first, int last) const;
  [[nodiscard]] prune::Candidate alone(const Space& space, const Parts& parts, int first, int last,
                                       const parallelizer::PartialPlan& plan) const;
  [[nodiscard]] std::optional<prune::Candidate> halved(const Space& space, const Part& part, int first, int last,
                                                       const parallelizer::PartialPlan& plan,
                                                       prune::Candidate whole) const;
  [[nodiscard]] Nanoseconds crossing(const Space& space, const Parts& parts, int first, int last, Bytes volume) const;
  [[nodiscard]] chain::Price boundary(const Space& space, const Parts& from, const Parts& to, int cut) const;
  [[nodiscard]] chain::Price way(const Space& space, const Parts& from, const Parts& to, bool joined,
                                 Bytes bytes) const;
  /// Where the blocks of the most frequent type in a row begin and end; empty: some of them are elsewhere, too.
  [[nodiscard]] std::optional<std::pair<int, int>> alike() const;
  [[nodiscard]] bool can_be_stage(const Space& space, int first, int last) const;
  void interleave(const Space& space, const std::vector<Parts>& all, chain::Program& program) const;
  [[nodiscard]] std::optional<std::int64_t> form(const Space& space, const compose::Composition& composition,
                                                 std::vector<prune::Candidate> chain, std::vector<chain::Price> hops,
                                                 const std::vector<Parts>& all) const;
  [[nodiscard]] bool can_be_placed(const Space& space, const std::vector<Parts>& all,
                                   const std::vector<int>& options) const;
  [[nodiscard]] std::optional<std::int64_t> best_of(const Space& space, const compose::SearchOptions& options,
                                                    std::int64_t below) const;
  [[nodiscard]] std::optional<std::int64_t> price(const Space& space, const compose::Composition& composition) const;
  [[nodiscard]] int run_at(const compose::Composition& composition, const compose::StageChoice& stage,
                           const compose::PartChoice& part, const Space& space) const;

  const model::Model& model_;
  const SearchCase& job_;
  runtime::Semantics semantics_;
  std::vector<int> cuts_;
};

}  // namespace tangram::tests
