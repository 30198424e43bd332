// A set of the enumerators of one small enumeration, of which none has a value above 31.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace tangram {

template <class E>
struct EnumSet {
  std::uint32_t bits = 0;

  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<E> members) {
    for (const E member : members) add(member);
  }
  constexpr void add(E member) { bits |= bit(member); }
  [[nodiscard]] constexpr bool empty() const { return bits == 0; }
  [[nodiscard]] constexpr bool has(E member) const { return (bits & bit(member)) != 0; }
  [[nodiscard]] constexpr EnumSet with(EnumSet others) const {
    others.bits |= bits;
    return others;
  }
  [[nodiscard]] constexpr EnumSet without(E member) const {
    EnumSet others = *this;
    others.bits &= ~bit(member);
    return others;
  }
  constexpr bool operator==(const EnumSet&) const = default;

 private:
  static constexpr std::uint32_t bit(E member) { return std::uint32_t{1} << static_cast<unsigned>(member); }
};

}  // namespace tangram
