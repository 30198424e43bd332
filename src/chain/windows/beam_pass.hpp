// Beam searches for chains: they give the exact search an incumbent to cut with, and find something in windows that it
// leaves open. They prove nothing.
#pragma once

#include <cstdint>

#include "../bounds/completion_bound.hpp"
#include "incumbent.hpp"
#include "label_searches.hpp"

namespace tangram::chain {

class BeamPass {
 public:
  BeamPass(const Program& program, const FastestPlans& fastest, LabelSearches& searches, Incumbent& incumbent)
      : program_(program), fastest_(fastest), searches_(searches), incumbent_(incumbent) {}

  /// Whether the tuning asks for any.
  [[nodiscard]] bool is_on() const { return tuning().beam > 0 && tuning().cuts.incumbents; }
  /// Whether the incumbent is far from a bound.
  [[nodiscard]] bool is_worth_it(std::int64_t bound) const;
  /// A narrow beam over a geometric grid of periods.
  void over(std::int64_t lowest, std::int64_t highest);
  /// At one period, for chains whose periods take at least `base`.
  void at(const CompletionBound& bound, std::int64_t period, std::int64_t base, bool mixed);

 private:
  [[nodiscard]] const SolverTuning& tuning() const { return fastest_.tuning(); }
  void climb(std::int64_t lowest, std::int64_t highest, bool mixed);

  const Program& program_;
  const FastestPlans& fastest_;
  LabelSearches& searches_;
  Incumbent& incumbent_;
};

}  // namespace tangram::chain
