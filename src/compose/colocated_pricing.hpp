// Encoders on the GPUs of a language model's plan, priced. Goes in: the plan, who takes turns how, a layout for each
// encoder. Comes out: the plan with its encoders and its closed form, or how much memory it lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tangram/compose/composition.hpp"
#include "tangram/multimodal/uneven.hpp"

namespace tangram::compose {

using cost::EncoderTurns;

/// A layout for each encoder.
using EncoderLayouts = std::vector<cost::EncoderLayout>;

/// Lanes and samples of one encoder on a plan.
struct LaneShare {
  std::int64_t lanes = 1;    ///< of one pipeline
  std::int64_t all = 1;      ///< of all pipelines
  std::int64_t samples = 1;  ///< of the fullest lane in one round
};

class EncoderPricing {
 public:
  /// Of a model that why_not_split() has nothing against. Both must outlive it.
  EncoderPricing(const model::Model& model, const cost::ProfileSet* profiles);

  [[nodiscard]] std::size_t encoders() const { return encoders_.size(); }
  [[nodiscard]] const model::Model& encoder(std::size_t number) const { return encoders_[number]; }

  /// Of one encoder on a GPU of such a stage, without synchronisation; the slowest lane's times. nullopt: these GPUs do
  /// not run it.
  [[nodiscard]] std::optional<cost::EncoderCost> cost(std::size_t number, const cluster::DeviceShape& stage,
                                                      const cost::EncoderLayout& layout, EncoderTurns turns,
                                                      const LaneShare& share) const;

  struct Placed {
    std::optional<Composition> plan;  ///< with encoders and closed form
    Bytes shortage;                   ///< without a plan: of the GPU that lacks most; 0: lanes do not fit its stages
  };
  /// `language`: a plan of the language model on this level. Per-microbatch turns ask for one stage.
  [[nodiscard]] Placed place(const Composition& language, const cluster::IslandLevel& level, EncoderTurns turns,
                             const EncoderLayouts& layouts) const;

 private:
  [[nodiscard]] bool set_costs(Composition& plan, const cluster::IslandLevel& level) const;
  void set_handover(Composition& plan, const cluster::IslandLevel& level) const;
  [[nodiscard]] bool is_trained() const;

  const cost::ProfileSet* profiles_;
  std::vector<model::Model> encoders_;
  std::vector<std::int64_t> outputs_;  ///< bytes of one sample
  std::vector<multimodal::SampleSpread> spreads_;
};

/// Lanes and samples of an encoder on the plan of a language model.
[[nodiscard]] LaneShare lane_share(const Composition& plan, EncoderTurns turns, int tp);

/// Iteration time of a plan with encoders (src/multimodal/README.md), ns.
[[nodiscard]] Nanoseconds colocated_closed_form(const Composition& plan);

}  // namespace tangram::compose
