// From the events of a parser to a tree of Nodes. What both formats forbid is found here: duplicate keys and deep
// nesting.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "source_text.hpp"
#include "tangram/io/document.hpp"

namespace tangram::io {

inline constexpr std::size_t kMaxDepth = 64;

class TreeBuilder {
 public:
  /// Keeps a reference: the document outlives the builder.
  explicit TreeBuilder(const Document& document);

  /// False, with an error, when the nesting is too deep: the parser must stop.
  [[nodiscard]] bool open(NodeKind kind, Span span);
  void close();
  void key(std::string text, Span span);
  void scalar(Node node, Span span);

  void error(Span span, std::string code, std::string message, std::string hint = {});
  /// "number out of range", the one mistake a well-formed number can hold.
  void number_out_of_range(std::string_view text, Span span);

  /// The next event is a key.
  [[nodiscard]] bool expects_key() const;
  [[nodiscard]] bool inside_object() const { return !frames_.empty() && frames_.back().node.kind == NodeKind::kObject; }
  [[nodiscard]] bool inside_array() const { return !frames_.empty() && frames_.back().node.kind == NodeKind::kArray; }
  /// Line at which the innermost open object or array starts, 0 outside of any.
  [[nodiscard]] int open_line() const { return frames_.empty() ? 0 : frames_.back().node.line; }
  [[nodiscard]] bool finished() const { return finished_; }

  [[nodiscard]] Diagnostics& errors() { return errors_; }
  [[nodiscard]] Node take_root() { return std::move(root_); }

 private:
  struct Frame {
    Node node;
    bool has_key = false;                        // the last member waits for its value
    std::unordered_map<std::string, int> lines;  // key -> line, filled once linear search gets slow
  };

  void attach(Node node);
  void report_duplicate(Frame& frame, const std::string& text, Span span);
  [[nodiscard]] std::string pointer() const;

  const Document& document_;
  LineIndex lines_;
  std::vector<Frame> frames_;
  Node root_;
  bool finished_ = false;
  Diagnostics errors_;
};

/// Appends "/key" with the escapes of RFC 6901.
void append_pointer(std::string& pointer, std::string_view key);

}  // namespace tangram::io
