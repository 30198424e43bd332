#include "tangram/picture/bar_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tangram::picture {

namespace {

// Units of the drawing.
constexpr double kRow = 30;  // height of a bar with its gap
constexpr double kBarHeight = 20;
constexpr double kBaseline = 15;   // of text, from the top of its row
constexpr double kBarNames = 190;  // where bars begin
constexpr double kChartWidth = 900;
constexpr double kLongest = 560;  // bar
constexpr double kShortest = 2;
constexpr double kBeside = 8;  // from a bar to its text

double longest_of(const std::vector<Bar>& bars) {
  double longest = 0;
  for (const Bar& bar : bars) {
    if (std::isfinite(bar.value)) longest = std::max(longest, bar.value);
  }
  return longest;
}

Markup row_of(const Bar& bar, double longest, double y) {
  const bool is_there = std::isfinite(bar.value);
  const double length = is_there && longest > 0 ? std::max(kShortest, kLongest * bar.value / longest) : kLongest;
  const double beside = is_there ? kBarNames + length + kBeside : kBarNames + kBeside;
  return element("text", {{"x", 0}, {"y", y + kBaseline}}, bar.name) +
         element("rect", {{"class", css_class(is_there ? bar.paint : Paint::kNone)},
                          {"x", kBarNames},
                          {"y", y},
                          {"width", length},
                          {"height", kBarHeight},
                          {"rx", 3}}) +
         element("text", {{"class", "value"}, {"x", beside}, {"y", y + kBaseline}}, bar.text);
}

}  // namespace

Markup bar_chart(const std::vector<Bar>& bars, std::string_view description) {
  const double longest = longest_of(bars);
  Markup rows;
  double y = 0;
  for (const Bar& bar : bars) {
    rows += row_of(bar, longest, y);
    y += kRow;
  }
  return element("svg",
                 {{"class", "chart"},
                  {"viewBox", fmt::format("0 0 {} {}", kChartWidth, y)},
                  {"role", "img"},
                  {"aria-label", description}},
                 rows);
}

}  // namespace tangram::picture
