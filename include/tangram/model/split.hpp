// A multimodal model taken apart where its encoders run on the GPUs of the language model. Goes in: the whole model.
// Comes out: the language model and each encoder as models of their own, so that whatever prices a model prices them.
#pragma once

#include <cstdint>
#include <string>

#include "tangram/model/model.hpp"

namespace tangram::model {

/// Why the encoders cannot be taken from in front of the language model, for people; empty: they can. There must be
/// encoders, each with one edge into the first layer of the language model, which is trained; and no generators.
[[nodiscard]] std::string why_not_split(const Model& model);

/// The blocks behind the encoders, with the embedding, the head and the job. Block 0 is the first of the language
/// model. Requires why_not_split() to be empty.
[[nodiscard]] Model language_of(const Model& model);

/// One encoder of encoder_ranges(), with its connector. Its embedding is what embeds its input (patches), its head has
/// no parameters. The patches of a model without a graph of modules are those of its first encoder.
[[nodiscard]] Model encoder_of(const Model& model, int encoder);

/// As `freeze` and the graph call it; "encoder" where the model file names no modules.
[[nodiscard]] std::string encoder_name(const Model& model, int encoder);

/// Whether backward works anything out in the encoder or its connector; in any of them.
[[nodiscard]] bool trains_encoder(const Model& model, int encoder);
[[nodiscard]] bool trains_encoders(const Model& model);

/// What the encoder hands to the language model, of one sample: tokens out, as wide as the language model.
[[nodiscard]] std::int64_t encoder_output_bytes(const Model& model, int encoder);

/// How the encoder's work varies from sample to sample, where the model file says it.
struct EncoderSpread {
  double variation = 0;  ///< standard deviation over mean, of samples that have items
  double none = 0;       ///< share of samples without
};
/// Items are taken for lognormal, by their 95th percentile over their mean; a percentile that no lognormal has, more
/// than 3.87 times the mean, counts as the widest there is.
[[nodiscard]] EncoderSpread encoder_spread(const Model& model, int encoder);

}  // namespace tangram::model
