#include "integers.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tangram::ptx {
namespace {

bool lies_in(const Range& range, const Range& type) { return range.low >= type.low && range.high <= type.high; }

/// The largest power of two that divides all values.
std::int64_t step_of(const Form& form) {
  auto bits = static_cast<std::uint64_t>(form.constant());
  for (const auto& [symbol, coefficient] : form.terms()) bits |= static_cast<std::uint64_t>(coefficient);
  return bits == 0 ? kUnbounded : std::int64_t{1} << std::min(62, std::countr_zero(bits));
}

}  // namespace

Range Integers::range_of(Format format) {
  if (format.bits >= 64) return format.is_signed ? Range{} : Range{0, kUnbounded};
  const std::int64_t half = std::int64_t{1} << (format.bits - 1);
  return format.is_signed ? Range{-half, half - 1} : Range{0, 2 * half - 1};
}

std::optional<Form> Integers::seen(const Form& form, Format format) const {
  const Range type = range_of(format);
  const Range range = domain_.range(form);
  const bool bounded = range.is_bounded();
  if (bounded && lies_in(range, type)) return form;
  if (is_tentative_ && symbols_.has_iteration(form)) return form;
  if (!bounded || format.bits >= 64) return std::nullopt;
  const std::int64_t period = std::int64_t{1} << format.bits;
  const auto turns = static_cast<std::int64_t>(floor_div(Wide{range.low} - type.low, period));
  const Form shifted = form.plus(-turns * period);
  return lies_in(domain_.range(shifted), type) ? std::optional(shifted) : std::nullopt;
}

/// Terms that the divisor divides are divided; what is left is a digit, or is divided into digits.
std::optional<Integers::Digits> Integers::digits(const Form& form, std::int64_t divisor, Format format) const {
  if (divisor <= 0) return std::nullopt;
  const auto value = seen(form, format);
  if (!value || domain_.range(*value).low < 0) return std::nullopt;
  Form whole;
  Form rest;
  for (const auto& [symbol, coefficient] : value->terms()) {
    Form& part = coefficient % divisor == 0 ? whole : rest;
    const auto added = Form::combine(1, part, coefficient, Form::of(symbol));
    if (!added) return std::nullopt;
    part = *added;
  }
  const auto multiple = static_cast<std::int64_t>(floor_div(value->constant(), divisor));
  whole = whole.divided(divisor).plus(multiple);
  rest = rest.plus(value->constant() - multiple * divisor);
  const Range range = domain_.range(rest);
  if (!range.is_bounded()) return std::nullopt;
  const auto turn = static_cast<std::int64_t>(floor_div(range.low, divisor));
  if (static_cast<std::int64_t>(floor_div(range.high, divisor)) == turn) {
    return Digits{whole.plus(turn), rest.plus(-turn * divisor)};
  }
  if (range.low < 0) return std::nullopt;
  // What all coefficients share is no part of the quotient: (4 s) / 8 = s / 2.
  std::int64_t common = divisor;
  for (const auto& [symbol, coefficient] : rest.terms()) common = std::gcd(common, coefficient);
  const std::int64_t low = rest.constant() % common;
  const Form value_of_digits = rest.plus(-low).divided(common);
  const std::int64_t size = range.high / common + 1;
  const Split& split = symbols_.divide(value_of_digits, size, divisor / common);
  const auto quotient = sum(whole, Form::of(split.quotient));
  const auto remainder = Form::of(split.remainder).times(common);
  if (!quotient || !remainder) return std::nullopt;
  return Digits{*quotient, remainder->plus(low)};
}

std::optional<Form> Integers::quotient(const Form& form, std::int64_t divisor, Format format) const {
  const auto both = digits(form, divisor, format);
  return both ? std::optional(both->quotient) : std::nullopt;
}

std::optional<Form> Integers::remainder(const Form& form, std::int64_t divisor, Format format) const {
  const auto both = digits(form, divisor, format);
  return both ? std::optional(both->remainder) : std::nullopt;
}

/// A mask is runs of ones: each is a remainder less a shorter one.
std::optional<Form> Integers::bitwise_and(const Form& form, std::uint64_t mask, Format format) const {
  if (format.bits < 64) mask &= (std::uint64_t{1} << format.bits) - 1;
  Form total;
  while (mask != 0) {
    const int first = std::countr_zero(mask);
    const int end = first + std::countr_one(mask >> first);
    mask = end >= 64 ? 0 : mask >> end << end;
    const auto upper = end >= format.bits || end >= 63 ? seen(form, {format.bits, false})
                                                       : remainder(form, std::int64_t{1} << end, format);
    const auto lower = first == 0 ? std::optional(Form(0)) : remainder(form, std::int64_t{1} << first, format);
    if (!upper || !lower) return std::nullopt;
    const auto run = difference(*upper, *lower);
    const auto added = run ? sum(total, *run) : std::nullopt;
    if (!added) return std::nullopt;
    total = *added;
  }
  return total;
}

std::optional<Form> Integers::bitwise_or(const Form& a, const Form& b, Format format) const {
  const auto left = seen(a, {format.bits, false});
  const auto right = seen(b, {format.bits, false});
  if (!left || !right) return std::nullopt;
  const Range low = domain_.range(*left);
  const Range high = domain_.range(*right);
  const bool disjoint = (low.low >= 0 && low.high < step_of(*right)) || (high.low >= 0 && high.high < step_of(*left));
  return disjoint ? sum(*left, *right) : std::nullopt;
}

}  // namespace tangram::ptx
