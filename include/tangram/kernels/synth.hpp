// The kernel graph of a model that nobody recorded. Goes in: a model file, what one step serves, GPUs, and what kernels
// cost. Comes out: the kernels that a serving engine launches for it, equal layers once, with all bytes and times.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tangram/base/expected.hpp"
#include "tangram/cluster/gpu.hpp"
#include "tangram/kernels/kernel_cost.hpp"
#include "tangram/kernels/kernel_graph.hpp"
#include "tangram/model/model.hpp"

namespace tangram::kernels {

enum class PhaseKind : std::uint8_t { kPrefill, kDecode };
[[nodiscard]] std::string_view to_string(PhaseKind kind);  ///< "prefill", "decode"

/// Prefill: all `context` tokens of each request. Decode: one token of each request, which sees `context` tokens,
/// itself among them.
struct PhaseLoad {
  PhaseKind kind = PhaseKind::kDecode;
  std::int64_t requests = 1;
  std::int64_t context = 1;
};

/// One layer, in launch order: norm, qkv, rope and KV write, attention, o_proj with the addition, norm, gate_up,
/// activation, down with the addition; for experts router, choice, experts, combination, and what all tokens share.
/// Of Mamba-2 norm, in_proj, convolution, state update (prefill: products by chunks), gated norm and out_proj with the
/// addition, as part of attention; the state of a request counts as its cache. Layers may lack a mixer or a
/// feed-forward. Models of latent attention decode on the compressed cache (absorbed), and expand it in prefill.
/// Weights have the precision of the job; activations and the cache 2 bytes under fp8. Phases share weights and cache.
/// Buffers of the cache count bytes as [token][request], so that new tokens are at their end. Fails on models with
/// encoders, other recurrences, gates on attention and experts in a latent width, on two phases of a kind, and where a
/// buffer would have more than a PiB.
[[nodiscard]] Expected<KernelGraph> synthesize(const model::Model& model, std::span<const PhaseLoad> loads,
                                               std::span<const cluster::GpuType> gpus, const KernelCosts& costs);

}  // namespace tangram::kernels
