// Low-rank adapters (LoRA, Hu et al., arXiv 2106.09685): beside a frozen matrix W, out x in, two matrices are trained,
// A of rank x in and B of out x rank. What W x was becomes W x + alpha / rank B A x.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tangram/base/enum_set.hpp"
#include "tangram/base/expected.hpp"

namespace tangram::model {

struct BlockType;
struct Model;

/// Matrices that adapters stand beside; of a feed-forward its dense part and its shared experts, each with its own.
enum class AdapterTarget : std::uint8_t { kQuery, kKey, kValue, kOutput, kGate, kUp, kDown };

/// With the names of Hugging Face's PEFT for Llama.
inline constexpr std::array<std::pair<std::string_view, AdapterTarget>, 7> kAdapterTargets{{
    {"q_proj", AdapterTarget::kQuery},
    {"k_proj", AdapterTarget::kKey},
    {"v_proj", AdapterTarget::kValue},
    {"o_proj", AdapterTarget::kOutput},
    {"gate_proj", AdapterTarget::kGate},
    {"up_proj", AdapterTarget::kUp},
    {"down_proj", AdapterTarget::kDown},
}};

using AdapterTargets = EnumSet<AdapterTarget>;

[[nodiscard]] std::optional<AdapterTarget> target_called(std::string_view name);

/// In the order of kAdapterTargets.
[[nodiscard]] std::vector<std::string_view> names_of(const AdapterTargets& targets);

/// How matrices of frozen layers are held (QLoRA, Dettmers et al., arXiv 2305.14314, section 3): embedding, head,
/// norms, biases and routers stay as they are.
enum class BaseQuantization : std::uint8_t {
  kNone,       ///< in two bytes
  kNf4,        ///< in 4 bits and an fp32 scale of 64 values (bitsandbytes' bnb_4bit_quant_type "nf4")
  kNf4Double,  ///< the scales in 8 bits and an fp32 scale of 256 of them (its bnb_4bit_use_double_quant)
};

[[nodiscard]] std::string_view to_string(BaseQuantization quantization);

/// Bytes of a parameter; nullopt: as the job has them.
[[nodiscard]] std::optional<double> quantized_bytes(BaseQuantization quantization);

struct Adapters {
  std::int64_t rank = 0;  ///< 0: there are none
  std::int64_t alpha = 0;
  AdapterTargets targets;
  BaseQuantization base = BaseQuantization::kNone;

  [[nodiscard]] bool any() const { return rank > 0 && !targets.empty(); }
  [[nodiscard]] bool has(AdapterTarget target) const { return rank > 0 && targets.has(target); }
  bool operator==(const Adapters&) const = default;
};

/// Reads "16", or "16", "q_proj", "v_proj": the rank, and what they stand beside; alpha is the rank, and the base is
/// not quantized.
[[nodiscard]] Expected<Adapters> read_adapters(std::span<const std::string> words);

/// A matrix that an adapter can stand beside, out x in.
struct AdaptableMatrix {
  AdapterTarget target = AdapterTarget::kQuery;
  std::int64_t in = 0;
  std::int64_t out = 0;

  /// tp splits what it reads, of the others what they give: Megatron-LM's rows and columns (arXiv 1909.08053).
  [[nodiscard]] bool splits_input() const { return target == AdapterTarget::kOutput || target == AdapterTarget::kDown; }
  [[nodiscard]] bool of_attention() const { return target <= AdapterTarget::kOutput; }
};

/// Those of a block. Latent attention has the output's alone, a recurrence and routed experts have none.
[[nodiscard]] std::vector<AdaptableMatrix> adaptable_matrices(const BlockType& block);
/// Those of them that the block's adapters stand beside.
[[nodiscard]] std::vector<AdaptableMatrix> adapted_matrices(const BlockType& block);
/// What adaptable_matrices() are beside.
[[nodiscard]] AdapterTargets adaptable_targets(const BlockType& block);

/// Puts adapters beside matrices of the language model, which is frozen then; without targets beside all that can have
/// them. Types are split for it where the language model shares some with encoders.
void set_adapters(Model& model, Adapters adapters);

/// Of the language model; nullopt: it has none.
[[nodiscard]] std::optional<Adapters> adapters_of(const Model& model);

}  // namespace tangram::model
