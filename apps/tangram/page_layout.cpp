#include "page_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "table.hpp"

namespace tangram::app {

namespace {

constexpr std::size_t kColumnGap = 2;
constexpr std::string_view kMarkdownEnding = ".md";

bool is_address(std::string_view target) { return target.find("://") != std::string_view::npos; }

/// The topic of a link to another page; empty: it leads elsewhere.
std::string_view topic_of(std::string_view target) {
  target = target.substr(0, target.find('#'));
  if (is_address(target) || target.find('/') != std::string_view::npos) return {};
  return target.ends_with(kMarkdownEnding) ? target.substr(0, target.size() - kMarkdownEnding.size()) : target;
}

/// A file's path from the root of the repository.
std::string_view path_of(std::string_view target) {
  while (target.starts_with("../")) target.remove_prefix(3);
  return target.substr(0, target.find('#'));
}

std::string link_text(const Span& link, PageName page_name) {
  if (link.target.starts_with('#')) return link.text;
  if (const std::string_view topic = topic_of(link.target); !topic.empty()) {
    return link.text == topic ? page_name(topic) : fmt::format("{} ({})", link.text, page_name(topic));
  }
  const std::string_view target = is_address(link.target) ? std::string_view(link.target) : path_of(link.target);
  return link.text == target ? link.text : fmt::format("{} ({})", link.text, target);
}

Style style_of(Span::Kind kind) {
  const bool marked = kind == Span::Kind::kStrong || kind == Span::Kind::kEmphasis || kind == Span::Kind::kCode;
  return marked ? Style::kBold : Style::kPlain;
}

std::size_t width_of(const StyledLine& line) {
  return std::accumulate(line.begin(), line.end(), std::size_t{0},
                         [](std::size_t sum, const StyledText& part) { return sum + display_width(part.text); });
}

/// Words of the spans; a word may change its style, as `code`, does.
std::vector<StyledLine> words_of(const Spans& spans, PageName page_name) {
  std::vector<StyledLine> words(1);
  for (const Span& span : spans) {
    const Style style = style_of(span.kind);
    std::string part;
    for (const char c : spelled_out(span, page_name)) {
      if (c != ' ') {
        part += c;
        continue;
      }
      if (!part.empty()) words.back().push_back({std::exchange(part, {}), style});
      if (!words.back().empty()) words.emplace_back();
    }
    if (!part.empty()) words.back().push_back({std::move(part), style});
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// A table's cells as words, and its columns' widths.
class TableLayout {
 public:
  TableLayout(const Block& table, std::size_t width, PageName page_name)
      : table_(table), width_(width), page_name_(page_name) {
    for (std::size_t c = 0; c < table.right.size(); ++c) {
      natural_.push_back(widest(c, std::string::npos));
      least_.push_back(widest(c, 0));
    }
  }

  std::vector<std::vector<StyledLine>> tables() const {
    std::vector<std::vector<StyledLine>> out;
    for (const std::vector<std::size_t>& columns : groups()) out.push_back(lines(columns));
    return out;
  }

 private:
  using Columns = std::vector<std::size_t>;

  /// The longest line of a column when cells are wrapped to `width`.
  std::size_t widest(std::size_t column, std::size_t width) const {
    std::size_t result = 0;
    for (const auto& row : table_.rows) {
      for (const StyledLine& line : wrapped_spans(row[column], width, page_name_)) {
        result = std::max(result, width_of(line));
      }
    }
    return result;
  }

  static std::size_t total(const Columns& columns, const std::vector<std::size_t>& widths) {
    std::size_t sum = 0;
    for (const std::size_t c : columns) sum += widths[c] + kColumnGap;
    return sum - kColumnGap;
  }

  /// All columns where they fit; otherwise as many at a time as do.
  std::vector<Columns> groups() const {
    Columns all(natural_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (all.size() < 3 || total(all, least_) <= width_) return {all};
    std::vector<Columns> out{{0, 1}};
    for (std::size_t c = 2; c < all.size(); ++c) {
      Columns with = out.back();
      with.push_back(c);
      if (total(with, natural_) <= width_) {
        out.back() = std::move(with);
      } else {
        out.push_back({0, c});
      }
    }
    return out;
  }

  /// The widest column gives way first, down to its longest word.
  std::vector<std::size_t> fitted(const Columns& columns) const {
    std::vector<std::size_t> widths = natural_;
    while (total(columns, widths) > width_) {
      const auto slack = [&](std::size_t c) { return widths[c] > least_[c] ? widths[c] : 0; };
      const std::size_t widest = *std::ranges::max_element(columns, {}, slack);
      if (slack(widest) == 0) break;
      --widths[widest];
    }
    return widths;
  }

  std::vector<StyledLine> lines(const Columns& columns) const {
    const std::vector<std::size_t> widths = fitted(columns);
    std::vector<StyledLine> out;
    for (const auto& row : table_.rows) {
      add_row(row, columns, widths, out);
      if (&row == &table_.rows.front()) {
        const std::size_t across = std::min(total(columns, widths), width_);
        out.push_back({{std::string(across, '-'), Style::kDim}});
      }
    }
    return out;
  }

  void add_row(const std::vector<Spans>& row, const Columns& columns, const std::vector<std::size_t>& widths,
               std::vector<StyledLine>& out) const {
    const std::size_t first = out.size();
    std::size_t used = 0;
    for (const std::size_t c : columns) {
      const auto cell = wrapped_spans(row[c], widths[c], page_name_);
      for (std::size_t h = 0; h < cell.size(); ++h) {
        if (out.size() <= first + h) out.emplace_back();
        place(cell[h], used, widths[c], table_.right[c], out[first + h]);
      }
      used += widths[c] + kColumnGap;
    }
  }

  static void place(const StyledLine& cell, std::size_t column, std::size_t width, bool right, StyledLine& line) {
    const std::size_t indent = right ? width - std::min(width, width_of(cell)) : 0;
    line.push_back({std::string(column + indent - width_of(line), ' ')});
    line.insert(line.end(), cell.begin(), cell.end());
  }

  const Block& table_;
  std::size_t width_;
  PageName page_name_;
  std::vector<std::size_t> natural_;
  std::vector<std::size_t> least_;
};

}  // namespace

std::string help_page_name(std::string_view topic) { return fmt::format("tangram help {}", topic); }
std::string man_page_name(std::string_view topic) { return fmt::format("tangram-{}(7)", topic); }

std::string spelled_out(const Span& span, PageName page_name) {
  if (span.kind == Span::Kind::kLink) return link_text(span, page_name);
  if (span.kind == Span::Kind::kPicture) return fmt::format("[{}: {}]", span.text, path_of(span.target));
  return span.text;
}

std::vector<StyledLine> wrapped_spans(const Spans& spans, std::size_t width, PageName page_name) {
  std::vector<StyledLine> lines;
  std::size_t used = 0;
  for (StyledLine& word : words_of(spans, page_name)) {
    const std::size_t length = width_of(word);
    if (lines.empty() || (used + 1 > width || length > width - used - 1)) {
      lines.push_back(std::move(word));
      used = length;
      continue;
    }
    lines.back().push_back({" "});
    lines.back().insert(lines.back().end(), word.begin(), word.end());
    used += 1 + length;
  }
  return lines;
}

std::vector<std::vector<StyledLine>> table_lines(const Block& table, std::size_t width, PageName page_name) {
  return TableLayout(table, width, page_name).tables();
}

}  // namespace tangram::app
