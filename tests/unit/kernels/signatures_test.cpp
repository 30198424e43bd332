// Names as cuBLAS, FlashAttention, CUB, NCCL and profilers write them.
#include "tangram/kernels/signatures.hpp"

#include "support/catch.hpp"
#include "tangram/base/at.hpp"
#include "tangram/kernels/launched_graph.hpp"
#include "tangram/ptx/parse.hpp"

using namespace tangram;
using namespace tangram::kernels;

namespace {

std::string family_of(std::string_view name) {
  const Signature* signature = signature_of(name);
  return signature == nullptr ? "" : std::string(signature->family);
}

ptx::Module module_with_norm() {
  auto module = ptx::parse(R"(.version 8.5
.target sm_80
.address_size 64
.visible .entry norm(.param .u64 x) {
  .reg .b64 p;
  .reg .f32 v;
  ld.param.u64 p, [x];
  ld.global.f32 v, [p];
  st.global.f32 [p], v;
  ret;
})",
                           "step.ptx");
  REQUIRE(module);
  return *module;
}

ptx::Launch launch_of(std::string entry, std::vector<ptx::Argument> arguments) {
  ptx::Launch launch;
  launch.entry = std::move(entry);
  launch.arguments = std::move(arguments);
  return launch;
}

ptx::BufferArgument given(std::string name, std::int64_t bytes) { return {std::move(name), bytes}; }

}  // namespace

TEST_CASE("kernels of libraries are known by their names") {
  for (const std::string_view name :
       {"ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn", "volta_sgemm_128x64_nn",
        "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize96x64x32_stage3_warpsize2x2x1_tensor16x8x16_kernel",
        "nvjet_tst_64x8_64x16_1x4_h_bz_splitK_bias_TNT", "cutlass_80_tensorop_s1688gemm_128x128_16x5_nt_align4",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_align8>"
        "(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_align8::Params)",
        "_ZN7cutlass7Kernel2I55cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_32x6_tn_EEvNT_6ParamsE",
        "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true>(int, int)"}) {
    INFO(name);
    CHECK(family_of(name) == "gemm");
  }
  CHECK(family_of("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(cublasLt::x<float>)") ==
        "split_k_sum");
  CHECK(family_of("void gemv2T_kernel_val<int, int, float, float>(cublasGemvParams)") == "gemv");
  CHECK(family_of("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128>, false>(P)") ==
        "attention");
  CHECK(family_of("_ZN5flash16flash_fwd_kernelINS_5ThingEEEvNS_16Flash_fwd_paramsE") == "attention");
  CHECK(family_of("void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64>, true>(Flash_fwd_params)") ==
        "attention_with_cache");
  CHECK(family_of("flash_fwd_splitkv_combine_kernel") == "attention_sum");
  CHECK(family_of("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<X>::Params)") ==
        "attention");
  CHECK(family_of("void cub::CUB_200500_800_NS::DeviceReduceSingleTileKernel<P, float*, float*, int>(float*)") ==
        "reduction");
  CHECK(family_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)") == "collective");
  CHECK(family_of("Memcpy DtoD (Device -> Device)") == "copy");
  CHECK(family_of("Memcpy HtoD (Pageable -> Device)") == "host_copy");
  CHECK(family_of("[CUDA memcpy Device-to-Host]") == "host_copy");
  CHECK(family_of("[CUDA memset]") == "fill");
}

TEST_CASE("what only looks like a kernel of a library is of no family") {
  for (const std::string_view name :
       {"", "gemm", "my_gemm_kernel", "void cutlass::device_kernel<mine::FusedGemm>(Params)",
        "void cutlass::Kernel2<mine::Gemm>(Params)", "void mine<pytorch_flash::flash_fwd_kernel>(int)", "_Z",
        "void flash::flash_bwd_dq_dk_dv_loop_kernel<T>(Flash_bwd_params)", "void DeviceReduceKernel<T>(float*)",
        "void cub::CUB_200500_800_NS::DeviceReduceByKeyKernel<P>(int*)", "flash_fwd_kernel_of_mine"}) {
    INFO(name);
    CHECK(family_of(name).empty());
  }
}

TEST_CASE("a launch without PTX touches its operands as the signature says, nobody knows which bytes") {
  const auto touch =
      touch_of(module_with_norm(), launch_of("ampere_sgemm_128x64_tn", {given("a", 64), std::int64_t{7}, given("b", 32),
                                                                        given("c", 16), given("workspace", 8)}));
  REQUIRE(touch);
  REQUIRE(touch->signature != nullptr);
  CHECK(touch->signature->family == "gemm");
  CHECK(touch->evidence == Evidence::kSignature);
  CHECK(touch->pinned == Pin::kNone);
  REQUIRE(touch->ranges.ranges.size() == 4);
  const std::vector<ptx::Effect> effects{ptx::Effect::kRead, ptx::Effect::kRead, ptx::Effect::kUpdate,
                                         ptx::Effect::kUpdate};
  const std::vector<int> arguments{0, 2, 3, 4};
  for (std::size_t i = 0; i < effects.size(); ++i) {
    CHECK(touch->ranges.ranges[i].effect == effects[i]);
    CHECK(touch->ranges.ranges[i].argument == arguments[i]);
    CHECK_FALSE(touch->ranges.ranges[i].exact);
  }
  CHECK(touch->ranges.ranges[2].bytes == std::vector<ptx::ByteSet>{{0, 16, {}}});
}

TEST_CASE("a launch that lacks operands, or is spelled like an entry, is a mistake") {
  const auto few = touch_of(module_with_norm(), launch_of("ampere_sgemm_128x64_tn", {given("a", 64)}));
  REQUIRE_FALSE(few);
  CHECK_THAT(render(few.error().front()),
             ContainsSubstring("launch of ampere_sgemm_128x64_tn: it has 1 buffers, gemm kernels 3 at least") &&
                 ContainsSubstring("a, b and 1 more at least"));
  const auto alike = touch_of(module_with_norm(), launch_of("norn", {given("x", 64)}));
  REQUIRE_FALSE(alike);
  CHECK_THAT(render(alike.error().front()), ContainsSubstring("did you mean \"norm\"?"));
}

TEST_CASE("a kernel without PTX or signature may touch all that it is given, and stays where it is") {
  const ptx::Module module = module_with_norm();
  const std::vector<ptx::RecordedLaunch> launches{
      {launch_of("norm", {given("x", 64)}), 1, 0},
      {launch_of("nvjet_tst_64x8_TNT", {given("x", 64), given("w", 64), given("y", 64)}), 2, 0},
      {launch_of("trtllm_moe_magic", {given("y", 64), given("z", 64)}), 3, 0},
      {launch_of("ncclDevKernel_AllReduce", {given("z", 64)}), 4, 0}};
  const auto graph = graph_of_launches({&module, 1}, launches, "launches.jsonl", {}, KernelCosts({}));
  REQUIRE(graph);
  CHECK(graph->kernels[0].evidence == Evidence::kPtx);
  CHECK(graph->kernels[1].evidence == Evidence::kSignature);
  CHECK(graph->kernels[1].signature == "gemm");
  CHECK(graph->kernels[1].pinned == Pin::kNone);
  CHECK(graph->kernels[1].reads == std::vector<Access>{{0, 0, 64, false}, {1, 0, 64, false}});
  CHECK(graph->kernels[1].updates == std::vector<Access>{{2, 0, 64, false}});
  CHECK(graph->kernels[2].evidence == Evidence::kConservative);
  CHECK(graph->kernels[2].pinned == Pin::kUnknownPointer);
  CHECK(graph->kernels[2].updates == std::vector<Access>{{2, 0, 64, false}, {3, 0, 64, false}});
  CHECK(graph->kernels[3].pinned == Pin::kCollective);
  std::vector<BufferKind> kinds;
  for (const Buffer& b : graph->buffers) kinds.push_back(b.kind);
  CHECK(kinds == std::vector<BufferKind>{BufferKind::kKv, BufferKind::kWeight, BufferKind::kKv, BufferKind::kKv});
}
