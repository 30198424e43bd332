// What measured files get wrong, found from the numbers themselves. Goes in: values and what they would mean. Comes
// out: the unit they can only be in, the ones that are no measurements, what they lack. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tangram/base/median.hpp"

namespace tangram::profiles {

struct Unit {
  std::string_view name;
  double scale = 1;  ///< times the value: seconds, bytes, or bytes/s
  bool operator==(const Unit&) const = default;
};

inline constexpr Unit kSeconds{"s", 1};
inline constexpr Unit kMilliseconds{"ms", 1e-3};
inline constexpr Unit kMicroseconds{"us", 1e-6};

/// Least share of the device's highest dense peak that a block can take: launch-bound and exchange-bound measurements
/// reach 0.3 % and more (Sailor's eight RTX 3090 over PCIe), a slip of a unit is a factor of 1000.
inline constexpr double kLeastRate = 0.001;

/// The unit of a time in which `amount` of work means between kLeastRate and kBoost (profile_anomaly.hpp) of `peak` per
/// second: `declared` where it does, else the one other of s, ms, us that does; nothing where none or several do.
[[nodiscard]] std::optional<Unit> time_unit(double amount, double peak, double time, const Unit& declared);

/// Out of memory, or a failed measurement, written as a time: 1e9 (Aceso and what descends from it), 2^30, or no
/// number.
[[nodiscard]] bool is_sentinel(double time);

struct Sample {
  double samples = 0;
  double time = 0;
};

/// Which of the times at ascending sample counts the others rule out: more samples take no less time, and no more than
/// in proportion. How far two times contradict that, in log, over the robust spread of the others' contradictions is a
/// z-score; beyond kOutlier the time goes without which the others agree best, until none is left. A first iteration
/// that loaded kernels shows up here. O(n^3), n a handful.
inline constexpr double kOutlier = 3.5;
[[nodiscard]] std::vector<std::size_t> outliers(std::span<const Sample> samples);

/// Which of the times of equal layers stand out from their median by the same measure.
[[nodiscard]] std::vector<std::size_t> outliers_of_equals(std::span<const double> times);

/// Backward is two products for each of forward. At most one of them is in a backward that would compute above the
/// peak, or, where products decide, takes less than 1.3 times as long as forward (a complete one takes 2.0; the
/// gradient of the input alone was measured at 0.8 to 0.98).
[[nodiscard]] bool lacks_weight_gradient(double forward_amount, double forward, double backward, double peak);

/// Memory that is an exact straight line over three or more sample counts was calculated: allocators round.
[[nodiscard]] bool is_computed(std::span<const Sample> memory);

/// The unit of a size that must be `bytes`: MiB, MB, bytes, GiB, GB, whichever comes within 2 %; or the number of
/// elements of `element` bytes.
[[nodiscard]] std::optional<Unit> size_unit(double value, double bytes, double element);

/// The unit of a rate of bytes that was seen to be `bytes_per_second`: GB/s, GiB/s, bytes/s, Gbit/s, elements/s,
/// Gelements/s, whichever comes within 2 %.
[[nodiscard]] std::optional<Unit> rate_unit(double value, double bytes_per_second, double element);

/// The unit of a bandwidth that a link of `link` bytes/s carried: GB/s where that means between 0.1 % and 125 % of it,
/// else whichever of bytes/s and Gbit/s alone does.
[[nodiscard]] std::optional<Unit> bandwidth_unit(double value, double link);

}  // namespace tangram::profiles
