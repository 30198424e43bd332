// How an operator's tensors become what its kernels touch: all of them for each of its kernels, exact where there is
// one kernel and the tensor fills its storage. An operator of several kernels does its work in parts that the traces do
// not tell apart: each may read what those before it wrote, so that all of them update what the operator writes.
//
// A storage of the trace is memory as long as nobody takes it anew. Its epochs are counted by the operators that do:
// an epoch is a buffer, and buffers of one storage come one after the other.
#include "join_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "recorded_graph.hpp"
#include "tangram/base/at.hpp"
#include "tangram/kernels/signatures.hpp"

namespace tangram::kernels {
namespace {

class TraceJoin {
 public:
  TraceJoin(const KinetoTrace& kineto, const ExecutionTrace* execution) : kineto_(kineto), execution_(execution) {}

  Recording run() && {
    if (execution_ != nullptr) {
      find_epochs();
      count_kernels();
      measure_storages();
    }
    for (const TracedKernel& kernel : kineto_.kernels) add(kernel);
    graph_.phases.push_back({"step", 0, 0, 0, 0, graph_.kernel_count(), {}});
    name_storages();
    note_what_was_joined();
    return {std::move(graph_), std::move(notes_)};
  }

 private:
  using Epoch = std::pair<std::int64_t, int>;  // storage, how often it was taken

  /// Null where the kernel has no operator, or the execution trace does not know it.
  [[nodiscard]] const TracedTensors* tensors_of(const TracedKernel& kernel) const {
    if (execution_ == nullptr || kernel.op < 0) return nullptr;
    const auto found = execution_->operators.find(at(kineto_.ops, kernel.op).rf_id);
    return found == execution_->operators.end() ? nullptr : &found->second;
  }

  void find_epochs() {
    for (const auto& [rf_id, tensors] : execution_->operators) {
      for (const std::int64_t storage : tensors.allocated) taken_[storage].push_back(rf_id);
    }
    for (auto& [storage, calls] : taken_) std::ranges::sort(calls);
  }

  [[nodiscard]] Epoch epoch_of(std::int64_t storage, std::int64_t rf_id) const {
    const auto found = taken_.find(storage);
    if (found == taken_.end()) return {storage, 0};
    const auto after = std::ranges::upper_bound(found->second, rf_id);
    return {storage, static_cast<int>(after - found->second.begin())};
  }

  void count_kernels() {
    for (const TracedKernel& kernel : kineto_.kernels) {
      if (kernel.op >= 0) ++kernels_of_op_[kernel.op];
    }
  }

  /// As large as the furthest tensor in it, of any operator.
  void measure_storages() {
    for (const auto& [rf_id, tensors] : execution_->operators) {
      for (const auto* spans : {&tensors.reads, &tensors.writes, &tensors.updates}) {
        for (const TensorSpan& span : *spans) {
          std::int64_t& bytes = bytes_[epoch_of(span.storage, rf_id)];
          bytes = std::max(bytes, span.end());
        }
      }
    }
  }

  int buffer_of(const Epoch& epoch) {
    const auto [entry, is_new] = buffers_.emplace(epoch, static_cast<int>(graph_.buffers.size()));
    if (is_new) {
      Buffer buffer;
      buffer.id = fmt::format("storage{}", epoch.first);
      buffer.bytes = Bytes(bytes_.at(epoch));
      buffer.epoch = epoch.second;
      graph_.buffers.push_back(std::move(buffer));
    }
    return entry->second;
  }

  void touch(const std::vector<TensorSpan>& spans, std::int64_t rf_id, bool alone, std::vector<Access>& accesses) {
    for (const TensorSpan& span : spans) {
      const int buffer = buffer_of(epoch_of(span.storage, rf_id));
      const std::int64_t size = at(graph_.buffers, buffer).bytes.value();
      const Access access{buffer, 0, size, alone && span.offset == 0 && span.bytes == size};
      const auto known = std::ranges::find(accesses, buffer, &Access::buffer);
      if (known == accesses.end()) {
        accesses.push_back(access);
      } else {
        known->exact = known->exact || access.exact;
      }
    }
  }

  /// Without a schema nobody tells which tensors an operator writes. One kernel that makes no more tensors than the
  /// operator returns anew wrote those alone.
  [[nodiscard]] static bool only_returns(const TracedTensors& tensors, const Signature* signature) {
    const std::set<std::int64_t> made(tensors.allocated.begin(), tensors.allocated.end());
    return signature != nullptr && signature->results > 0 && static_cast<int>(made.size()) >= signature->results;
  }

  void add_accesses(const TracedKernel& traced, const TracedTensors& tensors, Kernel& kernel) {
    const std::int64_t rf_id = at(kineto_.ops, traced.op).rf_id;
    const Signature* signature = signature_of(traced.name);
    const bool single = kernels_of_op_[traced.op] == 1;
    const bool by_signature = single && !tensors.understood && only_returns(tensors, signature);
    const bool alone = single && tensors.understood;
    if (traced.work != GpuWork::kFill) touch(tensors.reads, rf_id, alone, kernel.reads);
    touch(tensors.writes, rf_id, alone, alone || by_signature ? kernel.writes : kernel.updates);
    touch(tensors.updates, rf_id, alone, by_signature ? kernel.reads : kernel.updates);
    const auto is_updated = [&](const Access& access) {
      return std::ranges::find(kernel.updates, access.buffer, &Access::buffer) != kernel.updates.end();
    };
    std::erase_if(kernel.reads, is_updated);
    std::erase_if(kernel.writes, is_updated);
    kernel.evidence = tensors.understood ? Evidence::kTrace
                      : by_signature     ? Evidence::kSignature
                                         : Evidence::kConservative;
  }

  void add(const TracedKernel& traced) {
    Kernel kernel;
    kernel.order = graph_.kernel_count();
    kernel.id = fmt::format("k{}", kernel.order);
    kernel.stream = traced.stream;
    kernel.launch = traced.launch;
    kernel.after = traced.after;
    kernel.times = {measured(traced.duration)};
    if (!traced.name.empty()) kernel.names = {traced.name};
    if (traced.op >= 0) {
      const TracedOp& op = at(kineto_.ops, traced.op);
      kernel.position = fmt::format("{}#{}", op.path, op.number);
      kernel.op = op.path.substr(op.path.rfind('/') + 1);
    } else {
      kernel.position = position_by_order(kernel.order);
      kernel.op = traced.name;
    }
    if (kernel.op.empty()) kernel.op = "unknown";
    identify(traced.name, kernel);
    if (traced.work == GpuWork::kCopy && kernel.signature.empty()) kernel.pinned = Pin::kHost;
    if (const TracedTensors* tensors = tensors_of(traced)) {
      add_accesses(traced, *tensors, kernel);
      if (kernel.pinned == Pin::kUnknownPointer || kernel.pinned == Pin::kUnknownOperands) kernel.pinned = Pin::kNone;
      ++joined_;
    }
    without_op_ += traced.op < 0 ? 1 : 0;
    graph_.kernels.push_back(std::move(kernel));
  }

  /// Epochs of one storage share it; those with a storage of their own need none.
  void name_storages() {
    std::map<std::string, int> epochs;
    for (const Buffer& buffer : graph_.buffers) ++epochs[buffer.id];
    for (Buffer& buffer : graph_.buffers) {
      if (epochs[buffer.id] == 1) {
        buffer.epoch = 0;
      } else {
        buffer.storage = buffer.id;
        buffer.id = fmt::format("{}.{}", buffer.storage, buffer.epoch);
      }
    }
  }

  void note_what_was_joined() {
    const int kernels = graph_.kernel_count();
    if (execution_ != nullptr) {
      notes_.push_back(fmt::format("{} of {} kernels joined with their tensors", joined_, kernels));
    } else {
      notes_.push_back("without an execution trace nothing is known of what kernels touch: all of them are pinned");
    }
    if (without_op_ > 0) {
      notes_.push_back(fmt::format("{} of {} kernels were launched by no recorded operator", without_op_, kernels));
    }
  }

  const KinetoTrace& kineto_;
  const ExecutionTrace* execution_;
  KernelGraph graph_;
  std::vector<std::string> notes_;
  std::map<std::int64_t, std::vector<std::int64_t>> taken_;  ///< by storage: rf_ids of operators that take it
  std::map<int, int> kernels_of_op_;
  std::map<Epoch, std::int64_t> bytes_;
  std::map<Epoch, int> buffers_;
  int joined_ = 0;
  int without_op_ = 0;
};

}  // namespace

Recording join_traces(const KinetoTrace& kineto, const ExecutionTrace* execution) {
  return TraceJoin(kineto, execution).run();
}

}  // namespace tangram::kernels
