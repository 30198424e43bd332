// The pages of the manual: Markdown in apps/tangram/manual, embedded in the program. One page is shown in a terminal
// (tangram help TOPIC) or printed for man (tangram manual TOPIC).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terminal.hpp"

namespace tangram::app {

struct ManualPage {
  std::string topic;  ///< "fleet"
  std::string_view markdown;

  [[nodiscard]] std::string title() const;  ///< of the first line
};

/// In the order in which a newcomer would read them.
[[nodiscard]] std::vector<ManualPage> manual_pages();
[[nodiscard]] std::vector<std::string> manual_topics();
[[nodiscard]] std::optional<ManualPage> find_page(std::string_view topic);

/// Prose in lines of at most 100 columns, tables as wide as the terminal: a table that is wider yet is divided into
/// several, each with the first column.
[[nodiscard]] std::string page_text(std::string_view markdown, const Terminal& terminal);

/// troff with the man macros, section 7.
[[nodiscard]] std::string page_troff(const ManualPage& page);

}  // namespace tangram::app
