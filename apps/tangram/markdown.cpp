#include "markdown.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

namespace tangram::app {

namespace {

constexpr std::string_view kFence = "```";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// "* " and "- " begin an item, and so does a number with a dot.
std::size_t marker_length(std::string_view line) {
  if (line.starts_with("* ") || line.starts_with("- ")) return 1;
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto digits = static_cast<std::size_t>(std::ranges::find_if_not(line, digit) - line.begin());
  return digits > 0 && line.substr(digits).starts_with(". ") ? digits + 1 : 0;
}

int heading_level(std::string_view line) {
  const std::size_t marks = line.find_first_not_of('#');
  return marks != std::string_view::npos && line[marks] == ' ' ? static_cast<int>(marks) : 0;
}

bool begins_block(std::string_view line) {
  return trimmed(line).empty() || line.starts_with(kFence) || line.starts_with('|') || heading_level(line) > 0 ||
         marker_length(line) > 0;
}

/// The cells of "| a | b |".
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  line = trimmed(line);
  line.remove_prefix(1);
  while (!line.empty()) {
    const std::size_t end = std::min(line.find('|'), line.size());
    cells.push_back(trimmed(line.substr(0, end)));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return cells;
}

/// Reads blocks from the front of the lines.
class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(lines_of(text)) {}

  std::vector<Block> read() {
    std::vector<Block> blocks;
    while (at_ < lines_.size()) {
      if (trimmed(lines_[at_]).empty()) {
        ++at_;
      } else {
        blocks.push_back(block());
      }
    }
    return blocks;
  }

 private:
  Block block() {
    const std::string_view line = lines_[at_];
    if (line.starts_with(kFence)) return code();
    if (line.starts_with('|')) return table();
    if (heading_level(line) > 0) return heading();
    return marker_length(line) > 0 ? item() : paragraph();
  }

  Block heading() {
    const std::string_view line = lines_[at_++];
    Block block{.kind = Block::Kind::kHeading, .level = heading_level(line)};
    block.text = read_spans(trimmed(line.substr(static_cast<std::size_t>(block.level))));
    return block;
  }

  Block code() {
    Block block{.kind = Block::Kind::kCode};
    for (++at_; at_ < lines_.size() && lines_[at_] != kFence; ++at_) block.lines.emplace_back(lines_[at_]);
    ++at_;
    return block;
  }

  Block table() {
    Block block{.kind = Block::Kind::kTable};
    for (; at_ < lines_.size() && lines_[at_].starts_with('|'); ++at_) {
      const auto cells = cells_of(lines_[at_]);
      if (block.rows.size() == 1 && block.right.empty()) {
        for (const std::string_view rule : cells) block.right.push_back(rule.ends_with(':'));
        continue;
      }
      std::vector<Spans> row;
      for (const std::string_view cell : cells) row.push_back(read_spans(cell));
      row.resize(block.rows.empty() ? row.size() : block.rows.front().size());
      block.rows.push_back(std::move(row));
    }
    if (!block.rows.empty()) block.right.resize(block.rows.front().size());
    return block;
  }

  Block item() {
    const std::string_view line = lines_[at_++];
    const std::size_t length = marker_length(line);
    Block block{.kind = Block::Kind::kItem, .marker = std::string(line.substr(0, length))};
    block.text = read_spans(continued(std::string(trimmed(line.substr(length)))));
    return block;
  }

  Block paragraph() {
    Block block{.kind = Block::Kind::kParagraph};
    block.text = read_spans(continued(std::string(trimmed(lines_[at_++]))));
    return block;
  }

  /// The text with the lines that go on with it.
  std::string continued(std::string text) {
    for (; at_ < lines_.size() && !begins_block(lines_[at_]); ++at_) text.append(" ").append(trimmed(lines_[at_]));
    return text;
  }

  std::vector<std::string_view> lines_;
  std::size_t at_ = 0;
};

struct Found {
  Span span;
  std::size_t length = 0;  ///< in the text
};

/// What stands between two equal marks at the beginning of the text.
std::optional<Found> between(std::string_view text, std::string_view mark, Span::Kind kind) {
  if (!text.starts_with(mark)) return std::nullopt;
  const std::size_t end = text.find(mark, mark.size() + 1);
  if (end == std::string_view::npos || text[mark.size()] == ' ') return std::nullopt;
  return Found{{kind, std::string(text.substr(mark.size(), end - mark.size())), {}}, end + mark.size()};
}

std::string without(std::string_view text, char mark) {
  std::string out(text);
  std::erase(out, mark);
  return out;
}

/// "[text](target)" at the beginning of the text, or "![text](target)".
std::optional<Found> link(std::string_view text) {
  const bool picture = text.starts_with('!');
  const std::size_t begin = picture ? 2 : 1;
  if (!text.starts_with(picture ? "![" : "[")) return std::nullopt;
  const std::size_t middle = text.find("](");
  const std::size_t end = text.find(')', middle);
  if (middle == std::string_view::npos || end == std::string_view::npos) return std::nullopt;
  return Found{{picture ? Span::Kind::kPicture : Span::Kind::kLink, without(text.substr(begin, middle - begin), '`'),
                std::string(text.substr(middle + 2, end - middle - 2))},
               end + 1};
}

std::optional<Found> span_at(std::string_view text) {
  if (auto code = between(text, "`", Span::Kind::kCode)) return code;
  if (auto strong = between(text, "**", Span::Kind::kStrong)) return strong;
  if (auto emphasis = between(text, "*", Span::Kind::kEmphasis)) return emphasis;
  return link(text);
}

}  // namespace

Spans read_spans(std::string_view text) {
  Spans spans;
  while (!text.empty()) {
    if (auto found = span_at(text)) {
      spans.push_back(std::move(found->span));
      text.remove_prefix(found->length);
      continue;
    }
    if (spans.empty() || spans.back().kind != Span::Kind::kText) spans.push_back({});
    spans.back().text += text.front();
    text.remove_prefix(1);
  }
  return spans;
}

std::vector<Block> read_markdown(std::string_view text) { return Reader(text).read(); }

}  // namespace tangram::app
