// Encoders on the GPUs of the language model. Goes in: an encoder as a model of its own (model::encoder_of), how it is
// laid out, the samples of a lane. Comes out: times and memory on each of those GPUs.
//
// A lane is `tp` GPUs of one member that hold all of an encoder; all GPUs of the plan are lanes. Lanes exchange
// gradients with one another and share optimizer state (ZeRO-1). Nothing here depends on the language model's degrees.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tangram/cost/stage.hpp"

namespace tangram::cost {

/// How encoders and language model take turns (Karnati et al., arXiv 2605.27678).
enum class EncoderTurns : std::uint8_t {
  kPerMicrobatch,  ///< encoders, language model, and back, for every microbatch; a pipeline of one stage
  kThreePhases,    ///< encoders forward for the whole batch, 1F1B of the language model, encoders backward
};
[[nodiscard]] std::string_view to_string(EncoderTurns turns);  ///< "per-microbatch", "three-phase"

/// How one encoder is laid out: alike on all GPUs.
struct EncoderLayout {
  int tp = 1;
  bool sequence_parallel = false;  ///< only with tp > 1
  bool zero1 = false;              ///< optimizer state is shared by all lanes
  RecomputeMode recompute = RecomputeMode::kNone;
  auto operator<=>(const EncoderLayout&) const = default;
};

/// Of one GPU.
struct EncoderCost {
  Nanoseconds forward;         ///< of the lane's samples
  Nanoseconds backward;        ///< of the same, recompute included; 0 where nothing is trained
  Nanoseconds gradient_sync;   ///< whole: reduction over all lanes, and the gather of parameters under ZeRO-1
  Nanoseconds optimizer_step;  ///< without that gather
  Bytes static_memory;
  Bytes transient;
  Bytes held;  ///< activations of the lane's samples, from forward to backward

  [[nodiscard]] Bytes reserve() const { return static_memory + transient + held; }
  /// Encoders run one after the other: times add up, of working buffers the largest counts.
  EncoderCost& operator+=(const EncoderCost& other);
  bool operator==(const EncoderCost&) const = default;
};

/// Without gradient_sync. `samples`: of the lane in one round of the schedule; `output_bytes`: what the encoder hands
/// over of one sample; `stage`: GPUs of a stage of the language model, of which a lane is `tp`. Errors: those of
/// unit_costs(), and code "encoder-lanes" where lanes would leave their member.
[[nodiscard]] Expected<EncoderCost> encoder_cost(const model::Model& encoder, std::int64_t output_bytes,
                                                 const cluster::DeviceShape& stage, const EncoderLayout& layout,
                                                 std::int64_t samples, std::int64_t lanes,
                                                 const ProfileSet* profiles = nullptr);

/// Adds what encoder_cost would use of profiles; of the stage, device and links count.
void collect_encoder(const ProfileSet& profiles, const model::Model& encoder, const cluster::DeviceShape& stage,
                     const EncoderLayout& layout, std::int64_t samples, Selection& used);

/// Gradient reduction over all lanes of a plan, and under ZeRO-1 the gather of their parameters: a ring over `link`,
/// the slowest between any two of their members.
[[nodiscard]] Nanoseconds encoder_sync(const model::Model& encoder, const EncoderLayout& layout,
                                       const cluster::Link& link, std::int64_t lanes);

/// Times of samples that are not alike: the slowest lane takes `factor` times the mean.
[[nodiscard]] EncoderCost slowed(EncoderCost cost, double factor);

/// What the lanes of a pipeline hand to the replicas of its first stage, or these hand back, in one round. Nothing
/// where every lane is a replica of its only stage.
struct EncoderHandover {
  Bytes bytes;
  cluster::Link link;  ///< slowest between its GPUs, per member, reduced to the shapes' shares
  int members = 1;     ///< of its first stage
  int stages = 1;
  int lanes = 1;
  int replicas = 1;  ///< dp of its first stage
};
[[nodiscard]] Nanoseconds handover_time(const EncoderHandover& handover);

}  // namespace tangram::cost
