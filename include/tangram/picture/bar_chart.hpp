// Bars side by side, for figures that a reader compares.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tangram/picture/markup.hpp"
#include "tangram/picture/paint.hpp"

namespace tangram::picture {

struct Bar {
  std::string name;
  double value = 0;  ///< not finite: there is none
  std::string text;  ///< beside the bar
  Paint paint = Paint::kTheirs;
};

/// `description` is for readers who do not see it.
[[nodiscard]] Markup bar_chart(const std::vector<Bar>& bars, std::string_view description);

}  // namespace tangram::picture
