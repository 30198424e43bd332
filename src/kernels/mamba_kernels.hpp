// Kernels of a Mamba-2 mixer. Goes in: its dimensions and what the step serves. Comes out: the kernels between the norm
// in front and the projection back, as the reference and vLLM launch them (state-spaces/mamba, mamba_ssm/ops/triton).
//
// A request keeps, whatever its length, a state of heads x head_dim x key_dim and the last inputs of the convolution.
// Decode updates both in place, which is all that it moves beside the weights. Prefill computes by chunks of l tokens
// (Dao, Gu, "Transformers are SSMs", arXiv 2405.21060, section 6): for each head what a chunk adds to the state,
// [key_dim x l] times [l x head_dim]; states from chunk to chunk; for each group the scores of a chunk, [l x key_dim]
// times [key_dim x l]; and for each head the outputs, [l x (l + key_dim)] times [(l + key_dim) x head_dim]. Nothing is
// saved where scores are masked.
#pragma once

#include <vector>

#include "layer_kernels.hpp"

namespace tangram::kernels {

/// States, decays and scores are fp32, as in `cost` (recurrence.cpp). The last kernel writes "gated", [tokens x inner].
[[nodiscard]] std::vector<KernelSpec> mamba_kernels(const model::BlockType& block, const StepShape& step);

}  // namespace tangram::kernels
