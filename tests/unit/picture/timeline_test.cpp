#include "tangram/picture/timeline.hpp"

#include "support/catch.hpp"

using namespace tangram;
using picture::time_text;
using picture::Timeline;

namespace {

/// Two lanes: "F" from 0 to 40 and from 40 to 100 ms, and "B" from 50 to 100 ms.
Timeline two_lanes() {
  using namespace literals;
  Timeline run;
  run.description = "two";
  run.lanes = {{"0", "8 x A", "all of it", "pipeline 0", picture::series(0)},
               {"1", "8 x B", "", "", picture::series(1)}};
  run.spans = {{0, 0_ms, 40_ms}, {0, 40_ms, 100_ms}, {1, 50_ms, 100_ms}};
  run.end = 100_ms;
  run.look = [](std::size_t s) { return picture::SpanLook{picture::Paint::kForward, 0, std::to_string(s), "span"}; };
  return run;
}

bool has(const picture::Markup& drawn, const std::string& wanted) {
  return drawn.html().find(wanted) != std::string::npos;
}

}  // namespace

TEST_CASE("timeline: spans stand where their times are") {
  // The plot has 960 units for 100 ms.
  const auto drawn = picture::timeline(two_lanes());
  CHECK(has(drawn, R"(<rect class="f" x="0" width="384" height="22">)"));
  CHECK(has(drawn, R"(<rect class="f" x="384" width="576" height="22">)"));
  CHECK(has(drawn, R"(<rect class="f" x="480" width="480" height="22">)"));
  CHECK(has(drawn, R"(data-end-ns="100000000" data-last-ns="100000000" data-windows="0-100000000")"));
  CHECK(!has(drawn, "Drawn, at one scale"));
}

TEST_CASE("timeline: what is left out is said") {
  auto run = two_lanes();
  run.spans.clear();
  for (int i = 0; i < 1000; ++i) {
    run.spans.push_back({0, Nanoseconds(i * 100'000), Nanoseconds((i + 1) * 100'000)});
  }
  const auto drawn = picture::timeline(run, {1000, 30});
  CHECK(has(drawn, "Drawn, at one scale: 0 ms to 1 ms, 49.5 ms to 50.5 ms, 99 ms to 100 ms."));
  // Three windows of 1 ms in 960 units, less two breaks of 26: 302.67 each.
  CHECK(has(drawn, R"(<rect class="f" x="0" width="30.27" height="22">)"));
  CHECK(has(drawn, R"(<rect class="f" x="929.73" width="30.27" height="22">)"));
}

TEST_CASE("timeline: labels are shown from the zoom on at which the longest has room") {
  auto run = two_lanes();
  run.look = [](std::size_t) { return picture::SpanLook{picture::Paint::kForward, 0, "7", ""}; };
  run.spans = {{0, Nanoseconds(0), Nanoseconds(1'000'000)}};  // 9.6 units; a label of 3 needs 22.2
  run.label_room = 3;
  CHECK(has(picture::timeline(run), R"(<text class="z4" x="4.8" y="15">7</text>)"));
  run.label_room = 1;  // 9.4
  CHECK(has(picture::timeline(run), R"(<text x="4.8" y="15">7</text>)"));
  run.label_room = 100;
  CHECK(!has(picture::timeline(run), ">7</text>"));
}

TEST_CASE("timeline: times are in a unit that suits the whole") {
  using namespace literals;
  CHECK(time_text(1500_ms, 20'000_ms) == "1.5 s");
  CHECK(time_text(0_ms, 2_ms) == "0 ms");
  CHECK(time_text(12'345_ns, 50'000_ns) == "12.345 us");
  CHECK(time_text(7_ns, 90_ns) == "7 ns");
}

TEST_CASE("timeline: without anything to draw it is empty") {
  Timeline run;
  run.look = [](std::size_t) { return picture::SpanLook{}; };
  CHECK(has(picture::timeline(run), R"(data-end-ns="0")"));
}
