#include "time_axis.hpp"

#include <algorithm>
#include <cmath>

#include "tangram/base/at.hpp"

namespace tangram::picture {

namespace {

constexpr double kTickDistance = 90;  // at least

/// 1, 2 or 5 times a power of ten.
Nanoseconds round_step(double least_ns) {
  std::int64_t power = 1;
  while (static_cast<double>(power) * 10 <= least_ns) power *= 10;
  for (const std::int64_t factor : {1, 2, 5}) {
    if (static_cast<double>(factor * power) >= least_ns) return Nanoseconds(factor * power);
  }
  return Nanoseconds(10 * power);
}

}  // namespace

TimeAxis::TimeAxis(std::vector<Window> windows, double width) : windows_(std::move(windows)) {
  Nanoseconds drawn;
  for (const Window& window : windows_) drawn += window.to - window.from;
  const double breaks = kBreak * static_cast<double>(windows_.size() - 1);
  units_per_ns_ = (width - breaks) / std::max(1.0, drawn.as_double());
  double left = 0;
  for (const Window& window : windows_) {
    lefts_.push_back(left);
    left += (window.to - window.from).as_double() * units_per_ns_ + kBreak;
  }
}

double TimeAxis::place(std::size_t window, Nanoseconds time) const {
  return at(lefts_, window) + (time - at(windows_, window).from).as_double() * units_per_ns_;
}

std::vector<Nanoseconds> TimeAxis::ticks(std::size_t window) const {
  const Window& of = at(windows_, window);
  const Nanoseconds step = round_step(kTickDistance / units_per_ns_);
  std::vector<Nanoseconds> result;
  Nanoseconds tick = step * ((of.from.value() + step.value() - 1) / step.value());
  for (; tick <= of.to; tick += step) result.push_back(tick);
  return result;
}

}  // namespace tangram::picture
