// Affine forms over symbols: c + a_1 s_1 + ... + a_n s_n. Goes in: integers. Comes out: sums and multiples, or nothing
// where a coefficient would leave 64 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tangram::ptx {

__extension__ using Wide = __int128;

class Form {
 public:
  using Term = std::pair<int, std::int64_t>;  ///< symbol, coefficient

  Form() = default;
  explicit Form(std::int64_t constant) : constant_(constant) {}
  /// The symbol itself.
  [[nodiscard]] static Form of(int symbol) { return Form(0, {{symbol, 1}}); }

  [[nodiscard]] std::int64_t constant() const { return constant_; }
  /// By ascending symbol; no coefficient is 0.
  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }
  [[nodiscard]] bool is_constant() const { return terms_.empty(); }
  [[nodiscard]] std::int64_t coefficient(int symbol) const;

  [[nodiscard]] Form plus(std::int64_t constant) const;  ///< modulo 2^64
  [[nodiscard]] Form without(int symbol) const;

  /// a * f + b * g
  [[nodiscard]] static std::optional<Form> combine(std::int64_t a, const Form& f, std::int64_t b, const Form& g);
  [[nodiscard]] std::optional<Form> times(std::int64_t factor) const { return combine(factor, *this, 0, *this); }
  /// Whether every coefficient is a multiple of the divisor; and the constant, too.
  [[nodiscard]] bool is_multiple_of(std::int64_t divisor) const;
  /// Of a multiple.
  [[nodiscard]] Form divided(std::int64_t divisor) const;
  /// How many times it contains the terms of another: 0 where it has none of them, nothing where it has only some.
  [[nodiscard]] std::optional<std::int64_t> multiples_of(const std::vector<Term>& terms) const;
  /// In the place of a symbol another form.
  [[nodiscard]] std::optional<Form> substituted(int symbol, const Form& value) const;

  auto operator<=>(const Form&) const = default;

 private:
  Form(std::int64_t constant, std::vector<Term> terms) : constant_(constant), terms_(std::move(terms)) {}

  std::int64_t constant_ = 0;
  std::vector<Term> terms_;
};

[[nodiscard]] inline std::optional<Form> sum(const Form& f, const Form& g) { return Form::combine(1, f, 1, g); }
[[nodiscard]] inline std::optional<Form> difference(const Form& f, const Form& g) { return Form::combine(1, f, -1, g); }

/// Rounded to minus infinity; the divisor is positive.
[[nodiscard]] constexpr Wide floor_div(Wide value, Wide divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

}  // namespace tangram::ptx
