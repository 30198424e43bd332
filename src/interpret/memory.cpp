#include "tangram/interpret/memory.hpp"

#include <algorithm>
#include <iterator>

#include "tangram/base/assert.hpp"

namespace tangram::interpret {

std::uint64_t Memory::allocate(std::int64_t bytes) {
  constexpr std::uint64_t kAlignment = 256;  // of cudaMalloc
  const std::uint64_t address = next_;
  const auto size = static_cast<std::size_t>(bytes);
  allocations_[address] = {std::vector<std::uint8_t>(size), std::vector<Touched>(size)};
  next_ += (static_cast<std::uint64_t>(bytes) / kAlignment + 2) * kAlignment;
  return address;
}

std::span<std::uint8_t> Memory::bytes(std::uint64_t address) {
  const auto found = allocations_.find(address);
  TANGRAM_ASSERT(found != allocations_.end());
  return found->second.bytes;
}

std::span<const Touched> Memory::touched(std::uint64_t address) const {
  const auto found = allocations_.find(address);
  TANGRAM_ASSERT(found != allocations_.end());
  return found->second.touched;
}

void Memory::forget_touched() {
  for (auto& [address, allocation] : allocations_) std::ranges::fill(allocation.touched, Touched{});
}

std::span<std::uint8_t> Memory::access(std::uint64_t address, std::size_t count, Access how) {
  auto found = allocations_.upper_bound(address);
  if (found == allocations_.begin()) return {};
  --found;
  Allocation& allocation = found->second;
  const std::uint64_t offset = address - found->first;
  if (offset > allocation.bytes.size() || count > allocation.bytes.size() - offset) return {};
  for (std::size_t i = 0; i < count; ++i) {
    Touched& byte = allocation.touched[offset + i];
    if (how == Access::kRead) byte.read = true;
    if (how == Access::kWrite) byte.written = true;
    if (how == Access::kUpdate) byte.updated = true;
  }
  return std::span(allocation.bytes).subspan(offset, count);
}

}  // namespace tangram::interpret
