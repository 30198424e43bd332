#include "reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::dispatch {

namespace {

class ReferenceDevice {
 public:
  ReferenceDevice(const kernels::KernelGraph& graph, const Pieces& pieces, const std::vector<Touches>& touches,
                  const Contents& contents, const EmulationOptions& options)
      : graph_(graph), pieces_(pieces), touches_(touches), options_(options) {
    const auto count = static_cast<std::size_t>(pieces.count());
    result_.end.assign(count, kFirst);
    buffer_of_.assign(count, -1);
    if (options.code == nullptr) return;
    memory_.emplace(pieces);
    for (int p = 0; p < pieces.count(); ++p) memory_->place(pieces.piece(p), contents);
  }

  Expected<Reference> run() && {
    const int last = static_cast<int>(graph_.phases.size()) - 1;
    for (int f = 0; f <= last; ++f) {
      for (int pass = 0; pass < (f == last ? options_.passes : 1); ++pass) {
        const kernels::Phase& phase = at(graph_.phases, f);
        result_.passes.push_back({f, static_cast<RunNumber>(result_.runs.size())});
        for (int k = phase.first; k < phase.first + phase.count; ++k) {
          if (auto done = launch(k); !done) return fail(std::move(done.error()));
        }
      }
    }
    return std::move(result_);
  }

 private:
  Expected<void> launch(int kernel) {
    ReferenceRun run{kernel, {}, {}};
    for (const PieceRange& read : at(touches_, kernel).reads) {
      std::vector<RunNumber>& holds = run.reads.emplace_back();
      for (int p = read.first; p < read.last; ++p) {
        const bool is_other = at(buffer_of_, p) >= 0 && at(buffer_of_, p) != read.buffer;
        holds.push_back(is_other ? kUnasked : at(result_.end, p));
      }
    }
    if (options_.code != nullptr) {
      if (auto done = memory_->run(*options_.code, kernel, graph_); !done) return done;
      if (!result_.unlisted) result_.unlisted = unlisted(kernel);
    }
    const auto number = static_cast<RunNumber>(result_.runs.size());
    for (const PieceRange& write : at(touches_, kernel).writes) {
      for (int p = write.first; p < write.last; ++p) {
        at(result_.end, p) = number;
        at(buffer_of_, p) = write.buffer;
      }
      if (options_.code != nullptr) run.writes.push_back(memory_->read(write));
    }
    result_.runs.push_back(std::move(run));
    return {};
  }

  /// Bytes that the kernel touched, and the graph does not list.
  [[nodiscard]] std::optional<Finding> unlisted(int kernel) const {
    const Touches& touches = at(touches_, kernel);
    std::vector<char> may_read(static_cast<std::size_t>(pieces_.count()), 0);
    std::vector<char> may_write = may_read;
    for (const PieceRange& r : touches.reads) std::fill(may_read.begin() + r.first, may_read.begin() + r.last, 1);
    for (const PieceRange& w : touches.writes) std::fill(may_write.begin() + w.first, may_write.begin() + w.last, 1);
    for (int p = 0; p < pieces_.count(); ++p) {
      const Piece& piece = pieces_.piece(p);
      const auto touched = memory_->touched(piece.storage);
      for (std::int64_t byte = piece.begin; byte < piece.end; ++byte) {
        const interpret::Touched& how = at(touched, byte);
        const bool reads = (how.read || how.updated) && at(may_read, p) == 0;
        const bool writes = (how.written || how.updated) && at(may_write, p) == 0;
        if (reads || writes) return finding(kernel, piece, byte, reads ? "reads" : "writes");
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] Finding finding(int kernel, const Piece& piece, std::int64_t byte, std::string_view does) const {
    int buffer = 0;
    while (pieces_.storage_of(buffer) != piece.storage) ++buffer;
    Finding found;
    found.fault = Fault::kUnlisted;
    found.kernel = at(graph_.kernels, kernel).id;
    found.buffer = at(graph_.buffers, buffer).id;
    found.offset = byte;
    found.bytes = piece.end - byte;
    found.message =
        fmt::format("{} {} byte {} of {}, which the graph does not list", found.kernel, does, byte, found.buffer);
    return found;
  }

  const kernels::KernelGraph& graph_;
  const Pieces& pieces_;
  const std::vector<Touches>& touches_;
  const EmulationOptions& options_;
  std::optional<DeviceMemory> memory_;  // with PTX
  std::vector<int> buffer_of_;          // by piece: what its last writer took it for
  Reference result_;
};

}  // namespace

Expected<Reference> run_reference(const kernels::KernelGraph& graph, const Pieces& pieces,
                                  const std::vector<Touches>& touches, const Contents& contents,
                                  const EmulationOptions& options) {
  return ReferenceDevice(graph, pieces, touches, contents, options).run();
}

}  // namespace tangram::dispatch
