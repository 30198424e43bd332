// Windows against a search that tries every length.
#include "tangram/picture/windows.hpp"

#include <algorithm>
#include <random>

#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"

using namespace tangram;
using picture::Span;
using picture::Window;
using picture::WindowLimits;
using tangram::testing::cases;
using tangram::testing::pick;

namespace {

constexpr int kLanes = 3;

std::vector<Span> random_spans(std::mt19937_64& random, std::int64_t end) {
  std::vector<Span> spans;
  for (int lane = 0; lane < kLanes; ++lane) {
    std::int64_t free = 0;  // one after the other
    while (true) {
      const std::int64_t start = free + pick(random, 0, 6);
      const std::int64_t stop = start + pick(random, 1, 8);
      if (stop > end) break;
      spans.push_back({lane, Nanoseconds(start), Nanoseconds(stop)});
      free = stop;
    }
  }
  return spans;
}

bool fits(const std::vector<Span>& spans, const Window& window, const WindowLimits& limits, std::size_t share) {
  std::size_t all = 0;
  std::vector<std::size_t> of_lane(kLanes, 0);
  for (const Span& span : spans) {
    if (span.start >= window.to || span.end <= window.from) continue;
    ++all;
    ++of_lane[static_cast<std::size_t>(span.lane)];
  }
  return all <= limits.most_spans / share &&
         *std::max_element(of_lane.begin(), of_lane.end()) <= limits.most_of_a_lane / share;
}

/// The longest of at most a third; 1 where none fits.
template <class MakeWindow>
Window longest(const std::vector<Span>& spans, Nanoseconds end, const WindowLimits& limits, const MakeWindow& make) {
  Window found = make(Nanoseconds(1));
  for (std::int64_t length = 1; length <= end.value() / 3; ++length) {
    const Window tried = make(Nanoseconds(length));
    if (fits(spans, tried, limits, 3)) found = tried;
  }
  return found;
}

std::vector<Window> naive(const std::vector<Span>& spans, Nanoseconds end, const WindowLimits& limits) {
  if (fits(spans, {Nanoseconds(0), end}, limits, 1)) return {{Nanoseconds(0), end}};
  std::vector<Window> result{longest(spans, end, limits, [](Nanoseconds d) { return Window{Nanoseconds(0), d}; })};
  const Window middle = longest(spans, end, limits, [&](Nanoseconds d) {
    const Nanoseconds from = (end - d) / 2;
    return Window{from, from + d};
  });
  for (const Window& next :
       {middle, longest(spans, end, limits, [&](Nanoseconds d) { return Window{end - d, end}; })}) {
    if (next.from <= result.back().to) {
      result.back().to = next.to;
    } else {
      result.push_back(next);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("windows: those that a search of every length finds") {
  std::mt19937_64 random(71);
  for (int i = 0; i < cases(4000); ++i) {
    INFO("case " << i);
    const Nanoseconds end(pick(random, 30, 300));
    const auto spans = random_spans(random, end.value());
    const WindowLimits limits{static_cast<std::size_t>(pick(random, 9, 90)),
                              static_cast<std::size_t>(pick(random, 3, 40))};
    CHECK(picture::windows_of(spans, end, limits) == naive(spans, end, limits));
  }
}
