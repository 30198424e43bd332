// What a register may hold, as far as pointers go. Goes in: origins, combined as instructions combine values. Comes
// out: the bases that an address made of them may have.
#pragma once

#include <set>
#include <vector>

#include "tangram/ptx/analysis.hpp"

namespace tangram::ptx {

/// Origins that were added up: of `p + i` for a pointer parameter p and a loaded 64-bit value i both. Empty: a number
/// that is no pointer.
using Sum = std::vector<Base>;

/// A set of sums, any of which the value may be. No sum at all: never computed.
class Origins {
 public:
  [[nodiscard]] static Origins number(bool data = false);
  [[nodiscard]] static Origins of(Base base, bool data = false);

  /// Any of both; true where that is more than before.
  bool join(const Origins& other);
  /// A value of the one plus a value of the other.
  [[nodiscard]] static Origins sum(const Origins& a, const Origins& b);
  /// What remains when a pointer cannot have survived the operation: a number.
  [[nodiscard]] Origins scaled() const;

  [[nodiscard]] const std::set<Sum>& sums() const { return sums_; }
  [[nodiscard]] bool data() const { return data_; }

 private:
  void limit();

  std::set<Sum> sums_;
  bool data_ = false;  ///< depends on what was loaded
};

}  // namespace tangram::ptx
