// One HTML page that needs nothing else: styles inside, light and dark, no network. Goes in: markup. Comes out: the
// file's text, which is XML as well.
#pragma once

#include <string>
#include <vector>

#include "tangram/picture/markup.hpp"

namespace tangram::picture {

struct Page {
  std::string title;
  Markup body;
  bool has_timelines = false;  ///< adds the script that zooms them; without it, or where it is off, all is shown
};

[[nodiscard]] std::string written(const Page& page);

/// A heading with what belongs to it.
[[nodiscard]] Markup section(std::string_view heading, const Markup& content);

[[nodiscard]] Markup paragraph(std::string_view plain);

struct Fact {
  std::string label;
  std::string text;
};
/// Labels beside what they stand for.
[[nodiscard]] Markup facts(const std::vector<Fact>& entries);

struct TableColumn {
  std::string header;
  bool is_number = false;  ///< set right
};
/// Rows have a cell for each column.
[[nodiscard]] Markup table(const std::vector<TableColumn>& columns, const std::vector<std::vector<Markup>>& rows);

/// A bar that is full at a share of 1; `title` says it in words.
[[nodiscard]] Markup meter(double share, std::string_view title);

}  // namespace tangram::picture
