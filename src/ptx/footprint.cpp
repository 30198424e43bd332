// From the conditions of a place to a box of independent symbols.
#include "footprint.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "box_problem.hpp"

namespace tangram::ptx {

void BoxProblem::add_reason(const Reason& why) {
  exact_ = false;
  if (reasons_.empty() || reasons_.back().text != why.text) reasons_.push_back(why);
}

void BoxProblem::take_constraints(const Domain& domain) {
  for (const Constraint& constraint : domain.constraints()) {
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
std::optional<Form> BoxProblem::unfolded(const Form& form, const Split& split) const {
  const auto factor = form.multiples_of(split.value.terms());
  if (!factor || *factor == 0) return std::nullopt;
  const auto digits = Form::combine(split.divisor, Form::of(split.quotient), 1, Form::of(split.remainder));
  const auto rest = Form::combine(1, form, -*factor, split.value);
  return digits && rest ? Form::combine(1, *rest, *factor, *digits) : std::nullopt;
}

bool BoxProblem::unfold(const Split& split) {
  bool changed = false;
  if (const auto form = unfolded(offset_, split)) {
    offset_ = *form;
    changed = true;
  }
  for (Limit& limit : limits_) {
    if (const auto form = unfolded(limit.form, split)) {
      limit.form = *form;
      changed = true;
    }
  }
  return changed;
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
      const Split& split = symbols_.split(number);
      (void)unfold(split);
      if (split.size % split.divisor != 0) {
        const auto digits = Form::combine(split.divisor, Form::of(split.quotient), 1, Form::of(split.remainder));
        if (digits) limits_.push_back({digits->plus(1 - split.size), false});
      }
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
  std::set<int> used;
  const auto add = [&](const Form& form) {
    for (const auto& [symbol, coefficient] : form.terms()) used.insert(symbol);
  };
  add(offset_);
  for (const Limit& limit : limits_) add(limit.form);
  for (const int symbol : used) {
    if (!symbols_.at(symbol).exact) add_reason(symbols_.at(symbol).why);
    for (const int other : used) {
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
  out.exact = exact_;
  out.reasons = std::move(reasons_);
  return out;
}

Footprint footprint_of(const Form& offset, std::int64_t width, const Domain& domain, const Symbols& symbols) {
  if (domain.is_empty()) return {};
  return BoxProblem(offset, symbols).solve(width, domain);
}

}  // namespace tangram::ptx
