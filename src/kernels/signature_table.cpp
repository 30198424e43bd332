#include "signature_table.hpp"

namespace tangram::kernels {
namespace {

using enum ptx::Effect;

// D = alpha A B + beta C (cuBLAS, "cublasGemmEx"; cuBLASLt, "cublasLtMatmul"): D may lie where C does, epilogues read
// biases and write gradients, split-K keeps sums and counters in the workspace.
constexpr std::array kProductOperands{Operand{"a", kRead}, Operand{"b", kRead}};
constexpr Signature kProduct{"gemm", kProductOperands, 3, 1};
constexpr std::array kVectorOperands{Operand{"a", kRead}, Operand{"x", kRead}};
constexpr Signature kVectorProduct{"gemv", kVectorOperands, 3, 1};
// The partial sums of a product become its result: both, and what the epilogue takes, are given by pointer.
constexpr Signature kSplitSum{"split_k_sum", {}, 2};

// O = softmax(Q K^T) V with the logarithm of each row's sum (Dao et al., "FlashAttention-2", arXiv 2307.08691).
constexpr std::array kAttentionOperands{Operand{"q", kRead}, Operand{"k", kRead}, Operand{"v", kRead}};
constexpr Signature kAttention{"attention", kAttentionOperands, 4, 2};
// Kernels of flash_attn_with_kvcache append new keys and values to the caches before they read them (Append_KV of
// flash_fwd_launch_template.h; FlashAttnFwdSm90 of FlashAttention-3 alike).
constexpr std::array kCachedOperands{Operand{"q", kRead}};
constexpr Signature kCachedAttention{"attention_with_cache", kCachedOperands, 4};
constexpr Signature kAttentionSum{"attention_sum", {}, 2};

// cub::DeviceReduce and cub::DeviceScan: d_in first, then d_out; the state of tiles is workspace. What the operator of
// a reduction points to is an operand, too.
constexpr std::array kReductionOperands{Operand{"in", kRead}};
constexpr Signature kReduction{"reduction", kReductionOperands, 2, 1};

// Ranks wait for each other, and read and write each other's memory.
constexpr Signature kCollective{"collective", {}, 1, 0, Pin::kCollective};

// cudaMemcpyAsync(dst, src, ...), cudaMemsetAsync(dst, ...). The host waits for what is copied to or from it.
constexpr std::array kCopyOperands{Operand{"to", kWrite}, Operand{"from", kRead}};
constexpr Signature kCopy{"copy", kCopyOperands, 2, 1};
constexpr Signature kHostCopy{"host_copy", {}, 1, 0, Pin::kHost};
constexpr std::array kFillOperands{Operand{"to", kWrite}};
constexpr Signature kFill{"fill", kFillOperands, 1, 1};

// Names as libraries of CUDA 11 to 13 have them in traces. Of CUTLASS only those that NVIDIA's libraries instantiate:
// cutlass::device_kernel is anybody's, with epilogues that may do anything. Rows are tried in their order.
constexpr std::array kRows{
    SignatureRow{"volta_*gemm_*", "", &kProduct},  // cuBLAS, by the architecture that they were written for
    SignatureRow{"turing_*gemm_*", "", &kProduct},
    SignatureRow{"ampere_*gemm_*", "", &kProduct},
    SignatureRow{"sm*_xmma_gemm_*", "", &kProduct},
    SignatureRow{"nvjet_*", "", &kProduct},  // from Hopper on
    SignatureRow{"cutlass_*gemm_*", "", &kProduct},
    SignatureRow{"cutlass::Kernel", "<cutlass_*gemm*", &kProduct},
    SignatureRow{"cutlass::Kernel2", "<cutlass_*gemm*", &kProduct},
    SignatureRow{"gemmSN_*_kernel*", "", &kProduct},
    SignatureRow{"cublasLt::splitKreduce_kernel", "", &kSplitSum},
    SignatureRow{"splitKreduce_kernel", "", &kSplitSum},
    SignatureRow{"gemv2T_kernel_val", "", &kVectorProduct},
    SignatureRow{"gemv2N_kernel", "", &kVectorProduct},
    SignatureRow{"gemvNSP_kernel", "", &kVectorProduct},
    SignatureRow{"gemvx::kernel", "", &kVectorProduct},
    SignatureRow{"flash_fwd_kernel", "", &kAttention},  // flash:: and pytorch_flash::
    SignatureRow{"flash_fwd_splitkv_kernel", "", &kCachedAttention},
    SignatureRow{"flash_fwd_splitkv_combine_kernel", "", &kAttentionSum},
    SignatureRow{"cutlass::device_kernel", "<flash::*FlashAttnFwdSm90*", &kCachedAttention},
    SignatureRow{"cutlass::device_kernel", "<flash::FlashAttnFwdCombine*", &kAttentionSum},
    SignatureRow{"fmha_cutlassF_*", "", &kAttention},  // PyTorch and xFormers
    SignatureRow{"cudnn_generated_fort_native_sdpa_*_flash_fprop_*", "", &kAttention},
    SignatureRow{"cub::*DeviceReduceKernel", "", &kReduction},
    SignatureRow{"cub::*DeviceReduceSingleTileKernel", "", &kReduction},
    SignatureRow{"cub::*DeviceSegmentedReduceKernel", "", &kReduction},
    SignatureRow{"cub::*DeviceScanKernel", "", &kReduction},
    SignatureRow{"nccl*", "", &kCollective},  // ncclDevKernel_AllReduce_...; ncclKernel_... before 2.19
    SignatureRow{"rccl*", "", &kCollective},
    SignatureRow{"vllm::cross_device_reduce_*stage", "", &kCollective},
    SignatureRow{"Memcpy DtoD*", "", &kCopy},  // Kineto
    SignatureRow{"Memcpy *", "", &kHostCopy},
    SignatureRow{"Memset *", "", &kFill},
    SignatureRow{"[CUDA memcpy Device-to-Device]", "", &kCopy},  // Nsight Systems
    SignatureRow{"[CUDA memcpy *", "", &kHostCopy},
    SignatureRow{"[CUDA memset]", "", &kFill},
};

}  // namespace

std::span<const SignatureRow> signature_table() { return kRows; }

}  // namespace tangram::kernels
