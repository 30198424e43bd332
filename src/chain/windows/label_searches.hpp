// The label searches of a program, whose effort and yield its result counts.
#pragma once

#include <cstdint>

#include "../labels/label_search.hpp"
#include "../periods.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

class LabelSearches {
 public:
  LabelSearches(const LabelGround& ground, const ProgramLimits& limits, ProgramResult& result)
      : ground_(ground), label_budget_(limits.label_budget), result_(result) {}

  /// Whether the deadline has passed.
  [[nodiscard]] bool is_late() const { return ground_.deadline.has_passed(); }
  /// Labels that the exact searches and those of relaxed frontiers may still create.
  [[nodiscard]] std::int64_t labels_left() const { return label_budget_ - result_.labels; }

  [[nodiscard]] LabelAnswer exact(const CompletionBound& bound, const LabelQuery& query);
  /// Nothing is found where the bound rules it out.
  [[nodiscard]] LabelAnswer relaxed(const CompletionBound& bound, const LabelQuery& query);
  /// Is not held against the label budget.
  [[nodiscard]] LabelAnswer beam(const CompletionBound& bound, const LabelQuery& query);

 private:
  [[nodiscard]] LabelAnswer search(const CompletionBound& bound, const LabelQuery& query);

  const LabelGround& ground_;
  const std::int64_t label_budget_;
  ProgramResult& result_;
};

/// For the fastest plans at a period, whatever the time of a chain.
[[nodiscard]] inline LabelQuery relaxed_query_at(std::int64_t period, std::int64_t most_labels) {
  LabelQuery query;
  query.period = period;
  query.cutoff = kAnyTime;
  query.relaxed = true;
  query.label_budget = most_labels;
  return query;
}

}  // namespace tangram::chain
