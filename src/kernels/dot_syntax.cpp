#include "dot_syntax.hpp"

#include <fmt/format.h>

#include <cctype>
#include <utility>

#include "place.hpp"

namespace tangram::kernels {
namespace {

enum class DotToken { kEnd, kWord, kArrow, kSign };

/// Words, quoted texts, arrows and single signs; comments and line ends do not matter.
class DotLexer {
 public:
  explicit DotLexer(std::string_view text) : text_(text) { advance(); }

  [[nodiscard]] DotToken kind() const { return kind_; }
  [[nodiscard]] const std::string& word() const { return word_; }
  [[nodiscard]] bool is(char sign) const { return kind_ == DotToken::kSign && word_.front() == sign; }
  [[nodiscard]] int line() const { return start_line_; }
  [[nodiscard]] int column() const { return start_column_; }
  [[nodiscard]] bool unterminated() const { return unterminated_; }

  void advance() {
    skip_space();
    start_line_ = line_;
    start_column_ = column_;
    word_.clear();
    if (text_.empty()) {
      kind_ = DotToken::kEnd;
    } else if (text_.front() == '"') {
      kind_ = DotToken::kWord;
      take_quoted();
    } else if (is_plain(text_.front())) {
      kind_ = DotToken::kWord;
      while (!text_.empty() && is_plain(text_.front())) word_ += take();
    } else if (text_.starts_with("->")) {
      kind_ = DotToken::kArrow;
      take();
      take();
    } else {
      kind_ = DotToken::kSign;
      word_ = take();
    }
  }

 private:
  static bool is_plain(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

  char take() {
    const char c = text_.front();
    text_.remove_prefix(1);
    ++column_;
    if (c == '\n') {
      ++line_;
      column_ = 1;
    }
    return c;
  }

  void skip_space() {
    while (!text_.empty()) {
      if (std::isspace(static_cast<unsigned char>(text_.front())) != 0) {
        take();
      } else if (text_.starts_with("//") || text_.front() == '#') {
        while (!text_.empty() && text_.front() != '\n') take();
      } else if (text_.starts_with("/*")) {
        while (!text_.empty() && !text_.starts_with("*/")) take();
        for (int i = 0; i < 2 && !text_.empty(); ++i) take();
      } else {
        return;
      }
    }
  }

  /// One that does not end is an end of the file.
  void take_quoted() {
    take();
    while (!text_.empty() && text_.front() != '"') {
      if (text_.front() == '\\' && text_.size() > 1) word_ += take();
      word_ += take();
    }
    unterminated_ = text_.empty();
    if (unterminated_) {
      kind_ = DotToken::kEnd;
    } else {
      take();
    }
  }

  std::string_view text_;
  DotToken kind_ = DotToken::kEnd;
  std::string word_;
  int line_ = 1;
  int column_ = 1;
  int start_line_ = 1;
  int start_column_ = 1;
  bool unterminated_ = false;
};

class DotReader {
 public:
  DotReader(std::string_view text, const std::string& file) : lexer_(text), file_(file) {}

  Expected<DotGraph> read() && {
    if (!take_word("digraph")) return fail(expected("\"digraph\""));
    if (lexer_.kind() == DotToken::kWord) lexer_.advance();  // its name
    if (!take('{')) return fail(expected("\"{\""));
    for (int depth = 1; depth > 0;) {
      if (take('}')) {
        --depth;
      } else if (take('{')) {
        ++depth;
      } else if (take(';') || take(',')) {
        continue;
      } else if (lexer_.kind() != DotToken::kWord) {
        return fail(expected("a node, an edge or \"}\""));
      } else if (!read_statement()) {
        return fail(expected("attributes or an edge"));
      }
    }
    return std::move(graph_);
  }

 private:
  [[nodiscard]] Diagnostic expected(std::string_view what) const {
    const std::string got = lexer_.kind() == DotToken::kEnd     ? "the end of the file"
                            : lexer_.kind() == DotToken::kArrow ? "\"->\""
                                                                : fmt::format("\"{}\"", lexer_.word().substr(0, 40));
    return mistake_at(
        file_, lexer_.line(), lexer_.column(), "syntax",
        lexer_.unterminated() ? "a quoted text that does not end" : fmt::format("expected {}, got {}", what, got),
        "graphs are as cudaGraphDebugDotPrint writes them");
  }

  bool take(char sign) {
    if (!lexer_.is(sign)) return false;
    lexer_.advance();
    return true;
  }

  bool take_word(std::string_view word) {
    if (lexer_.kind() != DotToken::kWord || lexer_.word() != word) return false;
    lexer_.advance();
    return true;
  }

  /// A node, an edge, an assignment, or the head of a subgraph.
  bool read_statement() {
    const std::string first = lexer_.word();
    const int line = lexer_.line();
    lexer_.advance();
    if (first == "subgraph") {
      if (lexer_.kind() == DotToken::kWord) lexer_.advance();
      return lexer_.is('{');
    }
    if (take('=')) {
      if (lexer_.kind() != DotToken::kWord) return false;
      lexer_.advance();
      return true;
    }
    std::string from = first;
    bool edge = false;
    while (lexer_.kind() == DotToken::kArrow) {
      lexer_.advance();
      if (lexer_.kind() != DotToken::kWord) return false;
      graph_.edges.push_back({from, lexer_.word(), line});
      from = lexer_.word();
      edge = true;
      lexer_.advance();
    }
    std::string label;
    if (lexer_.is('[') && !read_attributes(label)) return false;
    const bool of_all = first == "graph" || first == "node" || first == "edge";  // attributes of everything
    if (!edge && !of_all) graph_.nodes.push_back({first, std::move(label), line});
    return true;
  }

  bool read_attributes(std::string& label) {
    if (!take('[')) return false;
    while (!take(']')) {
      if (take(',') || take(';')) continue;
      if (lexer_.kind() != DotToken::kWord) return false;
      const std::string key = lexer_.word();
      lexer_.advance();
      if (!take('=') || lexer_.kind() != DotToken::kWord) return false;
      if (key == "label") label = lexer_.word();
      lexer_.advance();
    }
    return true;
  }

  DotLexer lexer_;
  const std::string& file_;
  DotGraph graph_;
};

}  // namespace

Expected<DotGraph> read_dot(std::string_view text, const std::string& file) { return DotReader(text, file).read(); }

}  // namespace tangram::kernels
