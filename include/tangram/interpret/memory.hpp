// The memory of an emulated device. Goes in: allocations. Comes out: their bytes, and which of them kernels read, wrote
// and updated.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace tangram::interpret {

/// What happened to a byte.
struct Touched {
  bool read = false;
  bool written = false;
  bool updated = false;  ///< by an atomic operation

  bool operator==(const Touched&) const = default;
};

class Memory {
 public:
  /// The address of the first of `bytes` zeros. Allocations never touch each other.
  std::uint64_t allocate(std::int64_t bytes);

  /// All bytes of the allocation that begins there.
  [[nodiscard]] std::span<std::uint8_t> bytes(std::uint64_t address);
  [[nodiscard]] std::span<const Touched> touched(std::uint64_t address) const;
  /// From here on nothing was touched.
  void forget_touched();

  enum class Access : std::uint8_t { kRead, kWrite, kUpdate };
  /// The bytes at an address within some allocation, recorded; empty where they are not all in one.
  [[nodiscard]] std::span<std::uint8_t> access(std::uint64_t address, std::size_t count, Access how);

 private:
  struct Allocation {
    std::vector<std::uint8_t> bytes;
    std::vector<Touched> touched;
  };
  std::map<std::uint64_t, Allocation> allocations_;
  std::uint64_t next_ = 0x1000'0000;
};

}  // namespace tangram::interpret
