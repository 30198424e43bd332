#include "tangram/profiles/detect.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "tangram/cost/profile_anomaly.hpp"

namespace tangram::profiles {
namespace {

constexpr double kLeastSpread = 0.1;     // in log: repeated measurements differ by less
constexpr double kNormal = 1.4826;       // median absolute deviation to standard deviation
constexpr double kSentinel = 1e9;        // of any unit; even in microseconds a quarter of an hour
constexpr double kExactLine = 1e-6;      // relative
constexpr double kSizeTolerance = 0.02;  // MB and MiB are 4.9 % apart

/// How far `value` lies outside [low, high], in log.
double distance(double value, double low, double high) {
  if (value < low) return std::log(low / value);
  return value > high ? std::log(value / high) : 0;
}

/// How far two times at ascending samples contradict each other: more samples take no less time, and no more than in
/// proportion.
double contradiction(const Sample& few, const Sample& many) {
  return distance(many.time, few.time, few.time * many.samples / few.samples);
}

/// Of all pairs, without those of `skipped`.
std::vector<double> contradictions(std::span<const Sample> list, std::size_t skipped) {
  std::vector<double> found;
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (std::size_t j = i + 1; j < list.size(); ++j) {
      if (i != skipped && j != skipped) found.push_back(contradiction(list[i], list[j]));
    }
  }
  return found;
}

/// The one without which the others contradict each other least; of equals the first, which may have run cold.
std::size_t suspect(std::span<const Sample> list) {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::vector<double> others = contradictions(list, i);
    const double sum = std::accumulate(others.begin(), others.end(), 0.0);
    if (sum < least - 1e-9) {
      best = i;
      least = sum;
    }
  }
  return best;
}

double worst_with(std::span<const Sample> list, std::size_t one) {
  double worst = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i < one) worst = std::max(worst, contradiction(list[i], list[one]));
    if (i > one) worst = std::max(worst, contradiction(list[one], list[i]));
  }
  return worst;
}

double spread(std::vector<double> deviations) {
  return std::max(kLeastSpread, kNormal * median(std::move(deviations)));
}

bool near(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance * std::abs(b); }

std::optional<Unit> unit_of(std::span<const Unit> units, double value, double wanted) {
  for (const Unit& unit : units) {
    if (near(value * unit.scale, wanted, kSizeTolerance)) return unit;
  }
  return std::nullopt;
}

template <class Plausible>
std::optional<Unit> only_plausible(std::span<const Unit> units, const Unit& declared, Plausible plausible) {
  if (plausible(declared)) return declared;
  std::optional<Unit> found;
  for (const Unit& unit : units) {
    if (!plausible(unit)) continue;
    if (found) return std::nullopt;
    found = unit;
  }
  return found;
}

}  // namespace

std::optional<Unit> time_unit(double amount, double peak, double time, const Unit& declared) {
  constexpr std::array kUnits = {kSeconds, kMilliseconds, kMicroseconds};
  return only_plausible(kUnits, declared, [&](const Unit& unit) {
    const double share = amount / (time * unit.scale) / peak;
    return share >= kLeastRate && share <= cost::kBoost;
  });
}

bool is_sentinel(double time) { return !std::isfinite(time) || time >= kSentinel; }

std::vector<std::size_t> outliers(std::span<const Sample> samples) {
  std::vector<Sample> left(samples.begin(), samples.end());
  std::vector<std::size_t> index(left.size());
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = i;
  std::vector<std::size_t> found;
  while (left.size() >= 2) {
    const std::size_t one = suspect(left);
    if (worst_with(left, one) <= kOutlier * spread(contradictions(left, one))) break;
    found.push_back(index[one]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(one));
    index.erase(index.begin() + static_cast<std::ptrdiff_t>(one));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::size_t> outliers_of_equals(std::span<const double> times) {
  const double middle = median({times.begin(), times.end()});
  std::vector<double> deviations;
  for (const double time : times) deviations.push_back(distance(time, middle, middle));
  const double limit = kOutlier * spread(deviations);
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (deviations[i] > limit) found.push_back(i);
  }
  return found;
}

bool lacks_weight_gradient(double forward_amount, double forward, double backward, double peak) {
  if (2 * forward_amount / backward > cost::kBoost * peak) return true;
  return forward_amount / forward >= cost::kProductsDecide * peak && backward < cost::kLeastBackwardRatio * forward;
}

bool is_computed(std::span<const Sample> memory) {
  if (memory.size() < 3) return false;
  const Sample& first = memory.front();
  const Sample& last = memory.back();
  const double slope = (last.time - first.time) / (last.samples - first.samples);
  return std::all_of(memory.begin(), memory.end(), [&](const Sample& m) {
    return near(m.time, first.time + slope * (m.samples - first.samples), kExactLine);
  });
}

std::optional<Unit> size_unit(double value, double bytes, double element) {
  const std::array units = {Unit{"MiB", 1 << 20}, Unit{"MB", 1e6}, Unit{"bytes", 1},
                            Unit{"GiB", 1 << 30}, Unit{"GB", 1e9}, Unit{"elements", element}};
  return unit_of(units, value, bytes);
}

std::optional<Unit> rate_unit(double value, double bytes_per_second, double element) {
  const std::array units = {Unit{"GB/s", 1e9},      Unit{"GiB/s", 1 << 30},      Unit{"bytes/s", 1},
                            Unit{"Gbit/s", 1.25e8}, Unit{"elements/s", element}, Unit{"Gelements/s", element * 1e9}};
  return unit_of(units, value, bytes_per_second);
}

std::optional<Unit> bandwidth_unit(double value, double link) {
  constexpr std::array kUnits = {Unit{"bytes/s", 1}, Unit{"Gbit/s", 1.25e8}};
  return only_plausible(kUnits, Unit{"GB/s", 1e9}, [&](const Unit& unit) {
    const double share = value * unit.scale / link;
    return share >= kLeastRate && share <= cost::kBoost;
  });
}

}  // namespace tangram::profiles
