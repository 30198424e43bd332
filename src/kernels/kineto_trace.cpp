// Fields as PyTorch's profiler (libkineto) writes them. What launched a kernel is the call of the runtime with the same
// "correlation", and the operator is the innermost one on the call's thread at that time. "External id" of a kernel is
// the operator's in newer traces and the correlation in older ones: it counts only where no call was recorded.
#include "kineto_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "place.hpp"
#include "tangram/base/at.hpp"

namespace tangram::kernels {
namespace {

using Thread = std::string;  // "pid/tid" as written

/// Something on a thread of the host.
struct HostSpan {
  double start = 0;
  double end = 0;
  std::string name;
  std::int64_t external = -1;
  std::int64_t record_function = -1;
};

struct HostCall {
  Thread thread;
  double start = 0;
};

struct EventWait {
  std::int64_t correlation = -1;
  std::int64_t recorded = -1;  ///< correlation of the call that recorded the event
  int stream = 0;
  int waits_for = 0;  ///< stream
};

std::string_view text_of(const io::Node& object, std::string_view key) {
  const io::Node* node = object.find(key);
  return node != nullptr && node->kind == io::NodeKind::kString ? std::string_view(node->text) : std::string_view();
}

bool is_number(const io::Node* node) {
  return node != nullptr && (node->kind == io::NodeKind::kInteger || node->kind == io::NodeKind::kNumber);
}

std::int64_t integer_of(const io::Node* object, std::string_view key, std::int64_t fallback) {
  const io::Node* node = object == nullptr ? nullptr : object->find(key);
  return node != nullptr && node->kind == io::NodeKind::kInteger ? node->integer : fallback;
}

int small_integer(const io::Node* object, std::string_view key, int fallback) {
  const std::int64_t value = integer_of(object, key, fallback);
  return value >= -1 && value <= 2'000'000'000 ? static_cast<int>(value) : fallback;
}

std::optional<std::array<std::int64_t, 3>> extent_of(const io::Node* arguments, std::string_view key) {
  const io::Node* node = arguments == nullptr ? nullptr : arguments->find(key);
  if (node == nullptr || node->kind != io::NodeKind::kArray || node->items.size() != 3) return std::nullopt;
  std::array<std::int64_t, 3> extent{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (node->items[i].kind != io::NodeKind::kInteger || node->items[i].integer < 1) return std::nullopt;
    extent[i] = std::min(node->items[i].integer, std::int64_t{1} << 31);
  }
  return extent;
}

std::optional<GpuWork> work_of_category(std::string_view category) {
  if (category == "kernel") return GpuWork::kKernel;
  if (category == "gpu_memcpy") return GpuWork::kCopy;
  if (category == "gpu_memset") return GpuWork::kFill;
  return std::nullopt;
}

/// Operators of one thread, for the innermost at a time.
class OpFinder {
 public:
  /// Places each in `ops`, with its path and its number on it.
  OpFinder(std::vector<HostSpan> spans, std::vector<TracedOp>& ops, std::map<std::string, int>& counts)
      : first_(static_cast<int>(ops.size())) {
    std::ranges::stable_sort(spans, [](const HostSpan& a, const HostSpan& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    for (const HostSpan& span : spans) {
      const int around = innermost_at(span.start, span.end);
      TracedOp op;
      op.path = around < 0 ? span.name : at(ops, first_ + around).path + "/" + span.name;
      op.number = counts[op.path]++;
      op.rf_id = span.record_function > 0 ? span.record_function : span.external;
      op.external = span.external;
      nested_.push_back({span.start, span.end, around});
      ops.push_back(std::move(op));
    }
  }

  /// Index in the trace's ops; -1: none.
  [[nodiscard]] int at_time(double time) const {
    const int found = innermost_at(time, time);
    return found < 0 ? -1 : first_ + found;
  }

 private:
  struct NestedSpan {
    double start = 0;
    double end = 0;
    int around = -1;  ///< place here of the operator around it; -1: none
  };

  [[nodiscard]] int innermost_at(double start, double end) const {
    const auto after = std::ranges::upper_bound(nested_, start, {}, &NestedSpan::start);
    int candidate = static_cast<int>(after - nested_.begin()) - 1;
    while (candidate >= 0 && at(nested_, candidate).end < end) candidate = at(nested_, candidate).around;
    return candidate;
  }

  int first_;  ///< of them in the trace's ops, where they follow each other
  std::vector<NestedSpan> nested_;
};

class KinetoReader {
 public:
  explicit KinetoReader(const io::Document& document) : document_(document) {}

  Expected<KinetoTrace> read() && {
    const io::Node* events = document_.root.find("traceEvents");
    if (events == nullptr || events->kind != io::NodeKind::kArray) {
      return fail(mistake_at(document_, document_.root, "missing-key", "expected \"traceEvents\", an array of events"));
    }
    read_gpus();
    for (const io::Node& event : events->items) {
      if (event.kind == io::NodeKind::kObject) read_event(event);
      if (mistakes_.size() >= kMaxDiagnostics) break;
    }
    if (!mistakes_.empty()) return fail(std::move(mistakes_));
    if (trace_.kernels.empty()) {
      return fail(mistake_at(document_, *events, "no-kernels", "the trace has no kernels of a GPU",
                             "record with ProfilerActivity.CUDA"));
    }
    std::ranges::stable_sort(trace_.kernels, {}, &TracedKernel::start);
    find_ops();
    find_waits();
    return std::move(trace_);
  }

 private:
  void read_gpus() {
    const io::Node* list = document_.root.find("deviceProperties");
    if (list == nullptr || list->kind != io::NodeKind::kArray) return;
    for (const io::Node& device : list->items) {
      const std::int64_t id = integer_of(&device, "id", -1);
      if (id < 0 || id >= 1024) continue;  // no host has more
      if (static_cast<std::size_t>(id) >= trace_.gpus.size()) trace_.gpus.resize(static_cast<std::size_t>(id) + 1);
      at(trace_.gpus, id) = text_of(device, "name");
    }
  }

  void read_event(const io::Node& event) {
    const std::string_view category = text_of(event, "cat");
    const io::Node* arguments = event.find("args");
    if (arguments != nullptr && arguments->kind != io::NodeKind::kObject) arguments = nullptr;
    if (const auto work = work_of_category(category)) {
      read_kernel(event, arguments, *work);
    } else if (category == "cpu_op") {
      read_op(event, arguments);
    } else if (category == "cuda_runtime" || category == "cuda_driver") {
      read_call(event, arguments);
    } else if (category == "cuda_sync") {
      read_wait(event, arguments);
    }
  }

  std::optional<double> time(const io::Node& event, std::string_view key) {
    const io::Node* node = event.find(key);
    constexpr double kLatest = 1e17;  // microseconds, some of them since 1970
    if (is_number(node) && node->number >= 0 && node->number < kLatest) return node->number;
    const std::string message = fmt::format("an event without \"{}\", its time in microseconds", key);
    mistakes_.push_back(mistake_at(document_, node != nullptr ? *node : event, "missing-time", message));
    return std::nullopt;
  }

  void read_kernel(const io::Node& event, const io::Node* arguments, GpuWork work) {
    const auto start = time(event, "ts");
    const auto duration = time(event, "dur");
    if (!start || !duration) return;
    TracedKernel kernel;
    kernel.work = work;
    kernel.name = text_of(event, "name");
    kernel.start = *start;
    kernel.duration = *duration;
    kernel.device = small_integer(arguments, "device", 0);
    kernel.stream = small_integer(arguments, "stream", 0);
    kernel.correlation = integer_of(arguments, "correlation", -1);
    kernel.external = integer_of(arguments, "External id", -1);
    const auto grid = extent_of(arguments, "grid");
    const auto block = extent_of(arguments, "block");
    if (grid && block) {
      const std::int64_t shared = std::clamp<std::int64_t>(integer_of(arguments, "shared memory", 0), 0, 1 << 24);
      kernel.launch = Launch{*grid, *block, Bytes(shared)};
    }
    trace_.kernels.push_back(std::move(kernel));
  }

  static Thread thread_of(const io::Node& event) {
    const io::Node* process = event.find("pid");
    const io::Node* thread = event.find("tid");
    return fmt::format("{}/{}", process != nullptr ? process->text : "", thread != nullptr ? thread->text : "");
  }

  void read_op(const io::Node& event, const io::Node* arguments) {
    const auto start = time(event, "ts");
    const auto duration = time(event, "dur");
    if (!start || !duration) return;
    HostSpan span{*start, *start + *duration, std::string(text_of(event, "name")), -1, -1};
    span.external = integer_of(arguments, "External id", -1);
    span.record_function = integer_of(arguments, "Record function id", -1);
    spans_[thread_of(event)].push_back(std::move(span));
  }

  void read_call(const io::Node& event, const io::Node* arguments) {
    const std::int64_t correlation = integer_of(arguments, "correlation", -1);
    const io::Node* start = event.find("ts");
    if (correlation >= 0 && is_number(start)) calls_[correlation] = {thread_of(event), start->number};
  }

  void read_wait(const io::Node& event, const io::Node* arguments) {
    if (text_of(event, "name") != "Stream Wait Event") return;
    EventWait wait;
    wait.correlation = integer_of(arguments, "correlation", -1);
    wait.recorded = integer_of(arguments, "wait_on_cuda_event_record_corr_id", -1);
    wait.stream = small_integer(arguments, "stream", -1);
    wait.waits_for = small_integer(arguments, "wait_on_stream", -1);
    if (wait.correlation >= 0 && wait.recorded >= 0) waits_.push_back(wait);
  }

  void find_ops() {
    std::map<std::string, int> counts;
    std::map<Thread, OpFinder> finders;
    std::unordered_map<std::int64_t, int> by_external;
    for (auto& [thread, spans] : spans_) finders.try_emplace(thread, std::move(spans), trace_.ops, counts);
    for (std::size_t op = 0; op < trace_.ops.size(); ++op) by_external[trace_.ops[op].external] = static_cast<int>(op);
    for (TracedKernel& kernel : trace_.kernels) {
      const auto call = calls_.find(kernel.correlation);
      if (call != calls_.end()) {
        const auto finder = finders.find(call->second.thread);
        if (finder != finders.end()) kernel.op = finder->second.at_time(call->second.start);
      } else if (const auto op = by_external.find(kernel.external); op != by_external.end() && kernel.external > 0) {
        kernel.op = op->second;
      }
    }
  }

  /// Kernels of each stream by the order of their launch.
  using Launches = std::map<int, std::vector<std::pair<std::int64_t, int>>>;

  [[nodiscard]] Launches launches() const {
    Launches launches;
    for (std::size_t k = 0; k < trace_.kernels.size(); ++k) {
      launches[trace_.kernels[k].stream].emplace_back(trace_.kernels[k].correlation, static_cast<int>(k));
    }
    for (auto& [stream, list] : launches) std::ranges::sort(list);
    return launches;
  }

  /// The event was recorded after the last kernel of its stream that was launched before; the first kernel that the
  /// waiting stream launches afterwards waits for it.
  void find_waits() {
    const Launches by_stream = launches();
    for (const EventWait& wait : waits_) {
      const auto recorded = by_stream.find(wait.waits_for);
      const auto waiting = by_stream.find(wait.stream);
      if (recorded == by_stream.end() || waiting == by_stream.end()) continue;
      const auto before = std::ranges::lower_bound(recorded->second, std::pair(wait.recorded, -1));
      const auto after = std::ranges::lower_bound(waiting->second, std::pair(wait.correlation + 1, -1));
      if (before == recorded->second.begin() || after == waiting->second.end()) continue;
      const int first = std::prev(before)->second;
      if (first < after->second) at(trace_.kernels, after->second).after.push_back(first);
    }
  }

  const io::Document& document_;
  Diagnostics mistakes_;
  KinetoTrace trace_;
  std::map<Thread, std::vector<HostSpan>> spans_;
  std::unordered_map<std::int64_t, HostCall> calls_;  ///< by correlation
  std::vector<EventWait> waits_;
};

}  // namespace

Expected<KinetoTrace> read_kineto(const io::Document& document) { return KinetoReader(document).read(); }

}  // namespace tangram::kernels
