// Where a time stands in the drawing. Goes in: the windows that are drawn, a width. Comes out: places, and round times
// that are worth a mark.
#pragma once

#include <vector>

#include "tangram/base/units.hpp"
#include "tangram/picture/windows.hpp"

namespace tangram::picture {

class TimeAxis {
 public:
  TimeAxis(std::vector<Window> windows, double width);

  [[nodiscard]] const std::vector<Window>& windows() const { return windows_; }
  /// Of a time in the window, or at its end.
  [[nodiscard]] double place(std::size_t window, Nanoseconds time) const;
  /// Multiples of one step within the window, far enough apart for labels.
  [[nodiscard]] std::vector<Nanoseconds> ticks(std::size_t window) const;

  static constexpr double kBreak = 26;  ///< width between two windows

 private:
  std::vector<Window> windows_;
  std::vector<double> lefts_;  // of the windows
  double units_per_ns_ = 1;
};

}  // namespace tangram::picture
