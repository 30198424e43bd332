#include "form.hpp"

#include <algorithm>
#include <limits>

namespace tangram::ptx {
namespace {

/// Short of 64 bits by one: sums and quotients of two are numbers, too.
std::optional<std::int64_t> narrow(Wide value) {
  constexpr Wide kMost = std::numeric_limits<std::int64_t>::max() / 2;
  return value < -kMost || value > kMost ? std::nullopt : std::optional(static_cast<std::int64_t>(value));
}

}  // namespace

std::int64_t Form::coefficient(int symbol) const {
  const auto found = std::ranges::lower_bound(terms_, symbol, {}, &Term::first);
  return found != terms_.end() && found->first == symbol ? found->second : 0;
}

Form Form::plus(std::int64_t constant) const {
  Form result = *this;
  const auto total = static_cast<std::uint64_t>(constant_) + static_cast<std::uint64_t>(constant);
  result.constant_ = static_cast<std::int64_t>(total);
  return result;
}

Form Form::without(int symbol) const {
  Form result = *this;
  std::erase_if(result.terms_, [&](const Term& term) { return term.first == symbol; });
  return result;
}

std::optional<Form> Form::combine(std::int64_t a, const Form& f, std::int64_t b, const Form& g) {
  const auto constant = narrow(Wide{a} * f.constant_ + Wide{b} * g.constant_);
  if (!constant) return std::nullopt;
  Form result(*constant);
  auto left = f.terms_.begin();
  auto right = g.terms_.begin();
  while (left != f.terms_.end() || right != g.terms_.end()) {
    const bool takes_left = right == g.terms_.end() || (left != f.terms_.end() && left->first <= right->first);
    const bool takes_right = left == f.terms_.end() || (right != g.terms_.end() && right->first <= left->first);
    const int symbol = takes_left ? left->first : right->first;
    const Wide total = (takes_left ? Wide{a} * left->second : 0) + (takes_right ? Wide{b} * right->second : 0);
    const auto coefficient = narrow(total);
    if (!coefficient) return std::nullopt;
    if (*coefficient != 0) result.terms_.emplace_back(symbol, *coefficient);
    if (takes_left) ++left;
    if (takes_right) ++right;
  }
  return result;
}

bool Form::is_multiple_of(std::int64_t divisor) const {
  if (divisor == 1 || divisor == -1) return true;
  return constant_ % divisor == 0 &&
         std::ranges::all_of(terms_, [&](const Term& term) { return term.second % divisor == 0; });
}

Form Form::divided(std::int64_t divisor) const {
  Form result = *this;
  result.constant_ /= divisor;
  for (Term& term : result.terms_) term.second /= divisor;
  return result;
}

std::optional<std::int64_t> Form::multiples_of(const std::vector<Term>& terms) const {
  const auto& [symbol, first] = terms.front();
  const std::int64_t found = coefficient(symbol);
  if (found % first != 0) return std::nullopt;
  const std::int64_t factor = found / first;
  const bool all = std::ranges::all_of(
      terms, [&](const Term& term) { return Wide{factor} * term.second == coefficient(term.first); });
  return all ? std::optional(factor) : std::nullopt;
}

std::optional<Form> Form::substituted(int symbol, const Form& value) const {
  const std::int64_t factor = coefficient(symbol);
  return factor == 0 ? *this : combine(1, without(symbol), factor, value);
}

}  // namespace tangram::ptx
