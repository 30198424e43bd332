// Launch plans with colocated encoders, written by hand: encoders and pipelines of the language model in, a plan out.
#pragma once

#include <string>
#include <vector>

#include "unit/execute/tiny_plan.hpp"

namespace tangram::execute::tiny {

struct EncoderSpec {
  cost::EncoderLayout layout = {};
  int layers = 3;
  bool trained = true;
  bool connector = true;
  bool trained_connector = true;
  bool some_without = false;  ///< a third of the samples has no items
};

/// Encoders in front of `layers` dense layers.
[[nodiscard]] model::Model make_multimodal(const std::vector<EncoderSpec>& encoders, int layers,
                                           bool trained_language = true);

/// Encoders in front of `layers` dense layers, the last of `pipelines`' stages ending with the last of them.
[[nodiscard]] plan::LaunchPlan make_colocated(const std::vector<EncoderSpec>& encoders, int layers,
                                              const std::vector<PipelineSpec>& pipelines);

}  // namespace tangram::execute::tiny
