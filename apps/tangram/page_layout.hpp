// Words and tables of a manual page, laid out in lines of a width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "markdown.hpp"
#include "terminal.hpp"

namespace tangram::app {

struct StyledText {
  std::string text;
  Style style = Style::kPlain;
};
using StyledLine = std::vector<StyledText>;

/// How another page of the manual is called: "tangram help {}" or "tangram-{}(7)", with the topic for {}.
using PageName = std::string (*)(std::string_view topic);

[[nodiscard]] std::string help_page_name(std::string_view topic);
[[nodiscard]] std::string man_page_name(std::string_view topic);

/// What a span says where nobody can click: links name the page, the address or the file of the repository.
[[nodiscard]] std::string spelled_out(const Span& span, PageName page_name);

/// Lines of at most `width` characters, broken at spaces; a longer word stays whole.
[[nodiscard]] std::vector<StyledLine> wrapped_spans(const Spans& spans, std::size_t width, PageName page_name);

/// Each table of the result fits the width, as far as words can be broken; the first column is in all of them.
[[nodiscard]] std::vector<std::vector<StyledLine>> table_lines(const Block& table, std::size_t width,
                                                               PageName page_name);

}  // namespace tangram::app
