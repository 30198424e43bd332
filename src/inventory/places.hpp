// Places in reports, and texts from reports that are safe to show.
#pragma once

#include <string>
#include <string_view>

#include "tangram/io/document.hpp"

namespace tangram::inventory {

/// A piece of a report, and where it stands.
struct Text {
  std::string value;
  int line = 0;  ///< 0: not in the report
  int column = 0;

  [[nodiscard]] Text part(std::size_t first, std::size_t length = std::string::npos) const {
    return {value.substr(first, length), line, column + static_cast<int>(first)};
  }
};

/// A string of a JSON document, its place behind the quotation mark.
[[nodiscard]] Text text_of(const io::Node& node);

[[nodiscard]] Diagnostic error_at(const io::Document& document, const Text& at, std::string code, std::string message,
                                  std::string hint = {});
[[nodiscard]] Diagnostic error_at(const io::Document& document, const io::Node& at, std::string code,
                                  std::string message, std::string hint = {});

/// Printable ASCII; every other byte becomes '?': reasons are free text of whoever drained a node.
[[nodiscard]] std::string printable(std::string_view text);

[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Letters, digits, '-', '_' and '.': what cluster.json takes for one plain name.
[[nodiscard]] bool is_host_name(std::string_view text);

/// A decimal number from 0 to 1,000,000; -1 for anything else.
[[nodiscard]] int small_number(std::string_view text);

}  // namespace tangram::inventory
