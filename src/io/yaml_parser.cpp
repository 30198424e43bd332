#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "number_text.hpp"
#include "source_text.hpp"
#include "tangram/io/document.hpp"
#include "tree_builder.hpp"
#include "yaml_syntax.hpp"

namespace tangram::io {

namespace {

// Ends the parse from inside an event; what is wrong is already in the builder.
struct StopParsing {};

class EventBuilder final : public YAML::EventHandler {
 public:
  explicit EventBuilder(const Document& document) : text_(document.text), builder_(document) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (!builder_.finished()) return;
    const Span span = {offset(mark), 1};
    if (text_.substr(span.first).starts_with("---")) {
      stop({span.first, 3}, "unsupported-yaml", "a second document", "give each document its own file");
    }
    stop(span, "syntax", "unexpected text after the end of the document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Span span = check(mark, anchor);
    if (builder_.expects_key()) stop(span, "syntax", "a key is missing here", "write \"key: value\"");
    if (builder_.inside_object()) require_colon();
    builder_.scalar({}, span);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    stop(word_span(offset(mark)), "unsupported-yaml", "aliases are not supported",
         "write the value out, or quote a text that starts with *");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, anchor);
    const Span span = scalar_span(offset(mark), value);
    if (builder_.expects_key()) {
      last_key_ = span;
      return builder_.key(value, span);
    }
    const bool plain = tag == "?";
    if (plain && is_yaml_number(value)) return number(value, span);
    builder_.scalar(plain ? plain_scalar(value) : text_node(value), span);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(NodeKind::kArray, check(mark, anchor));
  }
  void OnSequenceEnd() override { builder_.close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(NodeKind::kObject, check(mark, anchor));
  }
  void OnMapEnd() override { builder_.close(); }

  [[nodiscard]] TreeBuilder& builder() { return builder_; }

  /// The library has failed. An open bracket shows as a lone word first, and then as what it is.
  void fail(Span span, std::string message, std::string hint) {
    if (lone_word_at_end_) builder_.errors().pop_back();
    builder_.error(span, "syntax", std::move(message), std::move(hint));
  }

 private:
  [[noreturn]] void stop(Span span, std::string code, std::string message, std::string hint = {}) {
    builder_.error(span, std::move(code), std::move(message), std::move(hint));
    throw StopParsing();
  }

  [[nodiscard]] std::size_t offset(const YAML::Mark& mark) const {
    return mark.pos < 0 ? 0 : std::min(static_cast<std::size_t>(mark.pos), text_.size());
  }

  // The mark of a node with properties is that of the first property.
  Span check(const YAML::Mark& mark, YAML::anchor_t anchor) {
    const std::size_t at = offset(mark);
    const char first = at < text_.size() ? text_[at] : '\n';
    if (anchor != YAML::NullAnchor || first == '&') {
      stop(word_span(at), "unsupported-yaml", "anchors are not supported",
           "write the value out, or quote a text that starts with &");
    }
    if (first == '!') {
      stop(word_span(at), "unsupported-yaml", "tags are not supported",
           "leave it out, or quote a text that starts with !");
    }
    return {at, 1};
  }

  [[nodiscard]] Span word_span(std::size_t at) const {
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n,[]{}", at), text_.size());
    return {at, std::max<std::size_t>(1, end - at)};
  }

  // The library gives the start of a scalar only. One that goes on over several lines is underlined on its first.
  [[nodiscard]] Span scalar_span(std::size_t at, const std::string& value) {
    const std::string_view rest = text_.substr(at);
    std::size_t length = 0;
    if (rest.starts_with('"') || rest.starts_with('\'')) {
      length = quoted_length(rest);
      // The library takes the end of the text for the closing quote when a line break comes before it.
      if (length == 0) stop({at, 1}, "syntax", "the quoted text is not closed", "end it with its quote");
    } else if (rest.starts_with(value)) {
      length = value.size();
    }
    // Looked for inside the scalar only: a flow sequence may have thousands on one line.
    const std::string_view own = length == 0 ? rest : rest.substr(0, length);
    const std::size_t line = end_of_content(own.substr(0, std::min(own.find_first_of("\r\n"), own.size())));
    return {at, std::max<std::size_t>(1, line)};
  }

  // With both quotes; 0 when the second is missing.
  static std::size_t quoted_length(std::string_view text) {
    const char quote = text[0];
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (quote == '"' && text[i] == '\\') {
        ++i;
      } else if (text[i] == quote) {
        const bool doubled = quote == '\'' && i + 1 < text.size() && text[i + 1] == quote;
        if (!doubled) return i + 1;
        ++i;
      }
    }
    return 0;
  }

  // The library gives a null value to a lone word: at the end of the text, and inside braces.
  void require_colon() {
    const std::size_t next = text_.find_first_not_of(" \t\r\n", last_key_.first + last_key_.length);
    if (next != std::string_view::npos && text_[next] == ':') return;
    builder_.error(last_key_, "syntax", "a key without a value", "write \"key: value\"");
    if (next != std::string_view::npos) throw StopParsing();
    lone_word_at_end_ = true;
  }

  static Node text_node(std::string value) {
    Node node;
    node.kind = NodeKind::kString;
    node.text = std::move(value);
    return node;
  }

  // YAML 1.2 core schema (section 10.3.2); the library reports its nulls itself.
  static Node plain_scalar(const std::string& value) {
    const bool yes = value == "true" || value == "True" || value == "TRUE";
    const bool no = value == "false" || value == "False" || value == "FALSE";
    if (!yes && !no) return text_node(value);
    Node node;
    node.kind = NodeKind::kBoolean;
    node.boolean = yes;
    return node;
  }

  void number(const std::string& value, Span span) {
    std::optional<Node> node = number_node(value);
    if (!node) builder_.number_out_of_range(value, span);
    builder_.scalar(std::move(node).value_or(Node{}), span);
  }

  void open(NodeKind kind, Span span) {
    if (builder_.expects_key()) {
      const bool bracket = text_[span.first] == '[' || text_[span.first] == '{';
      stop(span, "syntax", bracket ? "this bracket is not closed, or used as a key" : "a key must be a plain text");
    }
    if (!builder_.open(kind, span)) throw StopParsing();
  }

  std::string_view text_;
  TreeBuilder builder_;
  Span last_key_;
  bool lone_word_at_end_ = false;
};

// YAML 1.2, section 5.1: no control characters but tab and line breaks. The library takes U+0004 for the end.
std::optional<Diagnostic> check_control_characters(const Document& document) {
  const auto bad = std::find_if(document.text.begin(), document.text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0x7F || (byte < 0x20 && c != '\t' && c != '\n' && c != '\r');
  });
  if (bad == document.text.end()) return std::nullopt;
  const auto at = static_cast<std::size_t>(bad - document.text.begin());
  return diagnostic_at(document, {at, 1}, "invalid-text", "control character in the text",
                       fmt::format("write \"\\x{:02x}\" inside double quotes", static_cast<unsigned>(*bad)));
}

void run(const Document& document, EventBuilder& handler) {
  try {
    std::istringstream stream(document.text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
    }
  } catch (const StopParsing&) {
    return;
  } catch (const YAML::Exception& error) {
    const int at = std::max(0, error.mark.pos);
    YamlFailure failure = explain_yaml_failure(document.text, error.msg, static_cast<std::size_t>(at));
    handler.fail(failure.span, std::move(failure.message), std::move(failure.hint));
  }
}

}  // namespace

Expected<Document> parse_yaml(std::string text, std::string file) {
  Document document = make_document(std::move(text), std::move(file));
  if (auto bad = check_encoding(document)) return fail(*std::move(bad));
  if (auto bad = check_control_characters(document)) return fail(*std::move(bad));
  EventBuilder handler(document);
  run(document, handler);
  Diagnostics& errors = handler.builder().errors();
  if (!errors.empty()) return fail(std::move(errors));
  if (!handler.builder().finished()) {
    return fail(diagnostic_at(document, {0, 1}, "syntax", "the file holds no value"));
  }
  document.root = handler.builder().take_root();
  return document;
}

}  // namespace tangram::io
