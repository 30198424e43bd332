// Integer arithmetic on forms. Goes in: forms, and the type that an instruction takes them for. Comes out: forms, or
// nothing where the result is not affine.
#pragma once

#include <optional>

#include "domain.hpp"
#include "symbols.hpp"

namespace tangram::ptx {

/// Registers hold values modulo 2^width. What an instruction sees that takes them for signed or unsigned numbers is the
/// form only where all its values lie in the range of the type, or all do so after the same multiple of 2^width.
class Integers {
 public:
  Integers(Symbols& symbols, const Domain& domain, bool is_tentative)
      : symbols_(symbols), domain_(domain), is_tentative_(is_tentative) {}

  struct Format {
    int bits = 32;
    bool is_signed = false;
  };
  [[nodiscard]] static Range range_of(Format format);

  [[nodiscard]] std::optional<Form> seen(const Form& form, Format format) const;
  [[nodiscard]] std::optional<Form> quotient(const Form& form, std::int64_t divisor, Format format) const;
  [[nodiscard]] std::optional<Form> remainder(const Form& form, std::int64_t divisor, Format format) const;
  [[nodiscard]] std::optional<Form> bitwise_and(const Form& form, std::uint64_t mask, Format format) const;
  /// Where no bit is set in both.
  [[nodiscard]] std::optional<Form> bitwise_or(const Form& a, const Form& b, Format format) const;

 private:
  struct Digits {
    Form quotient;
    Form remainder;
  };
  [[nodiscard]] std::optional<Digits> digits(const Form& form, std::int64_t divisor, Format format) const;

  Symbols& symbols_;
  const Domain& domain_;
  bool is_tentative_;  ///< iterations have no bound yet: nothing is taken to wrap around
};

}  // namespace tangram::ptx
