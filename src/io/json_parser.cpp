#include <nlohmann/json.hpp>
#include <utility>

#include "json_syntax.hpp"
#include "number_text.hpp"
#include "source_text.hpp"
#include "tangram/io/document.hpp"
#include "tree_builder.hpp"

namespace tangram::io {

namespace {

using nlohmann::json;

// The library validates and says what comes next, but not where. So each event re-scans the text from the end of the
// previous token: behind blanks, comments, commas and colons the next token starts.
class PositionedBuilder final : public nlohmann::json_sax<json> {
 public:
  explicit PositionedBuilder(const Document& document) : text_(document.text), builder_(document) {}

  bool null() override { return literal({}, 4); }

  bool boolean(bool value) override {
    Node node;
    node.kind = NodeKind::kBoolean;
    node.boolean = value;
    return literal(std::move(node), value ? 4 : 5);
  }

  bool number_integer(number_integer_t) override { return number(); }
  bool number_unsigned(number_unsigned_t) override { return number(); }
  bool number_float(number_float_t, const string_t&) override { return number(); }

  bool string(string_t& value) override {
    Node node;
    node.kind = NodeKind::kString;
    node.text = std::move(value);
    builder_.scalar(std::move(node), next_string());
    return true;
  }

  bool key(string_t& value) override {
    builder_.key(std::move(value), next_string());
    after_key_ = true;
    return true;
  }

  bool start_object(std::size_t) override { return open(NodeKind::kObject); }
  bool start_array(std::size_t) override { return open(NodeKind::kArray); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool binary(binary_t&) override { return false; }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    reported_ = position;
    return false;
  }

  [[nodiscard]] JsonFailure failure() const { return {at_, state(), builder_.open_line(), reported_}; }
  [[nodiscard]] TreeBuilder& builder() { return builder_; }

 private:
  Span next(std::size_t length) {
    const std::size_t start = token_start();
    at_ = start + length;
    after_key_ = false;
    after_open_ = false;
    return {start, length};
  }

  Span next_string() {
    const std::size_t start = token_start();
    return next(skip_json_string(text_, start) - start);
  }

  [[nodiscard]] std::size_t token_start() const {
    std::size_t i = skip_json_blanks(text_, at_);
    while (i < text_.size() && (text_[i] == ',' || text_[i] == ':')) i = skip_json_blanks(text_, i + 1);
    return i;
  }

  bool literal(Node node, std::size_t length) {
    builder_.scalar(std::move(node), next(length));
    return true;
  }

  bool number() {
    const std::size_t start = token_start();
    const std::string_view token = text_.substr(start, json_number_length(text_.substr(start)));
    const Span span = next(token.size());
    std::optional<Node> node = number_node(token);
    if (!node) builder_.number_out_of_range(token, span);
    builder_.scalar(std::move(node).value_or(Node{}), span);
    return true;
  }

  bool open(NodeKind kind) {
    const bool fits = builder_.open(kind, next(1));
    after_open_ = true;
    return fits;
  }

  bool close() {
    next(1);
    builder_.close();
    return true;
  }

  [[nodiscard]] JsonState state() const {
    if (builder_.finished()) return JsonState::kEnd;
    if (builder_.inside_array()) return after_open_ ? JsonState::kArrayStart : JsonState::kItem;
    if (!builder_.inside_object()) return JsonState::kStart;
    if (after_key_) return JsonState::kKey;
    return after_open_ ? JsonState::kObjectStart : JsonState::kMember;
  }

  std::string_view text_;
  TreeBuilder builder_;
  std::size_t at_ = 0;
  std::size_t reported_ = 0;
  bool after_key_ = false;
  bool after_open_ = false;
};

}  // namespace

Expected<Document> parse_json(std::string text, std::string file) {
  Document document = make_document(std::move(text), std::move(file));
  if (auto bad = check_encoding(document)) return fail(*std::move(bad));
  if (skip_json_blanks(document.text, 0) == document.text.size()) {
    return fail(diagnostic_at(document, {0, 1}, "syntax", "the file holds no value"));
  }
  PositionedBuilder handler(document);
  const bool accepted = json::sax_parse(document.text, &handler, json::input_format_t::json, true, true);
  Diagnostics& errors = handler.builder().errors();
  const bool stopped_by_us = !errors.empty() && errors.back().code == "too-deep";
  if (!accepted && !stopped_by_us) errors.push_back(explain_json_failure(document, handler.failure()));
  if (!errors.empty()) return fail(std::move(errors));
  document.root = handler.builder().take_root();
  return document;
}

}  // namespace tangram::io
