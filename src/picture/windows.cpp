#include "tangram/picture/windows.hpp"

#include <algorithm>

#include "tangram/base/at.hpp"

namespace tangram::picture {

namespace {

/// How many spans of a lane, or of all lanes, a window has.
class SpanCounts {
 public:
  void add(const Span& span) {
    starts_.push_back(span.start);
    ends_.push_back(span.end);
  }
  void sort() {
    std::ranges::sort(starts_);
    std::ranges::sort(ends_);
  }
  [[nodiscard]] std::size_t within(const Window& window) const {
    const auto begun = std::ranges::lower_bound(starts_, window.to) - starts_.begin();
    const auto over = std::ranges::upper_bound(ends_, window.from) - ends_.begin();
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, begun - over));
  }

 private:
  std::vector<Nanoseconds> starts_;
  std::vector<Nanoseconds> ends_;
};

class WindowFinder {
 public:
  WindowFinder(std::span<const Span> spans, Nanoseconds end, const WindowLimits& limits) : end_(end), limits_(limits) {
    for (const Span& span : spans) {
      const auto lane = static_cast<std::size_t>(span.lane);
      if (lane >= lanes_.size()) lanes_.resize(lane + 1);
      lanes_[lane].add(span);
      all_.add(span);
    }
    for (SpanCounts& lane : lanes_) lane.sort();
    all_.sort();
  }

  [[nodiscard]] std::vector<Window> find() const {
    const Window whole{Nanoseconds(0), end_};
    if (fits(whole, 1)) return {whole};
    const auto beginning = [](Nanoseconds length) { return Window{Nanoseconds(0), length}; };
    const auto middle = [&](Nanoseconds length) { return Window{(end_ - length) / 2, (end_ - length) / 2 + length}; };
    const auto ending = [&](Nanoseconds length) { return Window{end_ - length, end_}; };
    return joined({longest(beginning), longest(middle), longest(ending)});
  }

 private:
  [[nodiscard]] bool fits(const Window& window, std::size_t share) const {
    if (all_.within(window) > limits_.most_spans / share) return false;
    const auto has_room = [&](const SpanCounts& lane) { return lane.within(window) <= limits_.most_of_a_lane / share; };
    return std::ranges::all_of(lanes_, has_room);
  }

  /// Of windows that grow with their length.
  template <class MakeWindow>
  [[nodiscard]] Window longest(const MakeWindow& window_of) const {
    Nanoseconds least(1);
    Nanoseconds most = end_ / kParts;
    while (least < most) {
      const Nanoseconds tried = least + (most - least + Nanoseconds(1)) / 2;
      if (fits(window_of(tried), kParts)) {
        least = tried;
      } else {
        most = tried - Nanoseconds(1);
      }
    }
    return window_of(least);
  }

  /// Windows that touch become one.
  static std::vector<Window> joined(const std::vector<Window>& windows) {
    std::vector<Window> result;
    for (const Window& window : windows) {
      if (!result.empty() && window.from <= result.back().to) {
        result.back().to = std::max(result.back().to, window.to);
      } else {
        result.push_back(window);
      }
    }
    return result;
  }

  static constexpr std::int64_t kParts = 3;

  Nanoseconds end_;
  WindowLimits limits_;
  SpanCounts all_;
  std::vector<SpanCounts> lanes_;
};

}  // namespace

std::vector<Window> windows_of(std::span<const Span> spans, Nanoseconds end, const WindowLimits& limits) {
  return WindowFinder(spans, end, limits).find();
}

}  // namespace tangram::picture
