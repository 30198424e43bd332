// Programs that ran out of their share of labels. Goes in: these, and what the search has found. Comes out: the record,
// with each of them solved, or proven to hold nothing of interest, or left open where labels ran out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "batch.hpp"
#include "search_record.hpp"

namespace tangram::compose {

/// The smallest bound first. Where labels are scarce, first as if only much faster plans were of interest: that says at
/// little cost how far the best plan can be from the best of all. Then to the end, if nothing stayed open and no less
/// is left than this took.
class OpenPrograms {
 public:
  OpenPrograms(const BatchMaker& batches, const SearchOptions& options, SearchRecord& record)
      : batches_(batches), options_(options), record_(record) {}

  void finish(std::vector<OpenProgram> programs);

 private:
  [[nodiscard]] bool looks_for_wide_gaps() const;
  /// Whether it is worth going on after that.
  [[nodiscard]] bool look_for_wide_gaps(std::vector<OpenProgram>& programs);
  void solve_again(std::vector<OpenProgram>& programs, double gap);
  void solve_in_order(std::vector<OpenProgram>& programs, double gap, std::vector<std::int64_t>& shares);
  void take(Batch& batch, OpenProgram& program, const Goal& goal);
  [[nodiscard]] Batch solve(const OpenProgram& program, const Goal& goal) const;
  [[nodiscard]] bool has_ample_labels() const;
  [[nodiscard]] std::size_t at_once() const;

  const BatchMaker& batches_;
  const SearchOptions& options_;
  SearchRecord& record_;
};

}  // namespace tangram::compose
