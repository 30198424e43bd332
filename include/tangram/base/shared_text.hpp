#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tangram {

/// A text that copies share, of records that are copied more often than read.
class SharedText {
 public:
  SharedText() = default;
  // NOLINTNEXTLINE(google-explicit-constructor, hicpp-explicit-conversions): a text like any other
  SharedText(std::string text) {
    if (!text.empty()) text_ = std::make_shared<const std::string>(std::move(text));
  }
  // NOLINTNEXTLINE(google-explicit-constructor, hicpp-explicit-conversions)
  SharedText(const char* text) : SharedText(std::string(text)) {}

  [[nodiscard]] bool empty() const { return text_ == nullptr; }
  [[nodiscard]] std::string_view view() const { return text_ ? std::string_view(*text_) : std::string_view(); }
  [[nodiscard]] std::string str() const { return std::string(view()); }
  // NOLINTNEXTLINE(google-explicit-constructor, hicpp-explicit-conversions)
  operator std::string_view() const { return view(); }

  friend bool operator==(const SharedText& a, const SharedText& b) {
    return a.text_ == b.text_ || a.view() == b.view();
  }

 private:
  std::shared_ptr<const std::string> text_;  ///< nullptr: empty
};

}  // namespace tangram
