// The kernels of one inference step and the memory between them: a document of tangram.kernels/1 in plain values. Goes
// in: a file (document.hpp), recordings of a run (recording.hpp) or a model (synth.hpp). Comes out: what a planner
// places, kernel by kernel, on GPUs of several types. What must follow what is not stored but derived (hazards.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/units.hpp"

namespace tangram::kernels {

/// What a buffer is kept for, which decides how long: weights for ever, the KV cache as long as its requests, the rest
/// within a step.
enum class BufferKind : std::uint8_t { kWeight, kKv, kActivation, kInput, kOutput, kWorkspace, kUnknown };
inline constexpr int kBufferKindCount = 7;
[[nodiscard]] std::string_view to_string(BufferKind kind);  ///< "weight", "kv", ... as files have it

/// What the bytes of a buffer grow with: the requests of the step, its tokens, or nothing.
enum class Growth : std::uint8_t { kRequest, kToken, kStep };
inline constexpr int kGrowthCount = 3;
[[nodiscard]] std::string_view to_string(Growth growth);  ///< "request", "token", "step"

struct Buffer {
  std::string id;  ///< unique
  Bytes bytes;     ///< of one copy; of as many requests and tokens as the phase with the most of them has
  BufferKind kind = BufferKind::kUnknown;
  Growth per = Growth::kStep;
  /// How often there is such a buffer: passes of a repeat that each have their own (weights and KV cache of equal
  /// layers) make as many copies as the repeat has passes; 1 elsewhere, and where all passes share it (the residual
  /// stream).
  std::int64_t copies = 1;
  /// The memory that it lies in, where an allocator gives equal addresses to several buffers one after the other;
  /// empty: its own. Buffers of one storage are ordered by `epoch`, and none holds what an earlier one held.
  std::string storage;
  int epoch = 0;
  std::vector<std::string> formats;  ///< by GPU: how its kernels want it packed; empty: alike on all

  bool operator==(const Buffer&) const = default;
};

/// Bytes [offset, offset + bytes) of a buffer. Exact: every one of them is touched; else none outside of them is.
struct Access {
  int buffer = 0;  ///< index in KernelGraph::buffers
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  bool exact = true;

  [[nodiscard]] std::int64_t end() const { return offset + bytes; }
  bool operator==(const Access&) const = default;
};

/// How it is known which buffers a kernel touches.
enum class Evidence : std::uint8_t { kModel, kTrace, kPtx, kSignature, kConservative };
inline constexpr int kEvidenceCount = 5;
[[nodiscard]] std::string_view to_string(Evidence evidence);  ///< "model", "trace", "ptx", "signature", "conservative"

/// Why a kernel must run where its neighbours by buffer run.
enum class Pin : std::uint8_t {
  kNone,
  kCollective,
  kUnknownPointer,  ///< it may touch anything
  kHost,
  kFormat,
  kUnknownOperands  ///< of a family with a signature (signatures.hpp), but the recording does not say what it was given
};
inline constexpr int kPinCount = 6;
[[nodiscard]] std::string_view to_string(Pin pin);  ///< "none", "collective", "unknown_pointer", ...

/// The part of a model that a kernel belongs to: what coarser ways to split a model cut between.
enum class Part : std::uint8_t { kOther, kEmbedding, kAttention, kFeedForward, kHead };
inline constexpr int kPartCount = 5;
[[nodiscard]] std::string_view to_string(Part part);  ///< "other", "embedding", "attention", "feed_forward", "head"

/// Where a time comes from, best first.
enum class TimeSource : std::uint8_t { kMeasured, kInterpolated, kRoofline };
inline constexpr int kTimeSourceCount = 3;
[[nodiscard]] std::string_view to_string(TimeSource source);  ///< "measured", "interpolated", "roofline"

struct KernelTime {
  Nanoseconds time;  ///< of one pass
  TimeSource from = TimeSource::kMeasured;
  double error = 0;  ///< relative, as held-out rows of the source have it in the mean: the true time is expected in
                     ///< time * [1 - error, 1 + error]

  bool operator==(const KernelTime&) const = default;
};

struct Launch {
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::array<std::int64_t, 3> block{1, 1, 1};
  Bytes shared;  ///< dynamic and static, of one block

  bool operator==(const Launch&) const = default;
};

struct Kernel {
  std::string id;        ///< unique
  std::string position;  ///< of the operator: what kernels of several GPUs are matched by, whatever they are called
  int layer = -1;        ///< of the first pass; -1: in none
  Part part = Part::kOther;
  std::string op;                   ///< operator: "gemm", "attention_decode", "aten::mm", ...
  std::vector<std::int64_t> shape;  ///< of the operator, in the order that its cost is listed by; empty: unknown
  int stream = 0;
  std::int64_t order = 0;  ///< as launched, ascending in a phase: the order in which hazards are found
  std::vector<Access> reads;
  std::vector<Access> writes;
  std::vector<Access> updates;  ///< read and written in place
  std::vector<int> after;  ///< kernels of the phase that end first for other reasons: events, edges of a CUDA graph
  Evidence evidence = Evidence::kConservative;
  Pin pinned = Pin::kNone;
  std::string signature;  ///< family of the kernel, if its name is that of a library's; empty: none
  std::vector<std::optional<KernelTime>> times;  ///< by GPU; none: not known there, or the GPU cannot run it
  std::optional<Launch> launch;
  std::vector<std::string> names;  ///< by GPU: what runs there; empty: not known

  bool operator==(const Kernel&) const = default;
};

/// Kernels [first, first + kernels) run `times` times one after the other, on copies of their own of such buffers as
/// have them: equal layers.
struct Repeat {
  int first = 0;
  int kernels = 0;
  std::int64_t times = 1;

  bool operator==(const Repeat&) const = default;
};

/// One step of one kind: kernels [first, first + count) of the document, in launch order.
struct Phase {
  std::string name;  ///< "prefill", "decode", "step", ...
  std::int64_t requests = 0;
  std::int64_t tokens = 0;   ///< that the step computes, of all requests; 0: unknown
  std::int64_t context = 0;  ///< tokens that a request attends to; 0: unknown
  int first = 0;
  int count = 0;
  std::vector<Repeat> repeats;  ///< ascending, within the phase, not overlapping

  /// How often kernel `kernel` of the document runs in a step.
  [[nodiscard]] std::int64_t passes_of(int kernel) const;
  bool operator==(const Phase&) const = default;
};

/// What the document was made of.
struct Source {
  std::string kind;    ///< "model", "kineto", "execution_trace", "cuda_graph", "nsys", "ncu", ...
  std::string file;    ///< as it was named
  std::string digest;  ///< of its content

  bool operator==(const Source&) const = default;
};

struct KernelGraph {
  std::vector<Source> sources;
  std::vector<std::string> gpus;  ///< catalogue names
  std::vector<Phase> phases;      ///< together all kernels, in their order
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;

  [[nodiscard]] int kernel_count() const { return static_cast<int>(kernels.size()); }
  [[nodiscard]] int gpu_count() const { return static_cast<int>(gpus.size()); }
  bool operator==(const KernelGraph&) const = default;
};

/// The memory that buffers lie in (Buffer::storage), numbered in the order of the first buffer of each.
struct Storages {
  int count = 0;
  std::vector<int> of;  ///< by buffer
};
[[nodiscard]] Storages storages_of(const KernelGraph& graph);

}  // namespace tangram::kernels
