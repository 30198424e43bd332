// Architectures that are known, and why they cannot be planned.
#include <algorithm>
#include <array>

#include "hf_config.hpp"

namespace tangram::model {

namespace {

/// What an architecture has, and what to do instead.
struct Reason {
  std::string_view what;
  std::string_view hint = kDescribedWithout;
};

constexpr std::string_view kOtherHybrids =
    "hybrids of layers that are Mamba-2, the gated delta rule, attention or a feed-forward can be planned (nemotron_h, "
    "qwen3_next, granitemoehybrid, bamba, mamba2)";
constexpr Reason kMamba1{"has layers of Mamba-1, whose scan is no product of matrices", kOtherHybrids};
constexpr Reason kBothInALayer{
    "has attention and a recurrence side by side in each layer, which are one or the other here", kOtherHybrids};
constexpr Reason kSharedLayers{"has layers that share one set of weights, which stages here hold each for themselves",
                               kOtherHybrids};
constexpr Reason kNormsOfAllHeads{"has norms of queries and keys over all heads together, which are of a head here"};
constexpr Reason kChosenKeys{"has attention to keys that an indexer chooses"};
constexpr Reason kConvolutions{"has layers of gated short convolutions"};
constexpr Reason kOwnCode{"has code of its own beside its weights, whose keys are not those of transformers"};
// Images stay outside the sequence: every fifth layer attends to them from within the language model.
constexpr Reason kCrossAttention{
    "joins images by cross-attention inside its language model, which is no chain of blocks",
    "plan a model whose images become tokens of the sequence (llama4, qwen2_5_vl, internvl), or describe the language "
    "model alone in a model.yaml"};

struct Refusal {
  std::string_view model_type;
  Reason reason;
};
constexpr std::array kRefusals{Refusal{"jamba", kMamba1},
                               Refusal{"mamba", kMamba1},
                               Refusal{"falcon_mamba", kMamba1},
                               Refusal{"zamba", kMamba1},
                               Refusal{"falcon_h1", kBothInALayer},
                               Refusal{"zamba2", kSharedLayers},
                               Refusal{"olmo2", kNormsOfAllHeads},
                               Refusal{"olmo3", kNormsOfAllHeads},
                               Refusal{"olmoe", kNormsOfAllHeads},
                               Refusal{"flex_olmo", kNormsOfAllHeads},
                               Refusal{"lfm2", kConvolutions},
                               Refusal{"lfm2_moe", kConvolutions},
                               Refusal{"chatglm", kOwnCode},
                               Refusal{"internlm2", kOwnCode},
                               Refusal{"deepseek_v32", kChosenKeys},
                               Refusal{"glm_moe_dsa", kChosenKeys},
                               Refusal{"minimax_m2", kNormsOfAllHeads},
                               Refusal{"mllama", kCrossAttention}};

Blueprint refuse(HfConfig& config) {
  const auto found =
      std::ranges::find(kRefusals, config.string_or("model_type", config.model_type()), &Refusal::model_type);
  hf_refuse(config, found->reason.what, found->reason.hint);
  return {};
}

constexpr auto kRefusedFamilies = [] {
  std::array<HfFamily, kRefusals.size()> families{};
  std::ranges::transform(kRefusals, families.begin(), [](const Refusal& r) { return HfFamily{r.model_type, refuse}; });
  return families;
}();

}  // namespace

std::span<const HfFamily> hf_refused_families() { return kRefusedFamilies; }

}  // namespace tangram::model
