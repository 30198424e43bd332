// Launch plans written by hand: degrees and samples in, ranks and transfers out. No cost model, no search.
#pragma once

#include <vector>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::execute::tiny {

struct PartSpec {
  cost::Degrees degrees;
  std::int64_t samples = 1;
  cost::MemoryPolicy policy = {};
};

struct StageSpec {
  int last = 0;  ///< first is the last of the stage before
  std::vector<PartSpec> parts;
  std::int64_t extra = 0;  ///< warm-up beyond the classic S - 1 - s
};

struct PipelineSpec {
  std::int64_t microbatch = 1;
  std::int64_t microbatches = 1;
  std::vector<StageSpec> stages;
  std::int64_t missing = 0;  ///< samples that the last microbatch has less than others
};

/// Blocks of these types, in order: 'd' dense, 'g' grouped queries, 'm' experts, 's' experts in groups beside a shared
/// one, 'l' latent attention, 'p' parallel attention, 'w' sliding window, 'k' samples packed of sequences, 'e' encoder
/// (attends both ways, 50 positions instead of 64).
[[nodiscard]] model::Model make_model(const std::string& types, bool tied = false);

/// The model with adapters beside these matrices of its language model, or all that can have them.
[[nodiscard]] model::Model with_adapters(model::Model model, model::AdapterTargets targets = {});

[[nodiscard]] plan::LaunchPlan make_plan(model::Model model, const std::vector<PipelineSpec>& pipelines);

/// The plan with its blocks dealt out evenly over `chunks` of each stage, the first ones to earlier places, with
/// Megatron-LM's warm-ups for microbatches in groups, and the way from the last stage round to the first.
[[nodiscard]] plan::LaunchPlan interleaved(plan::LaunchPlan plan, int chunks, std::int64_t group);

}  // namespace tangram::execute::tiny
