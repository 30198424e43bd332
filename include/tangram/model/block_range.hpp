// Neighbouring blocks of a model's chain.
#pragma once

#include <compare>
#include <string>

namespace tangram::model {

/// Blocks [first, last).
struct BlockRange {
  int first = 0;
  int last = 0;
  [[nodiscard]] int count() const { return last - first; }
  auto operator<=>(const BlockRange&) const = default;
};

/// "0-3": first and last block.
[[nodiscard]] std::string to_string(const BlockRange& blocks);

}  // namespace tangram::model
