// From a box with constraints to sets of bytes.
#include "box_problem.hpp"

#include <algorithm>
#include <utility>

namespace tangram::ptx {
namespace {

/// In the place of terms that are worth low, low + unit, ... a symbol that counts these.
std::optional<Form> with_counter(const Form& form, const std::vector<Form::Term>& terms, std::int64_t low,
                                 std::int64_t unit) {
  const auto factor = form.multiples_of(terms);
  if (!factor) return std::nullopt;
  Form rest = form;
  for (const Form::Term& term : terms) rest = rest.without(term.first);
  const auto with_low = Form::combine(1, rest, *factor, Form(low));
  const auto step = Form::of(terms.front().first).times(unit);
  return with_low && step ? Form::combine(1, *with_low, *factor, *step) : std::nullopt;
}

}  // namespace

Range BoxProblem::range(const Form& form) const {
  Wide low = form.constant();
  Wide high = form.constant();
  for (const auto& [symbol, coefficient] : form.terms()) {
    const Range& one = box_.at(symbol);
    low += Wide{coefficient} * (coefficient > 0 ? one.low : one.high);
    high += Wide{coefficient} * (coefficient > 0 ? one.high : one.low);
  }
  const Wide most = kUnbounded;
  return {static_cast<std::int64_t>(std::max(low, -most)), static_cast<std::int64_t>(std::min(high, most))};
}

/// Bounds of single symbols from one constraint. False where the box became empty.
bool BoxProblem::tighten(const Limit& limit) {
  for (int side = 0; side < (limit.is_equality ? 2 : 1); ++side) {
    const auto form = side == 0 ? std::optional(limit.form) : limit.form.times(-1);
    if (!form) continue;
    const Range whole = range(*form);
    if (whole.low > 0) return false;
    if (whole.low <= -kUnbounded) continue;
    for (const auto& [symbol, coefficient] : form->terms()) {
      Range& one = box_.at(symbol);
      const Wide rest = Wide{whole.low} - Wide{coefficient} * (coefficient > 0 ? one.low : one.high);
      if (coefficient > 0) {
        one.high = static_cast<std::int64_t>(std::min(Wide{one.high}, floor_div(-rest, coefficient)));
      } else {
        one.low = static_cast<std::int64_t>(std::max(Wide{one.low}, -floor_div(-rest, -Wide{coefficient})));
      }
      if (one.low > one.high) return false;
    }
  }
  return true;
}

bool BoxProblem::tighten() {
  constexpr int kRounds = 4;  // more change little
  for (int round = 0; round < kRounds; ++round) {
    const auto before = box_;
    for (const Limit& limit : limits_) {
      if (!tighten(limit)) return false;
    }
    if (box_ == before) break;
  }
  return true;
}

/// s = something without s: put in its place.
bool BoxProblem::fix_equalities() {
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    const Limit limit = limits_[i];
    if (!limit.is_equality) continue;
    for (const auto& [symbol, coefficient] : limit.form.terms()) {
      if (coefficient != 1 && coefficient != -1) continue;
      const auto value = limit.form.without(symbol).times(-coefficient);
      if (!value) continue;
      std::vector<Limit> others;
      for (std::size_t j = 0; j < limits_.size(); ++j) {
        const auto form = limits_[j].form.substituted(symbol, *value);
        if (!form) return false;
        if (j != i) others.push_back({*form, limits_[j].is_equality});
      }
      // The symbol's own range holds for what is in its place.
      const auto lower = value->times(-1);
      const auto offset = offset_.substituted(symbol, *value);
      if (!lower || !offset) return false;
      others.push_back({lower->plus(box_.at(symbol).low), false});
      others.push_back({value->plus(-box_.at(symbol).high), false});
      offset_ = *offset;
      limits_ = std::move(others);
      return true;
    }
  }
  return false;
}

bool BoxProblem::touches_offset(const Limit& limit) const {
  return std::ranges::any_of(limit.form.terms(),
                             [&](const Form::Term& term) { return offset_.coefficient(term.first) != 0; });
}

/// A constraint over a value of which the offset and all other constraints have multiples: its symbols become one,
/// which ends where the constraint says. True where the constraint is settled.
bool BoxProblem::fold(std::size_t number) {
  const Form form = limits_[number].form;
  std::vector<Form::Term> terms = form.terms();
  const auto size = [](const Form::Term& term) { return term.second < 0 ? -term.second : term.second; };
  std::ranges::sort(terms, {}, size);
  const std::int64_t unit = size(terms.front());
  Wide reach = 1;
  for (const Form::Term& term : terms) {
    if (size(term) % unit != 0 || Wide{size(term) / unit} > reach) return false;
    const Range& one = box_.at(term.first);
    reach += Wide{size(term) / unit} * (Wide{one.high} - one.low);
  }
  const Range whole = range(form);
  const std::int64_t low = whole.low - form.constant();
  const auto offset = with_counter(offset_, terms, low, unit);
  if (!offset || whole.low > 0) return false;
  std::vector<Limit> others;
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    const auto other = with_counter(limits_[i].form, terms, low, unit);
    if (!other) return false;
    if (i != number) others.push_back({*other, limits_[i].is_equality});
  }
  offset_ = *offset;
  limits_ = std::move(others);
  const Wide last = std::min(floor_div(-Wide{whole.low}, unit), reach - 1);
  box_[terms.front().first] = {0, static_cast<std::int64_t>(last)};
  return true;
}

/// Constraints that the box or another one implies.
void BoxProblem::drop_implied() {
  const auto implied = [&](std::size_t i) {
    const Range whole = range(limits_[i].form);
    if (whole.high <= 0 && (!limits_[i].is_equality || whole.low == 0)) return true;
    for (std::size_t j = 0; j < limits_.size(); ++j) {
      const auto gap = i == j ? std::nullopt : difference(limits_[i].form, limits_[j].form);
      if (gap && !limits_[i].is_equality && range(*gap).high <= 0) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < limits_.size();) {
    if (implied(i)) {
      limits_.erase(limits_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

/// Of a constraint that shares some symbols with the offset alone, the others may be as small as they can.
void BoxProblem::project() {
  for (Limit& limit : limits_) {
    if (limit.is_equality) continue;
    Form kept(limit.form.constant());
    Form rest;
    for (const auto& [symbol, coefficient] : limit.form.terms()) {
      const bool elsewhere = std::ranges::any_of(
          limits_, [&](const Limit& other) { return &other != &limit && other.form.coefficient(symbol) != 0; });
      Form& part = elsewhere || offset_.coefficient(symbol) != 0 ? kept : rest;
      part = Form::combine(1, part, coefficient, Form::of(symbol)).value_or(part);
    }
    if (!rest.is_constant() && range(rest).low > -kUnbounded) limit.form = kept.plus(range(rest).low);
  }
  std::erase_if(limits_, [](const Limit& limit) { return limit.form.is_constant() && limit.form.constant() <= 0; });
}

void BoxProblem::emit(std::int64_t width, Footprint& out) const {
  std::int64_t first = offset_.constant();
  std::vector<Repeat> repeats;
  for (const auto& [symbol, coefficient] : offset_.terms()) {
    const Range& one = box_.at(symbol);
    if (!one.is_bounded()) out.bounded = false;
    const Wide shift = Wide{coefficient} * one.low;
    const Wide reach = Wide{coefficient} * (Wide{one.high} - one.low);
    if (shift > kUnbounded || shift < -kUnbounded || reach > kUnbounded || reach < -kUnbounded) {
      out.bounded = false;
      return;
    }
    first += static_cast<std::int64_t>(shift);
    repeats.push_back({coefficient, one.high - one.low + 1});
  }
  out.bytes.push_back(normalized(first, width, std::move(repeats)));
}

/// Constraints one by one: dropped where they are implied or do not concern the offset, folded where the offset has a
/// multiple of them, and else the box is cut where one of them decides nothing.
void BoxProblem::separate(std::int64_t width, Footprint& out, int depth) {
  constexpr int kMostCuts = 4;
  constexpr std::size_t kMostSets = 16;
  if (!tighten()) return;
  drop_implied();
  project();
  drop_implied();
  if (std::ranges::none_of(limits_, [&](const Limit& limit) { return touches_offset(limit); })) {
    if (limits_.size() > 1) add_reason({{}, "conditions that may exclude each other"});
    if (limits_.size() == 1 && limits_[0].is_equality) add_reason({{}, "an equation that may have no solution"});
    return emit(width, out);
  }
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    if (!limits_[i].is_equality && touches_offset(limits_[i]) && fold(i)) return separate(width, out, depth);
  }
  const auto cut = std::ranges::find_if(limits_, [&](const Limit& limit) { return touches_offset(limit); });
  if (!cut->is_equality && depth < kMostCuts && out.bytes.size() < kMostSets && cut_at(*cut, width, out, depth)) return;
  add_reason({{}, "a condition that does not follow the offset"});
  emit(width, out);
}

/// By the symbol with the largest coefficient: up to some value the constraint holds whatever the others are. The
/// values behind it get a box each. False where those are too many.
bool BoxProblem::cut_at(const Limit& limit, std::int64_t width, Footprint& out, int depth) {
  constexpr int kMostTied = 2;
  const auto size = [](const Form::Term& term) { return term.second < 0 ? -term.second : term.second; };
  const auto [symbol, coefficient] = std::ranges::max(limit.form.terms(), {}, size);
  const Range rest = range(limit.form.without(symbol));
  const Range all = box_.at(symbol);
  const bool rises = coefficient > 0;
  const Wide free = rises ? floor_div(-Wide{rest.high}, coefficient) : -floor_div(-Wide{rest.high}, -Wide{coefficient});
  const bool has_free = rises ? free >= all.low : free <= all.high;
  const Wide tied = !has_free ? Wide{all.high} - all.low + 1 : rises ? Wide{all.high} - free : free - all.low;
  if (tied > kMostTied) return false;
  const auto part = [&](Range values) {
    BoxProblem one = *this;
    if (values.low == values.high) {
      const Form fixed(values.low);
      for (Limit& other : one.limits_) other.form = other.form.substituted(symbol, fixed).value_or(other.form);
      one.offset_ = one.offset_.substituted(symbol, fixed).value_or(one.offset_);
    }
    one.box_.at(symbol) = values;
    one.separate(width, out, depth + 1);
    for (const Reason& why : one.reasons_) add_reason(why);
  };
  if (has_free) {
    part(rises ? Range{all.low, static_cast<std::int64_t>(free)} : Range{static_cast<std::int64_t>(free), all.high});
  }
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(tied); ++i) {
    const std::int64_t value = rises ? all.high - i : all.low + i;
    part({value, value});
  }
  return true;
}

}  // namespace tangram::ptx
