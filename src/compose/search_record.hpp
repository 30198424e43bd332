// What a search has found and proven so far. Goes in: batches, and programs as they are solved. Comes out: the time
// that plans must be faster than, what is wanted of the next program, and the result in the end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "batch.hpp"
#include "fastest_chains.hpp"
#include "shortage.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/model/model.hpp"

namespace tangram::compose {

/// A program whose best plan may be of interest.
struct OpenProgram {
  Setting setting;
  std::int64_t bound = 0;  ///< none of its plans is faster
};

class SearchRecord {
 public:
  /// All must outlive it. `fastest`: chains that are kept to be improved at last.
  SearchRecord(const BatchMaker& batches, const SearchOptions& options, const ProgressCallback& progress,
               std::size_t fastest);

  /// What the search is about, before it begins: space, levels, number of programs.
  void begin(const model::Model& model, const cluster::IslandHierarchy& hierarchy, int programs);

  /// From here on a little better is not of interest. The first look took every better plan it found: the better the
  /// plan, the less is left to prove.
  void accept_gap();

  /// A batch that was asked for.
  void note(const Batch& batch);
  void count_queries(const FrontierStore& store);
  /// A program that was solved: what it found, and what is now known of it.
  void take(CandidateProgram& candidate, const std::shared_ptr<FrontierStore>& store, OpenProgram& program);
  /// Of a program that was searched for timetables alone.
  void take_timed(CandidateProgram& candidate, const std::shared_ptr<FrontierStore>& store);
  /// A plan with other cuts than the space has: nothing is proven of it, and no other plan is measured by it.
  void take_moved(const BatchMaker& cuts, const PlacedChain& moved);
  /// A plan that was made of one found before.
  void take_improved(const PlacedChain& improved);

  /// Adds a program to those that stay open where one of its plans may still be of interest; closes it else.
  void sort_out(const OpenProgram& program, std::vector<OpenProgram>& open);
  /// No plan of the program is faster than its bound, and that was all that was asked of it.
  void close(const OpenProgram& program);
  /// The search ends without more of it: plans above its bound may be missed.
  void leave_open(const OpenProgram& program);

  /// Says how it ended.
  [[nodiscard]] SearchResult conclude(const model::Model& model, const cluster::IslandLevel& finest);

  [[nodiscard]] std::int64_t incumbent() const { return incumbent_; }  ///< ns; only times below it are of interest
  [[nodiscard]] double accepted_gap() const { return accepted_gap_; }
  [[nodiscard]] bool has_plan() const { return !result_.best.empty(); }
  [[nodiscard]] std::int64_t best() const { return result_.best.front().closed_form.value(); }
  [[nodiscard]] std::int64_t labels() const { return result_.statistics.labels; }
  /// None once the deadline has passed.
  [[nodiscard]] std::int64_t labels_left() const {
    return options_.deadline.has_passed() ? 0 : options_.label_budget - labels();
  }
  /// Plans that are faster than the best by more than the gap.
  [[nodiscard]] Goal goal(double gap, std::int64_t labels) const;
  [[nodiscard]] std::vector<PlacedChain> take_fastest() { return fastest_.take(); }
  [[nodiscard]] SearchResult& result() { return result_; }

 private:
  void take_chains(const CandidateProgram& candidate, const FrontierStore& store);
  void keep_timed(Composition composition, std::int64_t time);
  void note_shortage(const FrontierStore& store);
  void report(const std::vector<Setting>& settings);
  void conclude_without_plan(const model::Model& model, const cluster::IslandLevel& finest);
  [[nodiscard]] LevelReport& level_of(const Setting& setting) {
    return result_.levels[static_cast<std::size_t>(setting.level)];
  }

  const BatchMaker& batches_;
  const SearchOptions& options_;
  const ProgressCallback& progress_;
  std::int64_t incumbent_;
  double accepted_gap_ = 0;
  std::int64_t open_bound_ = INT64_MAX;  // of programs that stayed open
  int done_ = 0;
  int total_ = 0;
  Attempts attempts_;
  FastestChains fastest_;
  SearchResult result_;
};

}  // namespace tangram::compose
