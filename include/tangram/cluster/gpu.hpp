// What a GPU can do. Goes in: a catalogue file (configs/gpus) or an inline record of cluster.json.
// Comes out: a value that every cost is computed from; names are never looked at again.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "tangram/base/at.hpp"
#include "tangram/base/dtype.hpp"
#include "tangram/base/shared_text.hpp"
#include "tangram/base/units.hpp"

namespace tangram::cluster {

/// A point-to-point connection, one direction. Between GPUs of a node: per GPU. Between nodes: per node, all its
/// network cards together.
struct Link {
  BytesPerSecond bandwidth{0};
  Nanoseconds latency{0};
  Nanoseconds ramp{0};  ///< how long the link takes for Hockney's n_1/2, the bytes with which a collective reaches half
                        ///< of its bandwidth; 0: short messages are as fast as long ones

  bool operator==(const Link&) const = default;
};

/// Fused attention by kernels made for the GPU's generation. A tile of queries takes as long as if each query saw some
/// keys more than it does (prologue, epilogue, the masked half of the tiles on the diagonal), so that the rate rises
/// with the keys that queries see: FLOPs x (1 + extra keys / visible keys) at a constant share of the dense peak.
/// Heads are padded to the widths that kernels are compiled for, and a score's exponential takes as long in a narrow
/// head as in a wide one: a head of 128 runs at `forward` of the peak, one of width d takes (d + extra) / (128 + extra)
/// of its time. Where products are so fast that scores are the limit (Blackwell), no head takes less than one of the
/// least width. Where there are no such kernels for wide heads, kernels of all generations take these. A generation's
/// first kernels cost more keys than those of today.
struct NativeAttention {
  double forward = 0;  ///< share of the dense peak, (0, 1], that very long sequences come near
  double backward = 0;
  double forward_extra_keys = 0;
  double backward_extra_keys = 0;
  SharedText source;
  double head_dim_multiple = 0;  ///< widths of heads are padded to a multiple of it; 0: not padded
  double forward_extra_head_dim = 0;
  double backward_extra_head_dim = 0;
  double forward_least_head_dim = 0;  ///< narrower heads take as long; 0: there is no such width
  double backward_least_head_dim = 0;
  double widest_value_dim = 0;          ///< heads with wider values have no such kernels; 0: all have
  double early_forward_extra_keys = 0;  ///< of the generation's first kernels; 0: as those of today
  double early_backward_extra_keys = 0;

  bool operator==(const NativeAttention&) const = default;
};

/// Operators that move memory as kernels written for them (Transformer Engine's norms, gates and casts, or what a
/// compiler fuses), where a framework's own run one for each arithmetic step. Products then take nearly all of the
/// time, and the power limit lowers the clock that they run at.
struct FusedKernels {
  double gemm_efficiency = 0;    ///< share of the dense peak that products sustain between them, (0, 1]
  double fp8_efficiency = 0;     ///< the same of products in fp8
  double memory_efficiency = 0;  ///< share of the memory bandwidth that they sustain, (0, 1]
  SharedText source;
  double fp4_efficiency = 0;  ///< the same of products in fp4; 0: that of fp8

  /// Of the dense peak of `format`.
  [[nodiscard]] double share_of(DType format) const {
    if (format == DType::kFp4 && fp4_efficiency > 0) return fp4_efficiency;
    return is_narrow(format) ? fp8_efficiency : gemm_efficiency;
  }

  bool operator==(const FusedKernels&) const = default;
};

/// How far real kernels stay below the datasheet. Few parameters with physical meaning, per GPU generation or type.
struct ComputeCalibration {
  double gemm_efficiency = 0.70;     ///< share of the dense peak that a large matrix product sustains, (0, 1]
  double attention_forward = 0.60;   ///< share of the dense peak that fused attention sustains, (0, 1]
  double attention_backward = 0.50;  ///< the same of its backward pass
  std::optional<NativeAttention> native_attention;
  double memory_efficiency = 0.80;  ///< share of the memory bandwidth that streaming kernels sustain, (0, 1]
  std::optional<FusedKernels> fused_kernels;
  Nanoseconds kernel_launch{4'000};  ///< between the end of a kernel and the start of the next in the device's queue
  Nanoseconds host_issue{10'000};    ///< what the host needs to put one kernel into the queue
  double unvectorized_values = 0;  ///< values a second of a framework's elementwise kernel that reads them one by one:
                                   ///< strided, broadcast or of two types; 0: not known, limited by memory alone
  SharedText source;               ///< where the numbers come from

  bool operator==(const ComputeCalibration&) const = default;
};

struct GpuType {
  std::string name;          ///< catalogue key: "H100-80GB-SXM"
  std::string vendor;        ///< "nvidia", "amd"
  std::string architecture;  ///< "volta", "ampere", "hopper", "cdna3", ...
  int multiprocessors = 0;   ///< streaming multiprocessors, compute units; 0: unknown, products fill them evenly
  Bytes memory;              ///< capacity of the device
  Bytes reserved;            ///< context, allocator slack and fragmentation: never given to a plan
  BytesPerSecond memory_bandwidth{0};
  std::array<FlopsPerSecond, kDTypeCount> peak{};  ///< dense, by DType; 0: not supported by matrix units
  Link peer_link;               ///< GPU to GPU fabric (NVLink, Infinity Fabric), one direction; bandwidth 0: none
  int peer_reach = 0;           ///< GPUs that one bridge of the fabric joins; 0: all of the node
  BytesPerSecond peer_pair{0};  ///< a mesh: the part of peer_link that leads to one other GPU; 0: a switch joins all
  Link pcie;                    ///< host bus, one direction
  ComputeCalibration compute;
  Dollars price_per_hour{0};  ///< typical on-demand price of one GPU; 0: unknown
  SharedText source;          ///< datasheet

  [[nodiscard]] FlopsPerSecond peak_of(DType type) const { return at(peak, type); }
  [[nodiscard]] Bytes usable() const { return memory - reserved; }
  bool operator==(const GpuType&) const = default;
};

/// What each of `gpus` GPUs has of `whole`, the link between all GPUs of a node, while they talk among themselves
/// alone. Through a switch all of it; in a mesh only its links to them, peer_pair times the number of the others.
[[nodiscard]] inline BytesPerSecond bandwidth_among(const GpuType& device, const Link& whole, int gpus) {
  if (device.peer_pair.value() <= 0 || gpus < 2) return whole.bandwidth;
  return std::min(whole.bandwidth, device.peer_pair * static_cast<double>(gpus - 1));
}

}  // namespace tangram::cluster
