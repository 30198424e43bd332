#include "symbols.hpp"

#include <algorithm>

namespace tangram::ptx {

Symbols::Symbols(const Launch& launch) {
  const auto index = [&](std::int64_t count) {
    return count <= 1 ? Form(0) : Form::of(add({{0, count - 1}, true, -1, false, {}}));
  };
  for (std::size_t i = 0; i < 3; ++i) {
    threads_[i] = index(launch.block[i]);
    blocks_[i] = index(launch.grid[i]);
  }
}

int Symbols::add(Symbol symbol) {
  symbols_.push_back(std::move(symbol));
  return static_cast<int>(symbols_.size()) - 1;
}

Form Symbols::opaque(int place, int slot, Range range, const Reason& why) {
  if (range.low == range.high) return Form(range.low);
  const auto [found, is_new] = opaque_.try_emplace({place, slot, range.low, range.high}, 0);
  if (is_new) found->second = add({range, false, -1, false, why});
  return Form::of(found->second);
}

int Symbols::iteration() { return add({{0, kUnbounded}, true, -1, true, {{}, "the loop has no bound that is known"}}); }

void Symbols::limit_iteration(int symbol, std::int64_t high) {
  symbols_[static_cast<std::size_t>(symbol)].range.high = high;
}

const Split& Symbols::divide(const Form& value, std::int64_t size, std::int64_t divisor) {
  const auto [found, is_new] = divided_.try_emplace({value, size, divisor}, static_cast<int>(splits_.size()));
  if (is_new) {
    const bool exact = is_dense(value);
    const int number = found->second;
    Split split{value, size, divisor, 0, 0};
    const Reason* cause = doubtful(value);
    const Reason why = cause != nullptr ? *cause : Reason{{}, "a quotient of values that leave gaps"};
    split.quotient = add({{0, (size - 1) / divisor}, exact, number, false, why});
    split.remainder = add({{0, std::min(size, divisor) - 1}, exact, number, false, why});
    splits_.push_back(std::move(split));
  }
  return split(found->second);
}

Form Symbols::with_remainders(const Form& form) const {
  for (const auto& [symbol, coefficient] : form.terms()) {
    const int number = at(symbol).split;
    if (number < 0 || split(number).quotient != symbol) continue;
    const Split& split = this->split(number);
    const auto factor = form.multiples_of(split.value.terms());
    if (!factor || *factor == 0 || Wide{coefficient} != -Wide{*factor} * split.divisor) continue;
    const auto rest = Form::combine(1, form.without(symbol), -*factor, split.value);
    const auto with = rest ? Form::combine(1, *rest, *factor, Form::of(split.remainder)) : std::nullopt;
    if (with) return *with;
  }
  return form;
}

Range Symbols::range(const Form& form) const {
  Wide low = form.constant();
  Wide high = form.constant();
  bool unbounded_below = false;
  bool unbounded_above = false;
  for (const auto& [symbol, coefficient] : form.terms()) {
    const Range& range = at(symbol).range;
    const bool rises = coefficient > 0;
    unbounded_below = unbounded_below || (rises ? range.low <= -kUnbounded : range.high >= kUnbounded);
    unbounded_above = unbounded_above || (rises ? range.high >= kUnbounded : range.low <= -kUnbounded);
    low += Wide{coefficient} * (rises ? range.low : range.high);
    high += Wide{coefficient} * (rises ? range.high : range.low);
  }
  return {unbounded_below ? -kUnbounded : saturated(low), unbounded_above ? kUnbounded : saturated(high)};
}

bool Symbols::independent(int a, int b) const {
  if (a == b) return false;
  const int split_a = at(a).split;
  const int split_b = at(b).split;
  if (split_a >= 0 && split_a == split_b) return true;
  if (split_a < 0 && split_b < 0) return true;
  const bool through_a = split_a >= 0 && (split_b < 0 || a > b);  // the younger one is made of older ones
  const Split& split = this->split(through_a ? split_a : split_b);
  const int other = through_a ? b : a;
  return std::ranges::all_of(split.value.terms(),
                             [&](const Form::Term& term) { return independent(term.first, other); });
}

bool Symbols::is_dense(const Form& form) const {
  std::vector<Form::Term> terms = form.terms();
  std::ranges::sort(terms, {}, [](const Form::Term& term) { return term.second < 0 ? -term.second : term.second; });
  Wide reach = 1;  // values 0 to reach - 1 are taken by the terms so far
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto& [symbol, coefficient] = terms[i];
    const Symbol& one = at(symbol);
    if (!one.exact || !one.range.is_bounded()) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (!independent(terms[j].first, symbol)) return false;
    }
    const Wide step = coefficient < 0 ? -Wide{coefficient} : Wide{coefficient};
    if (step > reach) return false;
    reach += step * (one.range.high - one.range.low);
  }
  return true;
}

const Reason* Symbols::doubtful(const Form& form) const {
  const auto found = std::ranges::find_if(form.terms(), [&](const Form::Term& term) { return !at(term.first).exact; });
  return found == form.terms().end() ? nullptr : &at(found->first).why;
}

bool Symbols::has_iteration(const Form& form) const {
  return std::ranges::any_of(form.terms(), [&](const Form::Term& term) { return at(term.first).is_iteration; });
}

}  // namespace tangram::ptx
