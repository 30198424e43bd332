// The encoder of a measured plan: in the first stage of the language model, in a stage of its own, or on all GPUs. Goes
// in: a measurement. Comes out: what is not printed or not modelled, GPUs and blocks of its own, or an encoder on the
// GPUs of the language model.
#pragma once

#include <optional>

#include "cut.hpp"
#include "placement.hpp"
#include "tangram/accuracy/experiment.hpp"

namespace tangram::accuracy {

/// How the language model is laid out.
struct LanguageLayout {
  int tp = 1;
  int dp = 1;
  int stages = 1;
};

/// In full: selectively recomputed encoders are not modelled.
[[nodiscard]] bool is_recomputed(const EncoderFacts& encoder);

/// What of the encoder is missing, or not modelled.
[[nodiscard]] std::optional<Diagnostic> why_no_encoder(const Measurement& measurement, const LanguageLayout& language);

/// Without pipelines, and laid out like the language model, a colocated encoder is a homogeneous one.
[[nodiscard]] Placement placement_of(const Measurement& measurement, const LanguageLayout& language);

/// Whether it is a stage of its own.
[[nodiscard]] bool stands_in_front(const Measurement& measurement);

/// Replicas of the encoder's own stage, on the first GPUs of the machine, which then has the others; or why there are
/// not so many.
[[nodiscard]] Expected<std::vector<Replica>> take_own_stage(const Measurement& measurement, Machine& machine);

/// The encoder's own stage, whose samples are items. `microbatch`: samples of all replicas.
[[nodiscard]] Expected<Part> own_part(const Measurement& measurement, const std::vector<Replica>& replicas,
                                      std::int64_t microbatch, const Machine& machine);

/// The cut of the language model with the encoder's blocks in front: in its first position, or in one more.
[[nodiscard]] Cut with_encoder(Cut cut, const Measurement& measurement, int blocks);

/// Takes the encoder out of the experiment's model, and puts it on the GPUs of all stages, which have their batch.
[[nodiscard]] std::optional<Diagnostic> share_gpus(Experiment& experiment, const Measurement& measurement,
                                                   const LanguageLayout& language, const Machine& machine);

}  // namespace tangram::accuracy
