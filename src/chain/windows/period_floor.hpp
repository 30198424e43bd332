// Up to where no chain of interest has its period. A search of relaxed frontiers that finds nothing rules out all
// periods up to its own; where that takes many labels, a wide beam and searches for feasibility alone say which periods
// hold any chain.
#pragma once

#include <cstdint>
#include <vector>

#include "../bounds/completion_bound.hpp"
#include "incumbent.hpp"
#include "label_searches.hpp"

namespace tangram::chain {

class PeriodFloor {
 public:
  PeriodFloor(const Program& program, const ProgramLimits& limits, const FastestPlans& fastest, LabelSearches& searches,
              const Incumbent& incumbent)
      : program_(program), limits_(limits), fastest_(fastest), searches_(searches), incumbent_(incumbent) {}

  /// No chain of interest has a period up to here.
  [[nodiscard]] std::int64_t ruled_out() const { return ruled_out_; }
  void start_at(std::int64_t lowest) { ruled_out_ = lowest - 1; }
  /// With a small budget no step would get far.
  [[nodiscard]] bool is_worth_raising() const;

  /// Rules out periods in growing steps, as long as that takes few labels.
  void raise(const std::vector<double>& multipliers);
  /// Whether raise_to_any_chain is on and was not called yet.
  [[nodiscard]] bool may_probe() const {
    return !probed_ && limits_.tuning.cuts.feasible_periods && is_worth_raising();
  }
  /// Rules out the periods below those that a beam search finds chains for.
  void raise_to_any_chain(const std::vector<double>& multipliers);

 private:
  enum class Question : std::uint8_t { kChainInTime, kAnyChain };

  [[nodiscard]] const SolverTuning& tuning() const { return limits_.tuning; }
  [[nodiscard]] std::int64_t shortest_found(const std::vector<double>& multipliers);
  [[nodiscard]] bool holds_some_chain(std::int64_t period, const std::vector<double>& multipliers);
  [[nodiscard]] LabelQuery query_at(std::int64_t period, Question question) const;
  bool rules_out(std::int64_t period, const std::vector<double>& multipliers, Question question);

  const Program& program_;
  const ProgramLimits& limits_;
  const FastestPlans& fastest_;
  LabelSearches& searches_;
  const Incumbent& incumbent_;
  std::int64_t ruled_out_ = 0;
  bool probed_ = false;
};

}  // namespace tangram::chain
