// The bytes of a graph's storages, cut wherever an access begins or ends: no access touches a part of a piece.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::dispatch {

struct Piece {
  int storage = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Pieces [first, last) of one buffer.
struct PieceRange {
  int buffer = 0;
  int first = 0;
  int last = 0;
};

class Pieces {
 public:
  /// `more`: what is cut as well, beside the kernels' accesses.
  explicit Pieces(const kernels::KernelGraph& graph, std::span<const kernels::Access> more = {});

  [[nodiscard]] int count() const { return static_cast<int>(pieces_.size()); }
  [[nodiscard]] const Piece& piece(int number) const;
  [[nodiscard]] int storage_count() const { return storages_.count; }
  [[nodiscard]] int storage_of(int buffer) const;
  [[nodiscard]] std::int64_t bytes_of_storage(int storage) const;
  /// All of the storage that the buffer lies in.
  [[nodiscard]] PieceRange storage_around(int buffer) const;
  /// That cover [offset, end) of the buffer; those that it cuts count whole.
  [[nodiscard]] PieceRange range(int buffer, std::int64_t offset, std::int64_t end) const;

 private:
  kernels::Storages storages_;
  std::vector<Piece> pieces_;  ///< by storage, then offset
  std::vector<int> first_;     ///< by storage, and behind the last one
};

/// What a kernel needs and what it leaves. A write that is not exact needs what was there.
struct Touches {
  std::vector<PieceRange> reads;
  std::vector<PieceRange> writes;
};
[[nodiscard]] Touches touches_of(const kernels::Kernel& kernel, const Pieces& pieces);

}  // namespace tangram::dispatch
