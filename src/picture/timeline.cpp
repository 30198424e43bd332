#include "tangram/picture/timeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "tangram/base/at.hpp"
#include "time_axis.hpp"

namespace tangram::picture {

namespace {

// Units of the drawing.
constexpr double kWidth = 1180;
constexpr double kLaneNames = 220;  // where the plot begins
constexpr double kPlot = kWidth - kLaneNames;
constexpr double kLaneHeight = 28;
constexpr double kSpanHeight = 22;
constexpr double kHeading = 26;
constexpr double kAxis = 22;
constexpr double kNames = 14;  // of lanes, right of their marks
constexpr double kNameLetter = 7.6;
constexpr double kBesideName = 10;
constexpr double kThinnest = 0.3;
constexpr double kThin = 2;     // drawn without an edge
constexpr double kDigit = 6.4;  // width of a character of a label
constexpr double kInset = 3;    // of a label, on both sides together

/// Rows from above; where a heading stands there is more room.
std::vector<double> tops_of(const std::vector<Lane>& lanes, double& height) {
  std::vector<double> tops;
  height = 0;
  for (const Lane& lane : lanes) {
    if (!lane.heading.empty()) height += kHeading;
    tops.push_back(height);
    height += kLaneHeight;
  }
  return tops;
}

Markup lane_names(const std::vector<Lane>& lanes, const std::vector<double>& tops) {
  Markup out;
  std::size_t longest = 0;
  for (const Lane& lane : lanes) longest = std::max(longest, lane.name.size());
  const double beside = kNames + kNameLetter * static_cast<double>(longest) + kBesideName;
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    const Lane& lane = lanes[l];
    const double y = at(tops, l);
    if (!lane.heading.empty()) {
      out += element("text", {{"class", "heading"}, {"x", 0}, {"y", y - 8}}, lane.heading);
    }
    Markup row = element("title", {}, lane.title);
    row +=
        element("rect", {{"class", css_class(lane.mark)}, {"x", 0}, {"y", y}, {"width", 5}, {"height", kSpanHeight}});
    row += element("text", {{"class", "name"}, {"x", kNames}, {"y", y + 15}}, lane.name);
    row += element("text", {{"class", "dim"}, {"x", beside}, {"y", y + 15}}, lane.detail);
    out += element("g", {}, row);
  }
  return out;
}

/// The zoom from which on a label has room: page.css shows it then. Empty: always; nothing where it never has.
std::optional<std::string_view> shown_from(std::size_t characters, double width) {
  constexpr std::pair<double, std::string_view> kZooms[] = {{1, ""}, {2, "z2"}, {4, "z4"}, {8, "z8"}, {16, "z16"}};
  const double needed = kDigit * static_cast<double>(characters) + kInset;
  for (const auto& [zoom, name] : kZooms) {
    if (needed <= width * zoom) return name;
  }
  return std::nullopt;
}

Markup drawn(const SpanLook& look, std::size_t label_room, double left, double right) {
  const double width = std::max(kThinnest, right - left);
  std::string classes(css_class(look.paint));
  if (width < kThin) classes += " t";
  if (look.shade > 0) classes += fmt::format(" c{}", std::min(look.shade, 3));
  Markup bar = element("rect", {{"class", classes}, {"x", left}, {"width", width}, {"height", kSpanHeight}},
                       element("title", {}, look.title));
  const auto zoom = look.label.empty() ? std::nullopt : shown_from(label_room, width);
  if (zoom) bar += element("text", {{"class", *zoom}, {"x", (left + right) / 2}, {"y", 15}}, look.label);
  return bar;
}

/// A group for each lane with its spans in all windows.
Markup spans_of(const Timeline& run, const TimeAxis& axis, const std::vector<double>& tops) {
  std::vector<Markup> lanes(run.lanes.size());
  for (std::size_t s = 0; s < run.spans.size(); ++s) {
    const Span& span = run.spans[s];
    for (std::size_t w = 0; w < axis.windows().size(); ++w) {
      const Window& window = axis.windows()[w];
      const Nanoseconds start = std::max(span.start, window.from);
      const Nanoseconds end = std::min(span.end, window.to);
      if (start < end)
        at(lanes, span.lane) += drawn(run.look(s), run.label_room, axis.place(w, start), axis.place(w, end));
    }
  }
  Markup out;
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    out += element("g", {{"transform", fmt::format("translate(0 {})", number(at(tops, l)))}}, lanes[l]);
  }
  return out;
}

Markup axis_of(const TimeAxis& axis, Nanoseconds end, double height) {
  Markup out;
  for (std::size_t w = 0; w < axis.windows().size(); ++w) {
    for (const Nanoseconds tick : axis.ticks(w)) {
      const double x = axis.place(w, tick);
      const std::string label = time_text(tick, end);
      const double half = kDigit * static_cast<double>(label.size()) / 2;
      out += element("path", {{"class", "tick"}, {"d", fmt::format("M{} 0V{}", number(x), number(height))}});
      if (x + half > kPlot) continue;
      out += element("text", {{"class", x < half ? "axis first" : "axis"}, {"x", x}, {"y", height + 15}}, label);
    }
    if (w == 0) continue;
    const double left = axis.place(w, axis.windows()[w].from) - TimeAxis::kBreak;
    out += element("rect", {{"class", "break"}, {"x", left + 3}, {"width", TimeAxis::kBreak - 6}, {"height", height}});
    out += element("text", {{"class", "axis"}, {"x", left + TimeAxis::kBreak / 2}, {"y", height / 2 + 4}}, "···");
  }
  return out;
}

/// Four digits of the whole.
Nanoseconds rounded(Nanoseconds time, Nanoseconds whole) {
  std::int64_t step = 1;
  while (whole.value() / step >= 10'000) step *= 10;
  return Nanoseconds((time.value() + step / 2) / step * step);
}

/// Nothing where all is drawn.
Markup left_out(const Timeline& run, const std::vector<Window>& windows) {
  if (windows.size() < 2) return {};
  const auto words = [&](Nanoseconds time) { return time_text(rounded(time, run.end), run.end); };
  std::vector<std::string> parts;
  for (const Window& window : windows) parts.push_back(words(window.from) + " to " + words(window.to));
  return element(
      "p", {{"class", "dim"}},
      fmt::format("Drawn, at one scale: {}. What lies between goes on in the same way.", fmt::join(parts, ", ")));
}

Nanoseconds last_end(const std::vector<Span>& spans) {
  Nanoseconds last;
  for (const Span& span : spans) last = std::max(last, span.end);
  return last;
}

std::string windows_text(const std::vector<Window>& windows) {
  std::vector<std::string> parts;
  for (const Window& window : windows) parts.push_back(fmt::format("{}-{}", window.from.value(), window.to.value()));
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace

std::string time_text(Nanoseconds time, Nanoseconds scale) {
  struct Unit {
    double ns;
    std::string_view name;
  };
  constexpr Unit kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  const auto suits = [&](const Unit& unit) { return scale.as_double() >= unit.ns; };
  const auto unit = std::ranges::find_if(kUnits, suits);
  const Unit& taken = unit != std::end(kUnits) ? *unit : kUnits[3];
  return fmt::format("{:.6g} {}", time.as_double() / taken.ns, taken.name);
}

Markup timeline(const Timeline& run, const WindowLimits& limits) {
  double height = 0;
  const std::vector<double> tops = tops_of(run.lanes, height);
  const TimeAxis axis(windows_of(run.spans, run.end, limits), kPlot);
  const std::string box = fmt::format("0 0 {} {}", number(kPlot), number(height + kAxis));
  const Markup plot = element("svg",
                              {{"class", "plot"},
                               {"x", kLaneNames},
                               {"width", kPlot},
                               {"height", height + kAxis},
                               {"viewBox", box},
                               {"preserveAspectRatio", "none"}},
                              element("rect", {{"class", "ground"}, {"width", kPlot}, {"height", height}}) +
                                  axis_of(axis, run.end, height) + spans_of(run, axis, tops));
  const Markup drawing = element("svg",
                                 {{"viewBox", fmt::format("0 0 {} {}", number(kWidth), number(height + kAxis))},
                                  {"role", "img"},
                                  {"aria-label", run.description}},
                                 lane_names(run.lanes, tops) + plot);
  return element("figure",
                 {{"class", "timeline"},
                  {"data-end-ns", run.end.value()},
                  {"data-last-ns", last_end(run.spans).value()},
                  {"data-windows", windows_text(axis.windows())}},
                 element("div", {{"class", "scroll"}}, drawing) + left_out(run, axis.windows()));
}

}  // namespace tangram::picture
