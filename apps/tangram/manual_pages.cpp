#include "manual_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "markdown.hpp"
#include "page_layout.hpp"
#include "table.hpp"
#include "tangram/base/version.hpp"
#include "troff.hpp"

namespace tangram::app {

/// Generated from apps/tangram/manual.
std::vector<std::pair<std::string_view, std::string_view>> manual_files();

namespace {

constexpr std::size_t kManWidth = 72;  // of a man page in 80 columns, beside its margin

std::string painted(const StyledLine& line, const Terminal& terminal) {
  std::string out;
  for (const StyledText& part : line) out += terminal.styled(part.text, part.style);
  return out + "\n";
}

/// A block of a page for a terminal.
class TextWriter {
 public:
  explicit TextWriter(const Terminal& terminal) : terminal_(terminal), width_(terminal.page_width()) {}

  std::string write(const Block& block) const {
    switch (block.kind) {
      case Block::Kind::kHeading: return heading(block);
      case Block::Kind::kParagraph: return prose(block.text, "", "");
      case Block::Kind::kItem: return prose(block.text, block.marker + " ", std::string(block.marker.size() + 1, ' '));
      case Block::Kind::kCode: return code(block);
      case Block::Kind::kTable: return tables(block);
    }
    return {};
  }

 private:
  std::string heading(const Block& block) const {
    std::string text;
    for (const Span& span : block.text) text += spelled_out(span, help_page_name);
    std::string out = terminal_.styled(text, Style::kBold) + "\n";
    if (block.level <= 2) out += std::string(display_width(text), block.level == 1 ? '=' : '-') + "\n";
    return out;
  }

  std::string prose(const Spans& spans, std::string_view first, const std::string& other) const {
    const std::size_t width = terminal_.text_width() - other.size();
    std::string out;
    for (const StyledLine& line : wrapped_spans(spans, width, help_page_name)) {
      out.append(out.empty() ? first : other).append(painted(line, terminal_));
    }
    return out;
  }

  /// Indented where that leaves it within the width.
  std::string code(const Block& block) const {
    std::size_t widest = 0;
    for (const std::string& line : block.lines) widest = std::max(widest, display_width(line));
    const std::string indent(widest + 2 <= width_ ? 2 : 0, ' ');
    std::string out;
    for (const std::string& line : block.lines) {
      if (!line.empty()) out += indent;
      out += terminal_.styled(line, line.starts_with("$ ") ? Style::kBold : Style::kPlain) + "\n";
    }
    return out;
  }

  std::string tables(const Block& block) const {
    std::string out;
    for (const auto& table : table_lines(block, width_, help_page_name)) {
      if (!out.empty()) out += "\n";
      for (const StyledLine& line : table) out += painted(line, terminal_);
    }
    return out;
  }

  const Terminal& terminal_;
  std::size_t width_;
};

std::string troff_span(const Span& span) {
  const std::string text = troff(spelled_out(span, man_page_name));
  switch (span.kind) {
    case Span::Kind::kStrong:
    case Span::Kind::kCode: return fmt::format("\\fB{}\\fR", text);
    case Span::Kind::kEmphasis: return fmt::format("\\fI{}\\fR", text);
    case Span::Kind::kText:
    case Span::Kind::kLink:
    case Span::Kind::kPicture: return text;
  }
  return text;
}

std::string troff_spans(const Spans& spans) {
  std::string out;
  for (const Span& span : spans) out += troff_span(span);
  return out.starts_with('.') ? "\\&" + out : out;
}

/// Lines as they are.
std::string troff_lines(const std::string& lines) { return ".PP\n.nf\n" + troff(lines) + ".fi\n"; }

std::string troff_table(const Block& block) {
  const Terminal plain({});
  std::string out;
  for (const auto& table : table_lines(block, kManWidth, man_page_name)) {
    std::string lines;
    for (const StyledLine& line : table) lines += painted(line, plain);
    out += troff_lines(lines);
  }
  return out;
}

std::string troff_block(const Block& block) {
  switch (block.kind) {
    case Block::Kind::kHeading:
      return fmt::format(".S{} \"{}\"\n", block.level <= 2 ? 'H' : 'S',
                         replaced(troff_spans(block.text), "\"", "\\(dq"));
    case Block::Kind::kParagraph: return fmt::format(".PP\n{}\n", troff_spans(block.text));
    case Block::Kind::kItem:
      return fmt::format(".IP \"{}\" {}\n{}\n", block.marker == "*" ? "\\(bu" : troff(block.marker),
                         block.marker.size() + 1, troff_spans(block.text));
    case Block::Kind::kCode: return troff_lines(fmt::format("{}\n", fmt::join(block.lines, "\n")));
    case Block::Kind::kTable: return troff_table(block);
  }
  return {};
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string see_also(const std::string& topic) {
  std::string out = ".SH \"SEE ALSO\"\n.BR tangram (1)";
  for (const std::string& other : manual_topics()) {
    if (other != topic) out += fmt::format(",\n.BR tangram\\-{} (7)", troff(other));
  }
  return out + "\n";
}

}  // namespace

std::string ManualPage::title() const {
  const std::string_view line = markdown.substr(0, markdown.find('\n'));
  return std::string(line.substr(std::min(line.size(), std::string_view("# ").size())));
}

std::vector<ManualPage> manual_pages() {
  std::vector<ManualPage> pages;
  for (const auto& [file, text] : manual_files()) pages.push_back({std::string(file.substr(0, file.find('.'))), text});
  return pages;
}

std::vector<std::string> manual_topics() {
  std::vector<std::string> topics;
  for (ManualPage& page : manual_pages()) topics.push_back(std::move(page.topic));
  return topics;
}

std::optional<ManualPage> find_page(std::string_view topic) {
  for (ManualPage& page : manual_pages()) {
    if (page.topic == topic) return std::move(page);
  }
  return std::nullopt;
}

std::string page_text(std::string_view markdown, const Terminal& terminal) {
  const TextWriter writer(terminal);
  std::string out;
  bool list = false;
  for (const Block& block : read_markdown(markdown)) {
    const bool item = block.kind == Block::Kind::kItem;
    if (!out.empty() && !(item && list)) out += "\n";
    out += writer.write(block);
    list = item;
  }
  return out;
}

std::string page_troff(const ManualPage& page) {
  std::string out = fmt::format(
      ".TH TANGRAM\\-{} 7 \"\" \"tangram {}\" \"Tangram Manual\"\n.SH NAME\ntangram\\-{} \\- {}\n.SH DESCRIPTION\n",
      troff(upper(page.topic)), version(), troff(page.topic), troff(page.title()));
  for (const Block& block : read_markdown(page.markdown)) {
    if (block.kind != Block::Kind::kHeading || block.level > 1) out += troff_block(block);
  }
  return out + see_also(page.topic);
}

}  // namespace tangram::app
