// Where the encoders of a multimodal model run, for who wants it fixed. Goes in: a word. Comes out: what it stands for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tangram::compose {

/// As in Karnati et al., arXiv 2605.27678.
enum class EncoderPlacement : std::uint8_t {
  kAny,          ///< a chain: encoders are the first blocks of the pipeline, wherever it is cut
  kHomogeneous,  ///< all modules have one set of degrees, and the first stage has all encoders
  kDisjoint,     ///< each encoder is a stage of its own, with GPUs and degrees of its own
  kColocated,    ///< encoders run on all GPUs of the language model, in turn with it, with degrees of their own
};

/// Those that fix something: all but kAny.
[[nodiscard]] std::span<const EncoderPlacement> encoder_placements();

/// nullopt: "any", and what is no placement.
[[nodiscard]] std::optional<EncoderPlacement> placement_named(std::string_view name);
[[nodiscard]] std::string_view to_string(
    EncoderPlacement placement);  ///< "any", "homogeneous", "disjoint", "colocated"

}  // namespace tangram::compose
