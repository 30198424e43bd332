// Colours by what they stand for; page.css has them, for paper and for a dark screen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/picture/markup.hpp"

namespace tangram::picture {

enum class Paint : std::uint8_t {
  kForward,
  kBackward,
  kWeightGradient,
  kSync,
  kOptimizer,
  kOurs,
  kTheirs,
  kNone,  ///< no fill; in a bar chart a dashed outline
  // Colours that are told apart, without a meaning of their own.
  kSeries0,
  kSeries1,
  kSeries2,
  kSeries3,
  kSeries4,
  kSeries5,
  kSeries6,
  kSeries7,
};

/// The class of the style sheet.
[[nodiscard]] std::string_view css_class(Paint paint);

/// Eight colours, again and again.
[[nodiscard]] Paint series(std::size_t index);

struct LegendEntry {
  Paint paint = Paint::kForward;
  std::string text;
};
[[nodiscard]] Markup legend(const std::vector<LegendEntry>& entries);

}  // namespace tangram::picture
