// Numbers in what people write. Goes in: a text, "8x200 Gb/s HDR". Comes out: its numbers, each with the text around
// it.
#pragma once

#include <string_view>
#include <vector>

namespace tangram::accuracy {

/// One number of a text, and what stands before and after it: views into that text.
struct TextNumber {
  double value = 0;
  bool whole = true;  ///< digits alone, no decimals
  std::string_view before;
  std::string_view after;

  /// "200 Gb/s" and "200Gb/s" are in "Gb/s".
  [[nodiscard]] bool in(std::string_view unit) const;
};

/// Decimals without sign or exponent, first to last; a sequence of more than twelve digits is no quantity and left out.
/// O(text).
[[nodiscard]] std::vector<TextNumber> numbers_in(std::string_view text);

}  // namespace tangram::accuracy
