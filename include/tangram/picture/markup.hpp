// HTML and SVG that are well-formed by construction. Goes in: plain text and numbers. Comes out: markup. Only text()
// and element() make it, so what a file says never becomes a tag, an attribute or a script.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tangram::picture {

/// A name and a plain value.
class Attribute {
 public:
  Attribute(std::string_view name, std::string_view value) : name_(name), value_(value) {}
  /// At most two decimals; finite.
  Attribute(std::string_view name, double value);
  Attribute(std::string_view name, std::integral auto value) : name_(name), value_(std::to_string(value)) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& value() const { return value_; }

 private:
  std::string name_;
  std::string value_;
};

class Markup {
 public:
  Markup() = default;

  Markup& operator+=(const Markup& other) {
    html_ += other.html_;
    return *this;
  }
  friend Markup operator+(Markup a, const Markup& b) { return a += b; }

  [[nodiscard]] const std::string& html() const { return html_; }
  [[nodiscard]] bool empty() const { return html_.empty(); }

 private:
  explicit Markup(std::string html) : html_(std::move(html)) {}
  friend Markup text(std::string_view plain);
  friend Markup element(std::string_view name, std::vector<Attribute> attributes, const Markup& content);

  std::string html_;
};

/// What stands in a page for a plain text: & < > " ' as references; what XML has no place for (control characters,
/// bytes that are no UTF-8) as U+FFFD.
[[nodiscard]] std::string escaped(std::string_view plain);

/// The number with at most two decimals, as attributes have it; finite.
[[nodiscard]] std::string number(double value);

[[nodiscard]] Markup text(std::string_view plain);

/// <name attributes>content</name>. Attributes without a value are left out.
[[nodiscard]] Markup element(std::string_view name, std::vector<Attribute> attributes, const Markup& content = {});
[[nodiscard]] Markup element(std::string_view name, std::vector<Attribute> attributes, std::string_view plain);

}  // namespace tangram::picture
