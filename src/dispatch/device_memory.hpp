// The bytes of one emulated device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pieces.hpp"
#include "tangram/base/expected.hpp"
#include "tangram/dispatch/code.hpp"
#include "tangram/interpret/interpret.hpp"

namespace tangram::dispatch {

using Contents = std::vector<std::vector<std::uint8_t>>;  ///< bytes by storage

class DeviceMemory {
 public:
  /// All storages, filled with 0xff.
  explicit DeviceMemory(const Pieces& pieces);

  void place(const Piece& piece, const Contents& contents);
  /// A copy of the bytes of these pieces, one behind the other.
  [[nodiscard]] std::vector<std::uint8_t> read(const PieceRange& range);
  void write(const PieceRange& range, std::span<const std::uint8_t> bytes);

  /// Forgets what was touched before.
  [[nodiscard]] Expected<void> run(const Code& code, int kernel, const kernels::KernelGraph& graph);
  [[nodiscard]] std::span<const interpret::Touched> touched(int storage) const;

 private:
  [[nodiscard]] std::span<std::uint8_t> bytes(const Piece& piece);

  const Pieces& pieces_;
  interpret::Memory memory_;
  std::vector<std::uint64_t> addresses_;  // by storage
};

/// What storages hold at the beginning: integers where launches list them, else floats from -2 to 2.
[[nodiscard]] Contents contents_at_first(const kernels::KernelGraph& graph, const Pieces& pieces, const Code& code,
                                         std::uint64_t seed);

}  // namespace tangram::dispatch
