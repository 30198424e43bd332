// The Markdown of the manual pages, read into blocks: headings, paragraphs, list items, fenced code and tables; within
// a line strong words, emphasis, code, links and pictures. Anything else is text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tangram::app {

struct Span {
  enum class Kind : std::uint8_t { kText, kStrong, kEmphasis, kCode, kLink, kPicture };
  Kind kind = Kind::kText;
  std::string text = {};
  std::string target = {};  ///< of a link or a picture

  bool operator==(const Span&) const = default;
};
using Spans = std::vector<Span>;

struct Block {
  enum class Kind : std::uint8_t { kHeading, kParagraph, kItem, kCode, kTable };
  Kind kind = Kind::kParagraph;
  int level = 0;                              ///< of a heading: 1 is the title
  std::string marker = {};                    ///< of an item: "*" or "2."
  Spans text = {};                            ///< of a heading, a paragraph or an item
  std::vector<std::string> lines = {};        ///< of code
  std::vector<std::vector<Spans>> rows = {};  ///< of a table; the first is the header
  std::vector<bool> right = {};               ///< of a table: which columns are aligned right
};

[[nodiscard]] std::vector<Block> read_markdown(std::string_view text);

/// Strong words, emphasis, code, links and pictures of one paragraph.
[[nodiscard]] Spans read_spans(std::string_view text);

}  // namespace tangram::app
