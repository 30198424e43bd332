// Which parts of a long run are drawn. Goes in: what ran when. Comes out: the whole run where that is not too much,
// else its beginning, its middle and its end.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tangram/base/units.hpp"

namespace tangram::picture {

/// What ran on a lane.
struct Span {
  int lane = 0;
  Nanoseconds start;
  Nanoseconds end;
};

/// Times [from, to).
struct Window {
  Nanoseconds from;
  Nanoseconds to;
  bool operator==(const Window&) const = default;
};

struct WindowLimits {
  std::size_t most_spans = 4000;     ///< of all windows: about 550 kB of a page
  std::size_t most_of_a_lane = 240;  ///< that a reader still sees one by one
};

/// Ascending and apart. The three windows are each as long as a third of the limits allows.
[[nodiscard]] std::vector<Window> windows_of(std::span<const Span> spans, Nanoseconds end,
                                             const WindowLimits& limits = {});

}  // namespace tangram::picture
