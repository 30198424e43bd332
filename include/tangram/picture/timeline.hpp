// What ran when, as SVG: a row for each lane, a bar for each span, time to the right. A run that is too long to draw
// whole is drawn in parts (windows.hpp), at one scale.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tangram/base/units.hpp"
#include "tangram/picture/markup.hpp"
#include "tangram/picture/paint.hpp"
#include "tangram/picture/windows.hpp"

namespace tangram::picture {

struct Lane {
  std::string name;
  std::string detail;   ///< beside it, dim
  std::string title;    ///< all that is to be said of it
  std::string heading;  ///< above it; empty: it belongs to the lane before
  Paint mark = Paint::kNone;
};

/// How a span is drawn.
struct SpanLook {
  Paint paint = Paint::kForward;
  int shade = 0;      ///< 0 to 3: fainter
  std::string label;  ///< on it
  std::string title;
};

struct Timeline {
  std::string description;  ///< for readers who do not see it
  std::vector<Lane> lanes;
  std::vector<Span> spans;
  Nanoseconds end;
  std::size_t label_room = 1;                 ///< characters of the longest label: labels are shown where that has room
  std::function<SpanLook(std::size_t)> look;  ///< by place in `spans`; asked for those that are drawn
};

/// The drawing, and below it what is left out where something is. The figure has the attributes data-end-ns, the end of
/// the run, and data-last-ns, the end of the last span; data-windows lists what is drawn as from-to.
[[nodiscard]] Markup timeline(const Timeline& run, const WindowLimits& limits = {});

/// Seconds in a unit that suits `scale`: "1.25 s", "300 ms".
[[nodiscard]] std::string time_text(Nanoseconds time, Nanoseconds scale);

}  // namespace tangram::picture
