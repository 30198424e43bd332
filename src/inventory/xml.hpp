// An XML text as a tree in which every element and text knows its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "places.hpp"

namespace tangram::inventory {

struct XmlElement {
  Text name;
  Text content;  ///< the characters between its tags, trimmed; those of children not among them
  std::vector<XmlElement> children;

  [[nodiscard]] const XmlElement* find(std::string_view child) const;  ///< the first, or nullptr
  /// At "a", "b", "c" below this one, or nullptr.
  [[nodiscard]] const XmlElement* find(std::initializer_list<std::string_view> path) const;
};

/// Well-formed XML of at most 64 levels without entities of its own; nothing outside the text is read. Attributes and
/// comments are dropped.
[[nodiscard]] Expected<XmlElement> parse_xml(const io::Document& document);

}  // namespace tangram::inventory
