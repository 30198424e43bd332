// Which choices of the modules go together where encoders share the GPUs of the language model. Goes in: the pipelines
// that the language model may have, and what the encoders take on the GPUs of each. Comes out: the fastest selection by
// closed form. Times add up, and what encoders keep on every GPU is all that the language model sees of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/multimodal/colocated.hpp"

namespace tangram::multimodal {

/// One way to run an encoder on all GPUs of a language model: its passes for one round on the slowest lane.
struct EncoderLayout {
  std::int64_t forward = 0;    ///< ns
  std::int64_t backward = 0;   ///< ns
  std::int64_t gather = 0;     ///< ns
  std::int64_t broadcast = 0;  ///< ns
  std::int64_t sync = 0;       ///< of its gradients, ns
  std::int64_t step = 0;       ///< ns
  std::int64_t reserve = 0;    ///< bytes that it keeps on every GPU: states, and activations of a round
};

/// Bytes of a stage's GPUs, the fullest of them.
struct StageMemory {
  std::int64_t free = 0;            ///< beside the language model's states
  std::int64_t per_microbatch = 1;  ///< its activations, more than none
};

/// One pipeline of the language model.
struct SharedPipeline {
  int allocation = 0;               ///< the GPUs that it takes: encoder layouts are listed by it
  std::vector<Stage> stages;        ///< with a backward pass, A = T; n_max: the most that a stage holds, if memory does
  std::vector<Price> hops;          ///< behind each stage but the last
  std::vector<StageMemory> memory;  ///< of each stage
  std::int64_t sync = 0;            ///< of its gradients, ns
};

struct ShareProblem {
  std::int64_t microbatches = 1;  ///< of one round
  std::int64_t rounds = 1;
  bool graph_warmup = false;
  Grid<std::vector<EncoderLayout>> layouts;  ///< by encoder and allocation; none: these GPUs do not hold it
  std::vector<SharedPipeline> language;
};

struct SharedSelection {
  std::vector<int> layouts;  ///< of each encoder, by number
  int language = 0;
  std::int64_t time = 0;  ///< ns
};

/// What a problem must have so that everything else may take it as it is: an encoder, a pipeline, allocations that
/// layouts are listed by, memory and hops for stages, nothing negative, language models that pass check(StageGraph).
/// Errors name the element ("/language/3/memory") and what was expected.
[[nodiscard]] Expected<void> check(const ShareProblem& problem);

/// What a selection runs: one super-lane with one lane, the slowest.
[[nodiscard]] Colocated plan_of(const ShareProblem& problem, const SharedSelection& selection);

/// The fastest selection that memory holds; none: it holds none. O(pipelines * efficient layouts) closed forms.
[[nodiscard]] std::optional<SharedSelection> share(const ShareProblem& problem);

}  // namespace tangram::multimodal
