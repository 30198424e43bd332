#include "tangram/cost/recurrence.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace tangram::cost {
namespace {

constexpr double kStateBytes = 4;  // states between chunks, scores and scalars of heads are fp32

/// What kernels of recurrences, which are written in Triton, reach of the rates of products and copies.
struct Shares {
  double forward;
  double backward;
};

/// Fitted to published times of kernels alone (configs/measurements/kernels/recurrences.json): Mamba-2's on H100 take
/// 2.0 times as long as at full rates, gated delta rules' on B200 1.9 times forward and 2.7 times backward. Mamba-2's
/// backward: forward and backward, with the convolution, 2.14 ms of a layer in training on GH200 (GeodesicResearch's
/// nano30b-pretrain-perf-campaign, E-036).
constexpr Shares kMamba2{0.5, 0.47}, kGatedDelta{0.53, 0.375};

/// The kernels of a recurrence. Products are of one chunk, with their number in its heads or groups.
class ChunkKernels {
 public:
  ChunkKernels(const LocalRecurrence& local, double element, const DeviceRates& device)
      : local_(local),
        shares_(local.kind == model::RecurrenceKind::kMamba2 ? kMamba2 : kGatedDelta),
        element_(element),
        device_(device) {}

  [[nodiscard]] Passes mamba2() {
    const LocalRecurrence& l = local_;
    const double scores = kStateBytes * l.scanned * l.chunk * l.groups;
    const double all_states = kStateBytes * states();
    again({{l.chunk, l.chunk, l.key_dim, l.groups}}, 2 * keys() + scores);
    again({{l.key_dim, l.head_dim, l.chunk, l.heads}}, keys() + values() + all_states);
    again({}, 2 * all_states);
    once({{l.chunk, l.head_dim, l.chunk, l.heads}, {l.chunk, l.head_dim, l.key_dim, l.heads}},
         keys() + 2 * values() + scores + all_states);
    scalars();
    return time_;
  }

  [[nodiscard]] Passes gated_delta() {
    const LocalRecurrence& l = local_;
    const double square = l.scanned * l.chunk * l.heads;
    const double wide_keys = element_ * l.scanned * l.heads * l.key_dim;  // one a head
    once({{l.chunk, l.chunk, l.key_dim, l.heads}}, keys() + kStateBytes * square);
    once({{l.chunk, l.chunk, l.chunk, l.heads}}, (kStateBytes + element_) * square);
    again({{l.chunk, l.key_dim, l.chunk, l.heads}, {l.chunk, l.head_dim, l.chunk, l.heads}},
          keys() + wide_keys + 2 * values() + element_ * square);
    again({{l.chunk, l.head_dim, l.key_dim, l.heads}, {l.key_dim, l.head_dim, l.chunk, l.heads}},
          keys() + wide_keys + 2 * values() + element_ * states());
    once({{l.chunk, l.chunk, l.key_dim, l.heads},
          {l.chunk, l.head_dim, l.chunk, l.heads},
          {l.chunk, l.head_dim, l.key_dim, l.heads}},
         2 * keys() + 2 * values() + element_ * states());
    scalars();
    return time_;
  }

  /// The convolution in front, and of delta rules the norms of keys and queries.
  [[nodiscard]] Passes in_front() {
    const double convolution = element_ * local_.scanned * convolved();
    if (local_.kind == model::RecurrenceKind::kMamba2) {
      stream(convolution, 2, 5);  // x, y; x, dy, dx, and forward again
      return time_;
    }
    stream(convolution, 2, 3);
    stream(2 * keys(), 2, 3);
    return time_;
  }

 private:
  [[nodiscard]] double chunks() const { return std::ceil(local_.scanned / local_.chunk); }
  [[nodiscard]] double states() const { return chunks() * local_.heads * local_.key_dim * local_.head_dim; }
  [[nodiscard]] double keys() const { return element_ * local_.scanned * local_.groups * local_.key_dim; }
  [[nodiscard]] double values() const { return element_ * local_.scanned * local_.heads * local_.head_dim; }
  [[nodiscard]] double convolved() const { return local_.heads * local_.head_dim + 2 * local_.groups * local_.key_dim; }

  /// At full rates.
  [[nodiscard]] double seconds(std::initializer_list<Gemm> products, double bytes) const {
    double multiplied = 0;
    for (Gemm product : products) {
      product.count *= chunks();
      multiplied += gemm_seconds(product, 0, 0, device_.attention, device_) - device_.launch;
    }
    return std::max(multiplied, bytes / device_.memory);
  }
  /// `backward`: kernels as long as the forward one.
  void add(std::initializer_list<Gemm> products, double bytes, int backward) {
    const double full = seconds(products, bytes);
    time_ +=
        {full / shares_.forward + device_.launch, backward * (full / shares_.backward + device_.launch), 1, backward};
  }
  void once(std::initializer_list<Gemm> products, double bytes) { add(products, bytes, 2); }
  /// Backward needs what it gives.
  void again(std::initializer_list<Gemm> products, double bytes) { add(products, bytes, 3); }
  void stream(double bytes, double forward, double backward) {
    time_ += {streaming_seconds(forward * bytes, device_), streaming_seconds(backward * bytes, device_), 1, 1};
  }
  /// Decays of a chunk, summed up along it.
  void scalars() { stream(kStateBytes * local_.scanned * local_.heads, 2, 3); }

  const LocalRecurrence& local_;
  Shares shares_;
  double element_;
  const DeviceRates& device_;
  Passes time_;
};

}  // namespace

LocalRecurrence local_recurrence(const model::BlockType& block, const Degrees& degrees, double samples_per_replica) {
  const model::Recurrence& recurrence = *block.recurrence;
  const double tp = degrees.tp;
  const double heads_shared = tp * degrees.cp;
  const auto length = static_cast<double>(block.tokens);
  LocalRecurrence local;
  local.kind = recurrence.kind;
  local.tokens = samples_per_replica * length / degrees.cp;
  local.projected = static_cast<double>(recurrence.projected()) / tp;
  local.convolved = static_cast<double>(recurrence.convolved()) / tp;
  local.inner = static_cast<double>(recurrence.inner()) / tp;
  local.scanned = samples_per_replica * length;
  local.heads = recurrence.heads / heads_shared;
  local.groups = recurrence.groups / heads_shared;
  local.head_dim = recurrence.head_dim;
  local.key_dim = recurrence.key_dim;
  local.chunk = std::min(static_cast<double>(recurrence.chunk), length);
  return local;
}

Passes scan_seconds(const LocalRecurrence& local, double element, const DeviceRates& device) {
  ChunkKernels kernels(local, element, device);
  return local.kind == model::RecurrenceKind::kMamba2 ? kernels.mamba2() : kernels.gated_delta();
}

Passes recurrence_seconds(const LocalRecurrence& local, double element, const DeviceRates& device) {
  Passes time = scan_seconds(local, element, device);
  time += ChunkKernels(local, element, device).in_front();
  constexpr double kGatedNormForward = 3,
                   kGatedNormBackward = 5;  // values, gate -> product; those and d -> two gradients
  const double values = element * local.tokens * local.inner;
  time += {streaming_seconds(kGatedNormForward * values, device),
           streaming_seconds(kGatedNormBackward * values, device), 1, 1};
  return time;
}

RecurrenceBytes recurrence_bytes(const LocalRecurrence& local, double element) {
  const bool mamba = local.kind == model::RecurrenceKind::kMamba2;
  const double states = std::ceil(local.scanned / local.chunk) * local.heads * local.key_dim * local.head_dim;
  RecurrenceBytes bytes;
  bytes.kept = element * local.tokens * (local.projected + 2 * local.inner);
  if (!mamba) {
    bytes.kept += element * (local.tokens * local.convolved + local.scanned * local.heads * local.chunk);
  }
  bytes.working = element * local.tokens * (local.projected + local.convolved + local.inner);
  bytes.working += 2 * (mamba ? kStateBytes : element) * states;
  return bytes;
}

double recurrence_exchange(const LocalRecurrence& local, double element) {
  return element * local.tokens * (local.projected + local.inner);
}

}  // namespace tangram::cost
