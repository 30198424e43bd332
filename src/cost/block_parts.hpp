// What block_time.cpp adds up of one block: kernels of its parts and exchanges around them, forward and backward. Goes
// in: a block on one GPU (BlockContext). Comes out: seconds of the device, and kernels that the host issues for them.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "tangram/cost/block_time.hpp"
#include "tangram/cost/communication.hpp"

namespace tangram::cost {

// Streams of one kernel in activation sizes: values read plus values written.
inline constexpr double kNormForward = 2, kNormBackward = 3;  // x -> y; x, dy -> dx
inline constexpr double kPlainForward = 2, kPlainBackward = 3;

/// Bytes of a main gradient that products of weight gradients add to; 0 where kernels of their own do (UnitCosts).
[[nodiscard]] double added_gradient(const model::Job& job);

/// The groups of a stage, and what one collective in them takes.
struct Exchanges {
  const cluster::DeviceShape& shape;
  std::span<const CollectiveCurve> curves;
  ProcessGroups groups;

  [[nodiscard]] double seconds(Collective kind, double bytes, const Group& group) const {
    return collective_seconds(kind, bytes, group, shape, curves);
  }
};

/// Everything the parts of one block need to know.
struct BlockContext {
  const model::BlockType& block;
  const Degrees& degrees;
  const Exchanges& exchanges;
  LocalBlock local;
  DeviceRates rates;
  std::optional<DeviceRates> expert_rates;  ///< of experts that compute in 16 bits beside narrower layers
  double gradient;                          ///< bytes of a main gradient that products add to; 0: they add to none
  bool fused;
  bool fused_kernels;
  model::EagerOperators eager;
  bool wide_routes;  ///< weights of routes are in fp32
  model::ContextExchange context;
};

[[nodiscard]] Passes stream(const BlockContext& c, double values, double forward, double backward);
/// Of so many values.
[[nodiscard]] Passes norm(const BlockContext& c, double values);
[[nodiscard]] Passes linear(const BlockContext& c, double rows, double in, double out, double count = 1,
                            InputFrom input = InputFrom::kOther);

/// Of what mixes the tokens of the block, what counts beside its compute.
struct MixerTime {
  Passes core;           ///< attention itself: exchanges of keys and values hide under it
  double exchange = 0;   ///< forward, around it: copies, and what is exposed of exchanges
  double latent_up = 0;  ///< forward, of the projections of compressed vectors
};

/// Attention or a recurrence, added to `compute`.
[[nodiscard]] MixerTime add_mixer(const BlockContext& c, Passes& compute);
/// All beside its matrices, or beside those of what feeds forward.
[[nodiscard]] Passes adapters(const BlockContext& c, bool of_attention);
/// Of matrices that are held quantized: those of attention, a recurrence and routed experts.
[[nodiscard]] Passes dequantized_others(const BlockContext& c);
/// Of experts that compute in 16 bits beside narrower layers.
[[nodiscard]] std::optional<DeviceRates> expert_rates(const model::BlockType& block, const model::Job& job,
                                                      const cluster::GpuType& device);
/// All of what every token passes behind attention: a dense feed-forward part or shared experts.
[[nodiscard]] Passes feeding(const BlockContext& c, double columns);
[[nodiscard]] Passes router(const BlockContext& c);
/// What experts have between their products.
[[nodiscard]] Passes expert_activation(const BlockContext& c);
/// The router's, permutation, the experts' grouped products (Gale et al., MegaBlocks, arXiv 2211.15841),
/// un-permutation.
[[nodiscard]] Passes experts(const BlockContext& c, const Passes& router);
/// Around the exchanges of a region of sequence parallelism: what is gathered, and what is scattered.
[[nodiscard]] Passes exchange_copies(const BlockContext& c);
/// Norms and residual additions.
[[nodiscard]] Passes residual_stream(const BlockContext& c);
/// The host reads how many tokens each expert got and issues its products; the device has nothing to do meanwhile.
[[nodiscard]] Passes issued_one_by_one(const BlockContext& c, const model::Job& job);

/// What an all-to-all exchanges for heads and back, in values of all four: queries, keys, values and what is attended
/// to.
[[nodiscard]] std::array<double, 4> exchanged_values(const BlockContext& c);
/// Keys and values of all positions.
[[nodiscard]] double gathered_values(const BlockContext& c);

/// Exchange around one tensor-parallel region. What products read in 8 or 4 bits is cast before it is gathered
/// (Transformer Engine, gather_along_first_dim in pytorch/distributed.py); sums are scattered in 16.
[[nodiscard]] Passes tensor_exchange(const BlockContext& c);

/// What the experts exchange, one direction.
struct ExpertExchange {
  double routes = 0;  ///< dispatch and combine
  double tensor = 0;  ///< among the expert-tp ranks
  int issued = 0;     ///< dispatch and combine, by the host: kernels of the model's count
};

[[nodiscard]] ExpertExchange expert_exchange(const BlockContext& c, const model::Job& job);

/// Full time of what context parallelism exchanges, whatever hides it.
[[nodiscard]] Passes context_exchange(const BlockContext& c);
/// What of it runs beside attention: the ring's steps but the first, and while the device waits for the host, the ring
/// goes on. Gathers, and exchanges of heads, are waited for.
[[nodiscard]] Passes hidden_exchange(const BlockContext& c, const Passes& exchange, const Passes& free);

/// Of a unit that is not trained, and before which nothing is.
void drop_backward(BlockTime& time);

}  // namespace tangram::cost
