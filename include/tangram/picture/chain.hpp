// What is joined one behind the other, as boxes with what flows between them.
#pragma once

#include <string>
#include <vector>

#include "tangram/picture/markup.hpp"
#include "tangram/picture/page.hpp"
#include "tangram/picture/paint.hpp"

namespace tangram::picture {

/// A part of a box.
struct BoxPart {
  std::string name;           ///< in bold
  Paint mark = Paint::kNone;  ///< beside it
  std::vector<Fact> facts;
  double fill = 0;        ///< of its meter, a share
  std::string fill_text;  ///< below it; empty: it has none
};

struct Box {
  std::string title;
  std::string note;  ///< beside the title, dim
  std::vector<std::string> tags;
  std::vector<BoxPart> parts;
  bool is_marked = false;  ///< one that a reader is to see first
};

/// From one box to the next.
struct Flow {
  std::string above;  ///< the arrow
  std::string below;
  std::string title;
};

/// `flows` has one less than `boxes`.
[[nodiscard]] Markup chain(const std::vector<Box>& boxes, const std::vector<Flow>& flows);

}  // namespace tangram::picture
