// A plan in Megatron-LM's words. Goes in: a plan whose stages agree in what the words say. Comes out: arguments, by the
// sections in which FlagScale's files have them.
#pragma once

#include <string>
#include <vector>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::exporting {

/// One argument without its dashes; a switch has no values.
struct Argument {
  std::string name;
  std::vector<std::string> values;
};
using Arguments = std::vector<Argument>;

/// Layers, widths, experts, positions, biases. Requires the rules of *_MODEL_* (plan/target_model.cpp).
[[nodiscard]] Arguments model_arguments(const model::Model& model);

/// Batch, length, precision, loss, optimizer.
[[nodiscard]] Arguments training_arguments(const plan::LaunchPlan& plan);

/// Degrees, layout, sharding, recompute: what is one value for all stages of stock Megatron-LM.
[[nodiscard]] Arguments parallel_arguments(const plan::LaunchPlan& plan);

/// --pipeline-model-parallel-layout: E embedding, t layer, L loss, | between stages (Megatron-LM
/// megatron/core/transformer/pipeline_parallel_layer_layout.py): "Et*12|t*11|t*6|t*3,L". Interleaved chunks follow each
/// other as in the model: the first ones of all stages, then the second ones, and so on.
[[nodiscard]] std::string pipeline_layout(const plan::LaunchPlan& plan);

/// Stages of the first pipeline, first to last; the others are its replicas.
[[nodiscard]] std::vector<const plan::Stage*> stages_of_replica(const plan::LaunchPlan& plan);

/// Samples of one microbatch on one data-parallel rank of the first stage, and of all replicas together.
[[nodiscard]] std::int64_t samples_per_rank(const plan::LaunchPlan& plan);
[[nodiscard]] std::int64_t samples_per_iteration(const plan::LaunchPlan& plan);

}  // namespace tangram::exporting
