#include "pieces.hpp"

#include <algorithm>
#include <set>

#include "tangram/base/at.hpp"

namespace tangram::dispatch {

Pieces::Pieces(const kernels::KernelGraph& graph, std::span<const kernels::Access> more)
    : storages_(kernels::storages_of(graph)) {
  std::vector<std::set<std::int64_t>> borders(static_cast<std::size_t>(storage_count()));
  for (std::size_t b = 0; b < graph.buffers.size(); ++b) {
    at(borders, storages_.of[b]).insert({0, graph.buffers[b].bytes.value()});
  }
  const auto cut = [&](std::span<const kernels::Access> accesses) {
    for (const kernels::Access& access : accesses) {
      at(borders, storage_of(access.buffer)).insert({access.offset, access.end()});
    }
  };
  for (const kernels::Kernel& kernel : graph.kernels) {
    cut(kernel.reads);
    cut(kernel.writes);
    cut(kernel.updates);
  }
  cut(more);
  for (int s = 0; s < storage_count(); ++s) {
    first_.push_back(count());
    const std::set<std::int64_t>& of = at(borders, s);
    for (auto next = of.begin(); std::next(next) != of.end(); ++next) pieces_.push_back({s, *next, *std::next(next)});
  }
  first_.push_back(count());
}

const Piece& Pieces::piece(int number) const { return at(pieces_, number); }

int Pieces::storage_of(int buffer) const { return at(storages_.of, buffer); }

std::int64_t Pieces::bytes_of_storage(int storage) const {
  const int end = at(first_, storage + 1);
  return end == at(first_, storage) ? 0 : at(pieces_, end - 1).end;
}

PieceRange Pieces::storage_around(int buffer) const {
  const int storage = storage_of(buffer);
  return {buffer, at(first_, storage), at(first_, storage + 1)};
}

PieceRange Pieces::range(int buffer, std::int64_t offset, std::int64_t end) const {
  const PieceRange all = storage_around(buffer);
  const auto begin_of = pieces_.begin() + all.first;
  const auto end_of = pieces_.begin() + all.last;
  const auto first = std::partition_point(begin_of, end_of, [&](const Piece& p) { return p.end <= offset; });
  const auto last = std::partition_point(first, end_of, [&](const Piece& p) { return p.begin < end; });
  return {buffer, static_cast<int>(first - pieces_.begin()), static_cast<int>(last - pieces_.begin())};
}

Touches touches_of(const kernels::Kernel& kernel, const Pieces& pieces) {
  Touches touches;
  const auto range = [&](const kernels::Access& a) { return pieces.range(a.buffer, a.offset, a.end()); };
  for (const kernels::Access& read : kernel.reads) touches.reads.push_back(range(read));
  for (const kernels::Access& update : kernel.updates) {
    touches.reads.push_back(range(update));
    touches.writes.push_back(range(update));
  }
  for (const kernels::Access& write : kernel.writes) {
    if (!write.exact) touches.reads.push_back(range(write));
    touches.writes.push_back(range(write));
  }
  return touches;
}

}  // namespace tangram::dispatch
