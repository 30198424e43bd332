// What the parallelizers said, for one microbatch size. Goes in: shapes and sample counts that the programs need. Comes
// out: partial plans by slice signature. Slices that contain an infeasible or hopelessly slow slice are not asked for:
// both properties are inherited by every longer slice.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cut_points.hpp"
#include "interleaving.hpp"
#include "tangram/base/deadline.hpp"
#include "tangram/chain/program.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/cost/put_off.hpp"
#include "tangram/model/slice.hpp"
#include "tangram/parallelizer/tally.hpp"

namespace tangram::compose {

/// The distinct signatures of a model's slices between cuts. Places and lengths are those of segments.
class SignatureTable {
 public:
  explicit SignatureTable(const model::Model& model) : SignatureTable(model, CutPoints(model)) {}
  SignatureTable(const model::Model& model, CutPoints cuts);

  struct Entry {
    model::SliceSignature signature;
    int first = 0;  ///< one slice that has it
    int last = 0;
    [[nodiscard]] int segments() const { return last - first; }
  };
  [[nodiscard]] const CutPoints& cuts() const { return cuts_; }
  [[nodiscard]] int segments() const { return segments_; }
  [[nodiscard]] int size() const { return static_cast<int>(entries_.size()); }
  [[nodiscard]] const Entry& entry(int id) const { return entries_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] int id(int first, int last) const { return ids_[at(first, last)]; }
  [[nodiscard]] const std::vector<int>& ids() const { return ids_; }  ///< [first * (segments + 1) + last], -1 elsewhere
  /// Whether slices of the signature may be stages of so many model chunks.
  [[nodiscard]] bool is_stage(int id, int chunks) const {
    return chunks == 1 || chunked_.has(cuts_.block(entry(id).first), cuts_.block(entry(id).last), chunks);
  }
  [[nodiscard]] const ChunkedSlices& chunked() const { return chunked_; }
  /// The most segments in a row that are alike, and how many of them slices of a signature have at most.
  [[nodiscard]] int alike() const { return alike_; }
  [[nodiscard]] int alike_in(int id) const { return alike_in_[static_cast<std::size_t>(id)]; }
  /// Ids by number of segments, ascending; equal numbers together.
  [[nodiscard]] const std::vector<std::vector<int>>& by_length() const { return by_length_; }

 private:
  void count_alike(const std::vector<int>& kinds);  // of segments
  [[nodiscard]] std::size_t at(int first, int last) const {
    return static_cast<std::size_t>(first) * static_cast<std::size_t>(segments_ + 1) + static_cast<std::size_t>(last);
  }
  CutPoints cuts_;
  ChunkedSlices chunked_;
  int segments_ = 0;
  std::vector<Entry> entries_;
  std::vector<int> ids_;
  std::vector<std::vector<int>> by_length_;
  int alike_ = 0;
  std::vector<int> alike_in_;
};

/// A partial plan without its texts: there are millions of plans, of few authors.
struct StoredPlan {
  cost::StageCost cost;
  cost::Strategy strategy;
  std::int32_t author = 0;   ///< which parallelizer
  std::int32_t opaque = -1;  ///< which of the texts to be returned verbatim; -1: none
  std::int64_t n_max = 0;
  // Where weight gradients may be put off:
  Nanoseconds weight_gradient = Nanoseconds(0);  ///< of the backward pass
  std::int64_t n_max_of_put_off = 0;             ///< as n_max, with these put off; 0: memory does not hold one
};

/// Partial plans of one shape and sample count, by signature id.
struct ShapePlans {
  cluster::DeviceShape shape;
  int samples = 0;
  std::vector<std::vector<StoredPlan>> plans;
  /// Of `plans`; of slices that were not asked for, those of shorter ones that make them up.
  std::vector<std::vector<prune::Candidate>> staircases;
  double one_segment = 0;  ///< ns, fastest in the middle of the model, however slow; 0: none fits. Splits samples
  std::vector<double> least_seconds;  ///< GPU-seconds of a block and sample at least, by block type
  /// [block of the model] What those in front of it take at least, as parts of the whole with the head.
  std::vector<std::int64_t> work_before;
  std::vector<std::uint8_t> dead;     ///< infeasible, unsupported, or slower than the cut for every strategy
  std::int64_t slowest = 0;           ///< ns: partial plans with a larger T are of no interest
  std::vector<std::uint8_t> asked;    ///< [segments] whether slices of so many were asked for
  std::vector<std::uint8_t> stepped;  ///< [segments] whether their staircases are those of plans
  /// By signature, as far as its staircase: what no plan's forward pass is below, nor, weight gradients put off,
  /// forward pass and input gradient together; ns. Only of stores whose plans may put them off.
  std::vector<std::int64_t> least_forward;
  std::vector<std::int64_t> least_passage;
  std::map<cost::Degrees, cost::PutOffUnits> put_off;  ///< of the plans' degrees, in the same stores
  Bytes shortage;  ///< smallest memory shortage of one segment that did not fit; 0: none
};

struct StoreLimits {
  std::int64_t max_in_flight = 1;
  model::Techniques allow;
  parallelizer::Demands demands;
  const cost::ProfileSet* profiles = nullptr;
  int blocks_per_round = 8;  ///< ProgramTuning::blocks_per_round
  Deadline deadline = {};
  bool put_off = false;  ///< Constraints::put_off
};

class FrontierStore {
 public:
  FrontierStore(const model::Model& model, const SignatureTable& signatures,
                std::span<const parallelizer::Parallelizer* const> parallelizers, const StoreLimits& limits)
      : model_(model),
        signatures_(signatures),
        parallelizers_(parallelizers),
        limits_(limits),
        tallies_(parallelizers.size()) {}

  /// Index of the entry, added if new. `slowest`: partial plans with a larger T (ns) are of no interest; the largest of
  /// all calls before ask() counts.
  int want(const cluster::DeviceShape& shape, int samples, std::int64_t slowest);
  /// Asks every parallelizer for the entries' slices of one segment, as far as they were not asked for: `one_segment`
  /// of the entries is then known, their staircases are not.
  void ask_segments(std::span<const int> entries);
  /// Asks every parallelizer for the entries' slices of so many segments, ascending, as far as they were not asked for;
  /// plans are kept in the order of parallelizers. One that fails takes nothing away from the others. Where not all
  /// lengths are asked for, those of 1 to 4 segments must be. `wanted`: [entry][signature] of the slices that are of
  /// use; empty: all are. Once the deadline has passed nothing is asked, and what the store holds is of no use.
  void ask(std::span<const int> entries, std::span<const int> lengths,
           const std::vector<std::vector<char>>& wanted = {});

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool may_put_off() const { return limits_.put_off; }
  [[nodiscard]] const ShapePlans& at(int index) const { return entries_[static_cast<std::size_t>(index)]; }
  /// One of the entry's plans with its texts.
  [[nodiscard]] parallelizer::PartialPlan partial_plan(const StoredPlan& plan) const;
  [[nodiscard]] std::int64_t queries() const { return queries_; }
  [[nodiscard]] std::int64_t partial_plans() const { return partial_plans_; }
  [[nodiscard]] Bytes shortage() const;  ///< smallest of all entries; 0: none
  /// What each parallelizer did; `info` is left to the caller.
  [[nodiscard]] const std::vector<parallelizer::Tally>& tallies() const { return tallies_; }

 private:
  struct Round;

  [[nodiscard]] Round make_round(std::span<const int> entries, std::span<const int> lengths,
                                 const std::vector<std::vector<char>>& wanted);
  void ask_rounds(std::span<const int> entries, std::span<const int> lengths,
                  const std::vector<std::vector<char>>& wanted);
  void fill_staircases(ShapePlans& entry) const;
  [[nodiscard]] std::vector<prune::Candidate> staircase_of_unknown(const ShapePlans& entry,
                                                                   const SignatureTable::Entry& slice) const;
  [[nodiscard]] std::pair<std::size_t, std::size_t> parts_of_unknown(const ShapePlans& entry,
                                                                     const SignatureTable::Entry& slice) const;
  void put_off(ShapePlans& entry, int signature) const;
  void put_off(ShapePlans& entry, const SignatureTable::Entry& slice, StoredPlan& plan) const;
  [[nodiscard]] bool is_worth_asking(const ShapePlans& entry, int signature) const;
  [[nodiscard]] bool is_typical_segment(int signature) const;
  void record(ShapePlans& entry, int signature, parallelizer::Outcome& outcome, int author);
  void add_plans(ShapePlans& entry, int signature, std::vector<parallelizer::PartialPlan>& plans, int author);

  const model::Model& model_;
  const SignatureTable& signatures_;
  std::span<const parallelizer::Parallelizer* const> parallelizers_;
  StoreLimits limits_;
  std::vector<ShapePlans> entries_;
  std::vector<std::string> opaque_;
  std::int64_t queries_ = 0;
  std::int64_t partial_plans_ = 0;
  std::vector<parallelizer::Tally> tallies_;
};

}  // namespace tangram::compose
