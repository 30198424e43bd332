// Quantities with units. Goes in: plain numbers, once, at the program's edges. Comes out: types that cannot be
// mixed up. Bytes and Nanoseconds are integers, so that search results do not depend on rounding; rates are doubles.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

namespace tangram {

/// A number with a unit. Only explicitly constructible, so that a bare number never becomes a quantity by accident.
template <class Tag, class Rep>
class Quantity {
 public:
  using rep = Rep;

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}

  [[nodiscard]] constexpr Rep value() const { return value_; }
  [[nodiscard]] constexpr double as_double() const { return static_cast<double>(value_); }
  [[nodiscard]] static constexpr Quantity max() { return Quantity(std::numeric_limits<Rep>::max()); }

  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep factor) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator/(Quantity a, Rep divisor) { return Quantity(a.value_ / divisor); }

 private:
  Rep value_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Nanoseconds = Quantity<struct NanosecondsTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag, double>;                    // floating-point operations
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;  // dense, never sparse
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;  // one direction
using Dollars = Quantity<struct DollarsTag, double>;

/// Seconds rounded up to whole nanoseconds. Negative, NaN or larger than about 292 years: saturates to 0 or max.
[[nodiscard]] inline Nanoseconds ceil_to_nanoseconds(double seconds) {
  const double ns = std::ceil(seconds * 1e9);
  if (!(ns > 0)) return Nanoseconds(0);
  if (ns >= 9.2e18) return Nanoseconds::max();
  return Nanoseconds(static_cast<std::int64_t>(ns));
}

/// Measured seconds rounded to the nearest nanosecond, at least one. Requires less than 292 years.
[[nodiscard]] inline Nanoseconds measured_nanoseconds(double seconds) {
  return Nanoseconds(std::max<std::int64_t>(1, std::llround(seconds * 1e9)));
}

[[nodiscard]] constexpr double to_seconds(Nanoseconds t) { return t.as_double() * 1e-9; }

/// Bytes rounded up to a whole byte. Negative or NaN gives 0.
[[nodiscard]] inline Bytes ceil_to_bytes(double bytes) {
  const double b = std::ceil(bytes);
  if (!(b > 0)) return Bytes(0);
  if (b >= 9.2e18) return Bytes::max();
  return Bytes(static_cast<std::int64_t>(b));
}

/// Time to move `size` at `rate`, rounded up; rate must be positive.
[[nodiscard]] inline Nanoseconds transfer_time(Bytes size, BytesPerSecond rate) {
  return ceil_to_nanoseconds(size.as_double() / rate.value());
}

namespace literals {
constexpr Bytes operator""_B(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v)); }
constexpr Bytes operator""_KiB(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v) << 10); }
constexpr Bytes operator""_MiB(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v) << 20); }
constexpr Bytes operator""_GiB(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v) << 30); }
constexpr Nanoseconds operator""_ns(unsigned long long v) { return Nanoseconds(static_cast<std::int64_t>(v)); }
constexpr Nanoseconds operator""_us(unsigned long long v) { return Nanoseconds(static_cast<std::int64_t>(v) * 1'000); }
constexpr Nanoseconds operator""_ms(unsigned long long v) {
  return Nanoseconds(static_cast<std::int64_t>(v) * 1'000'000);
}
constexpr FlopsPerSecond operator""_TFLOPs(long double v) { return FlopsPerSecond(static_cast<double>(v) * 1e12); }
constexpr FlopsPerSecond operator""_TFLOPs(unsigned long long v) {
  return FlopsPerSecond(static_cast<double>(v) * 1e12);
}
constexpr BytesPerSecond operator""_GBps(long double v) { return BytesPerSecond(static_cast<double>(v) * 1e9); }
constexpr BytesPerSecond operator""_GBps(unsigned long long v) { return BytesPerSecond(static_cast<double>(v) * 1e9); }
}  // namespace literals

}  // namespace tangram
