// From the conditions of a place to a box of independent symbols.
#include "footprint.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "box_problem.hpp"

namespace tangram::ptx {
namespace {

bool is_huge(const Form& form) { return form.constant() >= kUnbounded || form.constant() <= -kUnbounded; }

}  // namespace

void BoxProblem::add_reason(const Reason& why) {
  if (reasons_.empty() || reasons_.back().text != why.text) reasons_.push_back(why);
}

void BoxProblem::take_constraints(const Domain& domain) {
  for (const Constraint& constraint : domain.constraints()) {
    if (is_huge(constraint.form)) {
      add_reason({{}, "a condition on numbers beyond 62 bits"});
      continue;
    }
    if (constraint.relation == Relation::kNotZero) {
      // Decided at an end of the range it moves the end; elsewhere it leaves a gap.
      const Range range = domain.range(constraint.form);
      const auto reversed = constraint.form.times(-1);
      if (range.low == 0 && reversed) {
        limits_.push_back({reversed->plus(1), false});
      } else if (range.high == 0) {
        limits_.push_back({constraint.form.plus(1), false});
      } else {
        add_reason({{}, "one value in the middle is left out"});
      }
      continue;
    }
    limits_.push_back({constraint.form, constraint.relation == Relation::kZero});
  }
}

/// Where f = d q + r: a form with a multiple of f in it, with the digits in its place.
Form BoxProblem::unfolded(const Form& form, const Split& split) {
  const auto factor = form.multiples_of(split.value.terms());
  if (!factor || *factor == 0) return form;
  const auto digits = split.digits();
  const auto rest = Form::combine(1, form, -*factor, split.value);
  return digits && rest ? Form::combine(1, *rest, *factor, *digits).value_or(form) : form;
}

void BoxProblem::unfold(const Split& split) {
  offset_ = unfolded(offset_, split);
  for (Limit& limit : limits_) limit.form = unfolded(limit.form, split);
  if (split.size % split.divisor == 0) return;
  const auto digits = split.digits();
  if (digits) limits_.push_back({digits->plus(1 - split.size), false});
}

/// Digits and the values that they are digits of do not go together: all become digits.
void BoxProblem::unfold_splits() {
  std::set<int> done;
  bool changed = true;
  while (changed) {
    changed = false;
    find_symbols();
    std::vector<int> splits;
    for (const auto& [symbol, range] : box_) {
      const int split = symbols_.at(symbol).split;
      if (split >= 0 && !done.contains(split)) splits.push_back(split);
    }
    for (const int number : splits) {
      if (!done.insert(number).second) continue;
      unfold(symbols_.split(number));
      changed = true;
    }
  }
}

void BoxProblem::find_symbols() {
  box_.clear();
  const auto add = [&](const Form& form) {
    for (const auto& [symbol, coefficient] : form.terms()) box_[symbol] = symbols_.at(symbol).range;
  };
  add(offset_);
  for (const Limit& limit : limits_) add(limit.form);
}

void BoxProblem::check_independence() {
  for (const auto& [symbol, values] : box_) {
    if (!symbols_.at(symbol).exact) add_reason(symbols_.at(symbol).why);
    for (const auto& [other, other_values] : box_) {
      if (other < symbol && !symbols_.independent(other, symbol)) {
        add_reason({{}, "parts of one index are combined in a way that leaves gaps"});
      }
    }
  }
}

Footprint BoxProblem::solve(std::int64_t width, const Domain& domain) {
  Footprint out;
  for (const Reason& why : domain.reasons()) add_reason(why);
  if (!domain.doubts().empty()) add_reason({{}, "the loop may end before its first iteration is over"});
  take_constraints(domain);
  unfold_splits();
  find_symbols();
  while (tighten() && fix_equalities()) find_symbols();
  check_independence();
  separate(width, out, 0);
  out.reasons = std::move(reasons_);
  return out;
}

Footprint footprint_of(const Form& offset, std::int64_t width, const Domain& domain, const Symbols& symbols) {
  if (domain.is_empty()) return {};
  if (is_huge(offset)) return {{}, false, {{{}, "an offset beyond 62 bits"}}};
  return BoxProblem(offset, symbols).solve(width, domain);
}

}  // namespace tangram::ptx
