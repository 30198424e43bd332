#include "tangram/picture/paint.hpp"

#include <fmt/format.h>

#include "tangram/base/at.hpp"

namespace tangram::picture {

std::string_view css_class(Paint paint) {
  constexpr std::string_view kClasses[] = {"f",  "b",  "w",  "y",  "o",  "ours", "theirs", "none",
                                           "s0", "s1", "s2", "s3", "s4", "s5",   "s6",     "s7"};
  return at(kClasses, paint);
}

Paint series(std::size_t index) {
  constexpr std::size_t kColors = 8;
  return static_cast<Paint>(static_cast<std::size_t>(Paint::kSeries0) + index % kColors);
}

Markup legend(const std::vector<LegendEntry>& entries) {
  Markup items;
  for (const LegendEntry& entry : entries) {
    items += element("li", {}, element("i", {{"class", css_class(entry.paint)}}) + text(entry.text));
  }
  return element("ul", {{"class", "legend"}}, items);
}

}  // namespace tangram::picture
