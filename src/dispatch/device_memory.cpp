#include "device_memory.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::dispatch {

namespace {

int buffer_named(const kernels::KernelGraph& graph, const std::string& name) {
  return static_cast<int>(std::ranges::find(graph.buffers, name, &kernels::Buffer::id) - graph.buffers.begin());
}

}  // namespace

DeviceMemory::DeviceMemory(const Pieces& pieces) : pieces_(pieces) {
  for (int s = 0; s < pieces.storage_count(); ++s) {
    addresses_.push_back(memory_.allocate(pieces.bytes_of_storage(s)));
    std::ranges::fill(memory_.bytes(addresses_.back()), std::uint8_t{0xff});
  }
}

std::span<std::uint8_t> DeviceMemory::bytes(const Piece& piece) {
  return memory_.bytes(at(addresses_, piece.storage))
      .subspan(static_cast<std::size_t>(piece.begin), static_cast<std::size_t>(piece.end - piece.begin));
}

void DeviceMemory::place(const Piece& piece, const Contents& contents) {
  std::copy_n(at(contents, piece.storage).begin() + piece.begin, piece.end - piece.begin, bytes(piece).begin());
}

std::vector<std::uint8_t> DeviceMemory::read(const PieceRange& range) {
  std::vector<std::uint8_t> result;
  for (int p = range.first; p < range.last; ++p) {
    const auto of = bytes(pieces_.piece(p));
    result.insert(result.end(), of.begin(), of.end());
  }
  return result;
}

void DeviceMemory::write(const PieceRange& range, std::span<const std::uint8_t> from) {
  for (int p = range.first; p < range.last; ++p) {
    const auto to = bytes(pieces_.piece(p));
    std::ranges::copy(from.first(to.size()), to.begin());
    from = from.subspan(to.size());
  }
}

Expected<void> DeviceMemory::run(const Code& code, int kernel, const kernels::KernelGraph& graph) {
  const ptx::Launch& launch = at(code.launches, kernel);
  interpret::GridLaunch grid;
  grid.entry = launch.entry;
  grid.grid = launch.grid;
  grid.block = launch.block;
  if (at(graph.kernels, kernel).launch) grid.shared_bytes = at(graph.kernels, kernel).launch->shared.value();
  for (const ptx::Argument& argument : launch.arguments) {
    if (const auto* buffer = std::get_if<ptx::BufferArgument>(&argument)) {
      const int storage = pieces_.storage_of(buffer_named(graph, buffer->name));
      grid.arguments.push_back(
          interpret::argument(at(addresses_, storage) + static_cast<std::uint64_t>(buffer->offset)));
    } else {
      grid.arguments.push_back(interpret::argument(std::get<std::int64_t>(argument)));
    }
  }
  memory_.forget_touched();
  return interpret::execute(code.module, grid, memory_);
}

std::span<const interpret::Touched> DeviceMemory::touched(int storage) const {
  return memory_.touched(at(addresses_, storage));
}

Contents contents_at_first(const kernels::KernelGraph& graph, const Pieces& pieces, const Code& code,
                           std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Contents contents;
  for (int s = 0; s < pieces.storage_count(); ++s) {
    std::vector<std::uint8_t>& of = contents.emplace_back(static_cast<std::size_t>(pieces.bytes_of_storage(s)));
    for (std::size_t i = 0; i + sizeof(float) <= of.size(); i += sizeof(float)) {
      // Multiples of 2^-7: sums of few products are exact.
      const float value = static_cast<float>(random() % 512) / 128.0F - 2.0F;
      std::memcpy(of.data() + i, &value, sizeof value);
    }
  }
  for (const ptx::Launch& launch : code.launches) {
    for (const ptx::Argument& argument : launch.arguments) {
      const auto* buffer = std::get_if<ptx::BufferArgument>(&argument);
      if (buffer == nullptr || buffer->integers.empty()) continue;
      auto& of = at(contents, pieces.storage_of(buffer_named(graph, buffer->name)));
      std::memcpy(of.data(), buffer->integers.data(), buffer->integers.size() * sizeof(std::int32_t));
    }
  }
  return contents;
}

}  // namespace tangram::dispatch
