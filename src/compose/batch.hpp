// Programs of one microbatch size on their way from settings to solutions. Goes in: settings, and the time that plans
// must be faster than. Comes out: programs that may hold such a plan, which share what the parallelizers said; solved
// one by one. Nothing here depends on what was searched before, but for that time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cut_points.hpp"
#include "frontier_store.hpp"
#include "pricing.hpp"
#include "screening.hpp"
#include "settings.hpp"
#include "space.hpp"
#include "tangram/chain/program.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/model/model.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::compose {

/// What is wanted of a program: a plan that is faster, or the proof that it has none, within so many labels.
struct Goal {
  std::int64_t incumbent = 0;  ///< ns; only times below it are of interest
  double accepted_gap = 0;
  std::int64_t labels = 0;
  std::int64_t timed_incumbent = INT64_MAX;  ///< ns, of timetables
  bool only_timetables = false;              ///< ProgramLimits::only_timetables
};

/// One program on its way from a setting to its solution.
struct CandidateProgram {
  Setting setting;
  std::vector<ClassShare> shares;
  std::vector<std::vector<OptionPart>> options;
  PricedProgram priced;
  chain::ProgramResult solved;
  std::int64_t compared_with = INT64_MAX;  ///< incumbent that its relaxation was compared with
  bool cut = false;                        ///< none of its plans is faster than that
  bool some_slice_fits = false;            ///< before any of its slices was cut
  std::int64_t slices_cut = 0;
};

/// Settings that differ in model chunks alone, and what their stages may run on: they are screened as one.
struct OptionGroup {
  std::vector<Setting> settings;
  std::vector<ClassShare> shares;
  std::vector<std::vector<OptionPart>> options;
};

struct Batch {
  std::vector<Setting> settings;
  std::shared_ptr<FrontierStore> store;
  std::vector<CandidateProgram> candidates;  ///< whose relaxation is better than the incumbent
  std::vector<Setting> cut;                  ///< the others
  bool some_slice_fits = false;
  bool chunked_left = false;  ///< screening leaves some setting with one of Constraints::later_chunks
  bool screened = false;      ///< all settings were screened
  bool late = false;  ///< the deadline ended its preparation: without candidates, nothing is known of its settings
};

/// Numbers of model chunks.
struct ChunkRange {
  int least = 1;
  int most = 1;
};

inline constexpr std::int64_t kNoTime = INT64_MAX;

/// A chain, and the program that it is of, which others may be of, too.
struct PlacedChain {
  std::shared_ptr<CandidateProgram> candidate;
  std::shared_ptr<FrontierStore> store;
  chain::TimedChain timed;
};

/// Prepares and solves batches. Its functions may run beside each other, on different batches.
class BatchMaker {
 public:
  /// All must outlive it.
  BatchMaker(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
             std::span<const parallelizer::Parallelizer* const> parallelizers, const SearchOptions& options,
             const SignatureTable& signatures);

  [[nodiscard]] const CutPoints& cuts() const { return signatures_.cuts(); }
  /// Of other sizes no program has any stage: the degrees that are demanded do not divide them.
  [[nodiscard]] bool suits_degrees(std::int64_t microbatch) const;

  /// Asks for all that the programs of one size need, and relaxes them. Those are cut first that can not be of
  /// interest however fast the slices are that were not asked for.
  [[nodiscard]] Batch prepare(const std::vector<Setting>& settings, std::int64_t incumbent) const;

  /// The same of a size of which screening leaves none, as is known already.
  [[nodiscard]] Batch screened_before(const std::vector<Setting>& settings) const;

  /// One program with the largest shapes alone, without mixed stages. Slices that take longer than plans of `time` (ns)
  /// allow are not asked for.
  [[nodiscard]] Batch first_look(const Setting& setting, std::int64_t time, std::int64_t incumbent) const;

  /// Fills in candidate.solved, or finds that the goal cuts the whole program.
  void solve(CandidateProgram& candidate, const FrontierStore& store, const Goal& goal) const;

  /// Changes the chain as long as that makes its timetable faster (local_search.hpp, `effort` too).
  void improve(PlacedChain& chain, std::int64_t effort) const;
  /// The chain in another setting of its level (settings_beside), improved among the shapes that it has: with another
  /// number of pipelines these have more or fewer GPUs. Time kNoTime: it can not be run so; without a store: nobody was
  /// asked.
  [[nodiscard]] PlacedChain in_setting(const PlacedChain& chain, const Setting& setting, std::int64_t effort) const;
  /// The same before it is improved. Slices are asked for that are up to `reach` segments longer or shorter than the
  /// chain's stages.
  [[nodiscard]] PlacedChain among_own_shapes(const PlacedChain& chain, const Setting& setting, int reach) const;
  /// The chain in the program of its setting, which has all shapes. Time kNoTime: it is not of those of interest
  /// below `incumbent`.
  [[nodiscard]] PlacedChain among_all_shapes(const PlacedChain& chain, std::int64_t incumbent) const;

  [[nodiscard]] Composition composition_of(const CandidateProgram& candidate, const FrontierStore& store,
                                           const chain::Chain& chain) const;

 private:
  [[nodiscard]] const cluster::IslandLevel& level_of(const Setting& setting) const;
  [[nodiscard]] std::unique_ptr<FrontierStore> store_for(const std::vector<Setting>& settings) const;
  [[nodiscard]] std::vector<ClassShare> shares_of(const Setting& setting) const;
  [[nodiscard]] std::vector<OptionGroup> groups_of(const std::vector<Setting>& settings, std::int64_t incumbent,
                                                   FrontierStore& store) const;
  void add_options(OptionGroup& group, std::int64_t slowest, FrontierStore& store) const;
  void ask_first(std::span<const int> entries, std::int64_t incumbent, FrontierStore& store) const;
  void add_mixed(std::int64_t incumbent, std::vector<OptionGroup>& groups, FrontierStore& store) const;
  void drop_by_time(std::int64_t incumbent, std::vector<OptionGroup>& groups, Batch& batch) const;
  void drop_by_slices(std::int64_t incumbent, std::vector<OptionGroup>& groups, Batch& batch) const;
  [[nodiscard]] std::int64_t slowest_in(const OptionGroup& group, std::int64_t microbatches, int chunks,
                                        std::int64_t incumbent, const FrontierStore& store) const;
  [[nodiscard]] bool is_too_slow(const OptionGroup& group, int chunks, std::int64_t incumbent,
                                 const FrontierStore& store) const;
  [[nodiscard]] bool is_too_small(const OptionGroup& group, int segments, const HeldBlocks& held) const;
  [[nodiscard]] bool is_too_small(const Setting& setting, const OptionGroup& group, ChunkRange chunks,
                                  std::int64_t incumbent, const FrontierStore& store) const;
  [[nodiscard]] std::optional<ChunkRange> later_chunks(const Setting& setting) const;
  void relax_programs(Batch& batch, std::int64_t incumbent) const;
  void relax(CandidateProgram& candidate, std::int64_t incumbent) const;
  void keep_demanded(std::int64_t microbatch, std::vector<ClassShare>& shares) const;
  void cut_spending(const cluster::IslandLevel& level, int replicas, std::vector<ClassShare>& shares) const;
  [[nodiscard]] std::int64_t spend_of_gpu(const cluster::IslandClass& island_class) const;
  void limit_spend(CandidateProgram& candidate) const;
  [[nodiscard]] chain::Refine refine_of(PricedProgram& priced, const FrontierStore& store) const;
  [[nodiscard]] std::optional<chain::TimedChain> fitted(const PlacedChain& chain, PlacedChain& into) const;
  [[nodiscard]] std::int64_t within_reach(std::int64_t incumbent) const;
  [[nodiscard]] bool may_drop(std::int64_t incumbent) const;
  [[nodiscard]] bool may_screen(std::int64_t incumbent) const;
  bool give_up_if_late(Batch& batch) const;

  const model::Model& model_;
  const cluster::IslandHierarchy& hierarchy_;
  std::span<const parallelizer::Parallelizer* const> parallelizers_;
  const SearchOptions& options_;
  const SignatureTable& signatures_;
  ShareTable shares_;
};

/// Whether all cost by the model, so that bounds may count on it (ParallelizerInfo::modelled).
[[nodiscard]] bool are_modelled(std::span<const parallelizer::Parallelizer* const> parallelizers);

}  // namespace tangram::compose
