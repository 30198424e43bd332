#include "tree_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tangram::io {

namespace {

// Objects of the formats have a dozen keys; maps of a fleet may have thousands.
constexpr std::size_t kLinearSearch = 16;

void set_place(Node& node, const Place& place) {
  node.line = place.line;
  node.column = place.column;
  node.length = place.length;
}

}  // namespace

void append_pointer(std::string& pointer, std::string_view key) {
  pointer += '/';
  for (const char c : key) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
}

TreeBuilder::TreeBuilder(const Document& document) : document_(document), lines_(document.text) {}

bool TreeBuilder::open(NodeKind kind, Span span) {
  if (frames_.size() == kMaxDepth) {
    error(span, "too-deep", fmt::format("nested more than {} levels deep", kMaxDepth));
    return false;
  }
  Frame frame;
  frame.node.kind = kind;
  set_place(frame.node, lines_.place(span));
  frames_.push_back(std::move(frame));
  return true;
}

void TreeBuilder::close() {
  Node node = std::move(frames_.back().node);
  frames_.pop_back();
  attach(std::move(node));
}

void TreeBuilder::key(std::string text, Span span) {
  Frame& frame = frames_.back();
  const Place place = lines_.place(span);
  Member member;
  member.key = std::move(text);
  member.line = place.line;
  member.column = place.column;
  member.length = place.length;
  report_duplicate(frame, member.key, span);
  frame.node.members.push_back(std::move(member));
  frame.has_key = true;
}

void TreeBuilder::report_duplicate(Frame& frame, const std::string& text, Span span) {
  const auto& members = frame.node.members;
  int first = 0;
  if (members.size() < kLinearSearch) {
    const auto known = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.key == text; });
    if (known != members.end()) first = known->line;
  } else {
    if (frame.lines.empty()) {
      for (const Member& member : members) frame.lines.emplace(member.key, member.line);
    }
    const auto [known, is_new] = frame.lines.emplace(text, lines_.place(span).line);
    if (!is_new) first = known->second;
  }
  if (first == 0) return;
  error(span, "duplicate-key", fmt::format("duplicate key \"{}\"", text),
        fmt::format("it is first given at line {}", first));
  append_pointer(errors_.back().pointer, text);
}

void TreeBuilder::scalar(Node node, Span span) {
  set_place(node, lines_.place(span));
  attach(std::move(node));
}

void TreeBuilder::attach(Node node) {
  if (frames_.empty()) {
    root_ = std::move(node);
    finished_ = true;
    return;
  }
  Frame& frame = frames_.back();
  if (frame.node.kind == NodeKind::kArray) {
    frame.node.items.push_back(std::move(node));
  } else {
    frame.node.members.back().value = std::move(node);
    frame.has_key = false;
  }
}

void TreeBuilder::error(Span span, std::string code, std::string message, std::string hint) {
  const Place place = lines_.place(span);
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.where = {document_.file, place.line, place.column};
  diagnostic.pointer = pointer();
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  // Later ones are only counted, and finding a line costs a pass over the text.
  if (errors_.size() < kMaxDiagnostics) diagnostic.source_line = document_.line_text(place.line);
  diagnostic.length = place.length;
  errors_.push_back(std::move(diagnostic));
}

void TreeBuilder::number_out_of_range(std::string_view text, Span span) {
  error(span, "out-of-range", fmt::format("{} is beyond the range of a number", text));
}

bool TreeBuilder::expects_key() const { return inside_object() && !frames_.back().has_key; }

std::string TreeBuilder::pointer() const {
  std::string result;
  for (const Frame& frame : frames_) {
    if (frame.node.kind == NodeKind::kArray) {
      result += fmt::format("/{}", frame.node.items.size());
    } else if (frame.has_key) {
      append_pointer(result, frame.node.members.back().key);
    }
  }
  return result;
}

}  // namespace tangram::io
