// What is still to pay in front of a label, and what rules it out. Goes in: the completion bound, the floors of both
// ends at the period of a search, and what a state leaves of the program's resources. Comes out: lower bounds on the
// end of any chain that a label is the rear of, and whether what is left can hold the blocks left at all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../bounds/completion_bound.hpp"
#include "../bounds/end_floor.hpp"
#include "cuts.hpp"
#include "label.hpp"
#include "label_query.hpp"
#include "tangram/base/at.hpp"

namespace tangram::chain {

/// What is left of the inventory in a state, and its worth.
struct Budget {
  std::vector<std::int64_t> left;  ///< as in Program::resources
  double refund = 0;
  double supply = 0;
  double forward = 0;   ///< refund of the floor
  double backward = 0;  ///< likewise
};

/// A label that has just got a stage in front.
struct ExtendedLabel {
  const Label& label;
  int option;            ///< that the stage runs on
  int left;              ///< blocks in front of it
  const Budget& before;  ///< what was left before the stage took its units
};

class LabelBounds {
 public:
  LabelBounds(const LabelGround& ground, const CompletionBound& bound, const LabelQuery& query);

  [[nodiscard]] const SolverTuning& tuning() const { return bound_.tuning(); }
  /// Microbatches that the stage in front of a label holds at least.
  [[nodiscard]] std::int64_t depth_before(const Label& label, int left) const {
    return left == program_.blocks ? 1 : label.n + 1;
  }
  /// Greater ones are treated as the last.
  [[nodiscard]] int listed(std::int64_t depth) const {
    return depth < bound_.depths() ? static_cast<int>(depth) : bound_.depths();
  }

  /// Sets the worth of what is left.
  void assess(Budget& budget) const;
  [[nodiscard]] double refund(const std::vector<std::int64_t>& left) const { return bound_.refund(left); }

  /// A lower bound on A + max o, with the refund of the units left.
  [[nodiscard]] double completion(const Label& label, int left, double refund) const {
    return static_cast<double>(label.latency) + bound_.phi(left, depth_before(label, left)) - refund;
  }
  [[nodiscard]] double completion(const ExtendedLabel& extended) const {
    const double refund = extended.before.refund - bound_.unit_price(extended.option);
    return completion(extended.label, extended.left, refund);
  }
  /// Up to here the label's A decides nothing: its synchronisation hides behind backward passes still to come.
  /// `latency` is that of the label, or less.
  [[nodiscard]] std::int64_t hidden_until(const ExtendedLabel& extended, std::int64_t latency) const {
    const double refund = extended.before.backward - backward_.unit_price(extended.option);
    return latency + backward_.rest(extended.left, refund);
  }

  /// `lower`: its completion bound, compared with `limit`; `cutoff` is on A + max o in whole nanoseconds.
  [[nodiscard]] bool rules_out(const ExtendedLabel& extended, double lower, std::int64_t cutoff, double limit) {
    return cuts_.any([&](std::size_t cut) {
      switch (cut) {
        case kByTime: return end_of(extended) > cutoff;
        case kByBound: return lower > limit;
        default: {
          const std::int64_t depth = extended.label.n + 1;
          return !is_coverable(extended.left, depth, extended.option, extended.before);
        }
      }
    });
  }

  /// Whether the units that are left once an option has taken its own can hold the blocks that are left.
  [[nodiscard]] bool is_coverable(int left, std::int64_t depth, int option, const Budget& budget) const {
    return bound_.need(left, depth) <= budget.supply - bound_.unit_weight(option) &&
           bound_.capacity().covers_after(at(program_.options, option), left, depth, budget.left);
  }
  /// What the hop in front of any label and the stages before a stage of so many blocks add at least, by whole stages
  /// on the units that the option leaves. Infinite: they can not be covered.
  [[nodiscard]] double least_ahead(int left, int depth, int option, int blocks, const Budget& budget);

  /// Of labels by time, bound and remainder.
  void report(CutYield& cuts) const;

 private:
  enum Cut : std::uint8_t { kByTime, kByBound, kByRemainder, kCuts };

  /// How late A + max o is at least, because of what the label has to synchronise.
  [[nodiscard]] std::int64_t end_of(const ExtendedLabel& extended) const {
    const double refund = extended.before.forward - forward_.unit_price(extended.option);
    return extended.label.a + extended.label.o + forward_.rest(extended.left, refund);
  }

  const Program& program_;
  const CompletionBound& bound_;
  const EndFloor forward_;
  const EndFloor backward_;
  std::vector<std::int64_t> left_after_;  // units, by an option that is being looked at
  CutList<kCuts> cuts_;
};

}  // namespace tangram::chain
