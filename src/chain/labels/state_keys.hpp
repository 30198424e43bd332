// What tells the states of one position apart. Goes in: a program. Comes out: keys of units used, which an option leads
// from one to the next, and what a key leaves of the program's resources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loads.hpp"
#include "tangram/chain/program.hpp"
#include "tangram/chain/radices.hpp"

namespace tangram::chain {

/// Units used, mixed radix over the classes, in two words.
struct StateKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::int32_t load = Loads::kNothing;
  /// Of classic warm-ups: a smaller Q can then come with fewer microbatches in flight, and allow less.
  std::int64_t depth = 0;
  /// Price key of the last stage, of interleaved programs: the first stage decides on the way around.
  std::int32_t tail = 0;
  bool operator==(const StateKey&) const = default;
};

struct StateKeyHash {
  std::size_t operator()(const StateKey& key) const {
    std::uint64_t h = key.low * std::uint64_t{0x9E3779B97F4A7C15};
    h ^= (key.high + 0x7F4A7C15U) * std::uint64_t{0xC2B2AE3D27D4EB4F} + (h << 6) + (h >> 2);
    h ^= static_cast<std::uint64_t>(key.load) * std::uint64_t{0x27D4EB2F165667C5} + (h << 6) + (h >> 2);
    h ^= static_cast<std::uint64_t>(key.depth) * std::uint64_t{0x165667B19E3779F9} + (h << 6) + (h >> 2);
    h ^= static_cast<std::uint64_t>(key.tail) * std::uint64_t{0x2545F4914F6CDD1D} + (h << 6) + (h >> 2);
    return static_cast<std::size_t>(h ^ (h >> 29));
  }
};

class StateKeys {
 public:
  explicit StateKeys(const Program& program);

  [[nodiscard]] StateKey after(const StateKey& key, int option);
  /// Whether the option's shapes can be placed beside those of the key.
  [[nodiscard]] bool has_room(const StateKey& key, int option) {
    return loads_.after(key.load, option) != Loads::kTooMuch;
  }
  /// As in Program::resources.
  void find_left(const StateKey& key, std::vector<std::int64_t>& left) const;

 private:
  const Program& program_;
  const std::vector<std::int64_t> resources_;
  const std::vector<Radix> radices_;
  Loads loads_;
};

}  // namespace tangram::chain
