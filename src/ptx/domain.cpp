#include "domain.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "reasons.hpp"

namespace tangram::ptx {
namespace {

Predicate joined(Condition::Kind kind, const Predicate& a, const Predicate& b) {
  return std::make_shared<const Condition>(Condition{kind, false, {}, a, b});
}

}  // namespace

Predicate constant(bool value) {
  return std::make_shared<const Condition>(Condition{Condition::Kind::kConstant, value, {}, nullptr, nullptr});
}

Predicate compare(Constraint constraint) {
  return std::make_shared<const Condition>(
      Condition{Condition::Kind::kCompare, false, std::move(constraint), nullptr, nullptr});
}

Predicate negation(const Predicate& predicate) {
  return predicate == nullptr ? nullptr : joined(Condition::Kind::kNot, predicate, nullptr);
}
Predicate both(const Predicate& a, const Predicate& b) { return joined(Condition::Kind::kAnd, a, b); }
Predicate either(const Predicate& a, const Predicate& b) { return joined(Condition::Kind::kOr, a, b); }

void Domain::assume(const Predicate& predicate, bool holds, const Reason& where) {
  if (const auto known = decided(predicate)) {
    empty_ = empty_ || *known != holds;
    return;
  }
  if (predicate == nullptr) return make_uncertain(where);
  switch (predicate->kind) {
    case Condition::Kind::kConstant: return;
    case Condition::Kind::kNot: return assume(predicate->left, !holds, where);
    case Condition::Kind::kAnd:
    case Condition::Kind::kOr:
      if ((predicate->kind == Condition::Kind::kAnd) != holds) {  // one of both: which is not known
        if (const auto left = decided(predicate->left); left && *left != holds) {
          return assume(predicate->right, holds, where);
        }
        if (const auto right = decided(predicate->right); right && *right != holds) {
          return assume(predicate->left, holds, where);
        }
        return make_uncertain(where);
      }
      assume(predicate->left, holds, where);
      return assume(predicate->right, holds, where);
    case Condition::Kind::kCompare: break;
  }
  Constraint constraint = predicate->constraint;
  if (!holds) {
    switch (constraint.relation) {
      case Relation::kAtMostZero: {
        const auto reversed = constraint.form.times(-1);
        if (!reversed) return make_uncertain(where);
        constraint.form = reversed->plus(1);
        break;
      }
      case Relation::kZero: constraint.relation = Relation::kNotZero; break;
      case Relation::kNotZero: constraint.relation = Relation::kZero; break;
    }
  }
  assume(constraint);
}

void Domain::assume(const Constraint& constraint) {
  if (constraint.relation == Relation::kAtMostZero) std::erase(doubts_, constraint.form);
  if (const auto known = decided(constraint)) {
    empty_ = empty_ || !*known;
    return;
  }
  if (std::ranges::find(constraints_, constraint) != constraints_.end()) return;
  constraints_.push_back(constraint);
}

/// The least of the bound by the box and of what each constraint g <= 0 gives: f <= f - l g for l >= 0, with l such
/// that a symbol drops out.
Wide Domain::highest(const Form& form, int depth) const {
  Wide best = symbols_->range(form).high;
  if (depth == 0 || form.is_constant()) return best;
  for (const Constraint& constraint : constraints_) {
    if (constraint.relation == Relation::kNotZero) continue;
    for (const auto& [symbol, coefficient] : form.terms()) {
      const std::int64_t other = constraint.form.coefficient(symbol);
      if (other == 0 || (constraint.relation == Relation::kAtMostZero && (other > 0) != (coefficient > 0))) continue;
      const std::int64_t common = std::gcd(coefficient, other);
      const std::int64_t scale = (other < 0 ? -other : other) / common;
      const std::int64_t share = (other < 0 ? -coefficient : coefficient) / common;
      const auto rest = Form::combine(scale, form, -share, constraint.form);
      if (!rest) continue;
      const Wide bound = highest(*rest, depth - 1);
      if (bound < kUnbounded) best = std::min(best, floor_div(bound, scale));
    }
  }
  return best;
}

Range Domain::range(const Form& form) const {
  constexpr int kDepth = 2;  // constraints combined: a guard and a loop's
  const auto reversed = form.times(-1);
  const Wide high = highest(form, kDepth);
  const Wide low = reversed ? -highest(*reversed, kDepth) : -Wide{kUnbounded};
  return {saturated(low), saturated(high)};
}

std::optional<bool> Domain::decided(const Constraint& constraint) const {
  const Range range = this->range(constraint.form);
  if (constraint.relation == Relation::kAtMostZero) {
    if (range.high <= 0) return true;
    return range.low > 0 ? std::optional(false) : std::nullopt;
  }
  const bool wanted = constraint.relation == Relation::kZero;
  if (range.low == 0 && range.high == 0) return wanted;
  return range.low > 0 || range.high < 0 ? std::optional(!wanted) : std::nullopt;
}

std::optional<bool> Domain::decided(const Predicate& predicate) const {
  if (predicate == nullptr) return std::nullopt;
  switch (predicate->kind) {
    case Condition::Kind::kConstant: return predicate->value;
    case Condition::Kind::kCompare: return decided(predicate->constraint);
    case Condition::Kind::kNot: {
      const auto left = decided(predicate->left);
      return left ? std::optional(!*left) : std::nullopt;
    }
    case Condition::Kind::kAnd:
    case Condition::Kind::kOr: {
      const bool decisive = predicate->kind == Condition::Kind::kOr;
      const auto left = decided(predicate->left);
      const auto right = decided(predicate->right);
      if ((left && *left == decisive) || (right && *right == decisive)) return decisive;
      return left && right ? std::optional(!decisive) : std::nullopt;
    }
  }
  return std::nullopt;
}

void Domain::make_uncertain(const Reason& why) { add_reason(reasons_, why); }

void Domain::intersect(const Domain& other, const Reason& why) {
  std::erase_if(constraints_, [&](const Constraint& constraint) {
    return std::ranges::find(other.constraints_, constraint) == other.constraints_.end();
  });
  make_uncertain(why);
  for (const Reason& reason : other.reasons_) make_uncertain(reason);
  empty_ = empty_ && other.empty_;
}

void Domain::forget(int symbol) {
  std::erase_if(constraints_, [&](const Constraint& c) { return c.form.coefficient(symbol) != 0; });
  std::erase_if(doubts_, [&](const Form& form) { return form.coefficient(symbol) != 0; });
}

}  // namespace tangram::ptx
