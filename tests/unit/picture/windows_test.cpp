#include "tangram/picture/windows.hpp"

#include "support/catch.hpp"

using namespace tangram;
using picture::Span;
using picture::Window;
using picture::windows_of;

namespace {

/// A lane on which one span of `length` follows the other.
std::vector<Span> in_a_row(int count, std::int64_t length, int lane = 0) {
  std::vector<Span> spans;
  for (int i = 0; i < count; ++i) spans.push_back({lane, Nanoseconds(i * length), Nanoseconds((i + 1) * length)});
  return spans;
}

}  // namespace

TEST_CASE("windows: a run that is not too long is drawn whole") {
  const std::vector<Window> whole{{Nanoseconds(0), Nanoseconds(1000)}};
  CHECK(windows_of(in_a_row(10, 100), Nanoseconds(1000), {10, 10}) == whole);
  CHECK(windows_of({}, Nanoseconds(1000)) == whole);
}

TEST_CASE("windows: beginning, middle and end of a longer one") {
  // 3000 spans of 100; of 90, each window may have 30: at the beginning and the end 3000 ns. The middle window grows to
  // both sides of 150,000: at a length of 3000 it would have the spans from 148,500 to 151,500, which are 30.
  const auto windows = windows_of(in_a_row(3000, 100), Nanoseconds(300'000), {1000, 90});
  REQUIRE(windows.size() == 3);
  CHECK(windows[0] == Window{Nanoseconds(0), Nanoseconds(3000)});
  CHECK(windows[1] == Window{Nanoseconds(148'500), Nanoseconds(151'500)});
  CHECK(windows[2] == Window{Nanoseconds(297'000), Nanoseconds(300'000)});
}

TEST_CASE("windows: the fullest lane decides, or all lanes together") {
  std::vector<Span> spans = in_a_row(300, 100, 0);
  for (const Span& span : in_a_row(300, 100, 1)) spans.push_back(span);
  // Together 60 a window, 30 of each lane.
  CHECK(windows_of(spans, Nanoseconds(30'000), {180, 1000}).front() == Window{Nanoseconds(0), Nanoseconds(3000)});
  CHECK(windows_of(spans, Nanoseconds(30'000), {1000, 60}).front() == Window{Nanoseconds(0), Nanoseconds(2000)});
}

TEST_CASE("windows: parts that touch become one") {
  // Of 30 spans each window may have 10. Two are before 200,000 ns: a third of the time from the beginning, and a third
  // around the middle. The last third has 100 of 1000 ns.
  std::vector<Span> spans = in_a_row(2, 100'000);
  for (int i = 0; i < 100; ++i) spans.push_back({0, Nanoseconds(200'000 + i * 1000), Nanoseconds(201'000 + i * 1000)});
  const auto windows = windows_of(spans, Nanoseconds(300'000), {30, 30});
  REQUIRE(windows.size() == 2);
  CHECK(windows[0] == Window{Nanoseconds(0), Nanoseconds(200'000)});
  CHECK(windows[1] == Window{Nanoseconds(290'000), Nanoseconds(300'000)});
}
