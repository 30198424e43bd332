#include "tangram/cost/block_time.hpp"

#include <algorithm>

#include "block_parts.hpp"
#include "block_recompute.hpp"
#include "tangram/cost/communication.hpp"
#include "tangram/cost/memory.hpp"

namespace tangram::cost {
namespace {

/// Exchanges of tensor parallelism beside the products they feed, cut into one chunk a rank: the first has no product
/// to run beside yet. What hides them hides nothing else.
void hide_tensor_exchange(BlockTime& time, int tp, const cluster::ExecutionMethods& methods) {
  const Passes free{time.compute.forward - time.overlapped.forward, time.compute.backward - time.overlapped.backward};
  const double beside = (tp - 1.0) / tp;
  const double backward = methods.tensor_forward_alone ? 0 : beside;
  const Passes hidden{std::min(beside * time.tensor.forward, free.forward),
                      std::min(backward * time.tensor.backward, free.backward)};
  time.overlapped.forward += hidden.forward;
  time.overlapped.backward += hidden.backward;
  time.tensor = {time.tensor.forward - hidden.forward, time.tensor.backward - hidden.backward};
}

/// Inputs of modules go to the host and come back beside the passes, on the host's bus: copy engines take nothing from
/// the products.
void expose_offload(BlockTime& time, double bytes, const cluster::DeviceShape& shape) {
  const double seconds = bytes / shape.device.pcie.bandwidth.value();
  time.bus = {seconds_beside(seconds, time.compute.forward + time.communication.forward, 0),
              seconds_beside(seconds, time.compute.backward + time.communication.backward, 0)};
  time.communication += time.bus;
}

/// What dispatch and combine add, beside the passes of another microbatch where the job has it so. What hides them
/// hides nothing else.
Passes expose_routes(BlockTime& time, double routes, const model::Job& job) {
  if (!job.overlap_experts) return {routes, routes};
  const Passes free{time.compute.forward - time.overlapped.forward, time.compute.backward - time.overlapped.backward};
  time.overlapped.forward += std::min(routes, free.forward);
  time.overlapped.backward += std::min(routes, free.backward);
  const Passes beside{seconds_beside(routes, free.forward), seconds_beside(routes, free.backward)};
  time.alone = {routes - beside.forward, routes - beside.backward};
  return beside;
}

/// The parts of a block that graphs are captured of; each is issued by the host where no graph holds it.
struct Modules {
  Passes mixing;   ///< attention or a recurrence, with its norm and what is added behind it
  Passes feeding;  ///< a dense feed-forward part or shared experts, likewise
  Passes router;
};

/// Norms and additions of a block with two parts are taken to be half of each.
Modules with_streams(Modules parts, const Passes& streams, const model::BlockType& block) {
  const auto share = [&](int kernels) {
    if (!block.mixes()) return 0;
    return block.feeds_forward() ? (kernels + 1) / 2 : kernels;
  };
  parts.mixing.forward_kernels += share(streams.forward_kernels);
  parts.mixing.backward_kernels += share(streams.backward_kernels);
  parts.feeding.forward_kernels += streams.forward_kernels - share(streams.forward_kernels);
  parts.feeding.backward_kernels += streams.backward_kernels - share(streams.backward_kernels);
  return parts;
}

/// The same time with the kernels that graphs do not hold.
Passes issued_kernels(Passes all, const Modules& parts, const model::BlockType& block,
                      const model::CudaGraphs& graphs) {
  const auto capture = [&](model::GraphModule module, const Passes& part) {
    if (!graphs.has(module)) return;
    all.forward_kernels -= part.forward_kernels;
    all.backward_kernels -= part.backward_kernels;
  };
  capture(mixing_module(block), parts.mixing);
  capture(feeding_module(block), parts.feeding);
  capture(model::GraphModule::kRouter, parts.router);
  return all;
}

/// Of exchanges around a part, what the host issues: they take their time elsewhere.
Passes issued_of(const Passes& exchange) { return {0, 0, exchange.forward_kernels, exchange.backward_kernels}; }

/// Calls with which the host saves, sets and sets back the states of random numbers for a part that is recomputed by
/// itself (Megatron-Core, tensor_parallel/random.py). With four, beside that of the part's own kernel, a part takes 0.5
/// ms on H100's hosts; parts of Moonlight on eight H100, whose host is the limit, were measured to take 0.35 to 0.9
/// (Megatron-Bridge, skills/nemo-mbridge-perf-activation-recompute).
constexpr int kStateCalls = 4;

/// What the host issues for parts that are recomputed one by one, outside of graphs.
int recompute_calls(const BlockContext& c, const model::Job& job) {
  using model::RecomputeModule;
  const model::RecomputeModules again = model::recomputed_modules(c.block, job);
  int parts = 0;
  const auto count = [&](RecomputeModule module, bool captured) { parts += again.has(module) && !captured ? 1 : 0; };
  const bool mixing = job.cuda_graphs.has(model::mixing_module(c.block));
  const bool feeding = job.cuda_graphs.has(model::feeding_module(c.block));
  if (c.block.mixes()) count(RecomputeModule::kNorms, mixing);
  if (c.block.feeds_forward()) count(RecomputeModule::kNorms, feeding);
  count(RecomputeModule::kCoreAttention, mixing);
  count(RecomputeModule::kLatentUp, mixing);
  count(RecomputeModule::kFeedForward, feeding);
  for (const auto module :
       {RecomputeModule::kExperts, RecomputeModule::kExpertActivation, RecomputeModule::kSharedExperts}) {
    count(module, false);
  }
  return parts * (1 + kStateCalls);
}

/// What `more` adds to passes that the host issues.
Passes added(const Passes& issued, const Passes& more, const BlockContext& c, const model::Job& job) {
  Passes all = issued;
  all += more;
  const Passes before = host_bound(issued, c.rates, job.blocking_launches);
  const Passes with = host_bound(all, c.rates, job.blocking_launches);
  return {with.forward - before.forward, with.backward - before.backward};
}

/// A block's compute as long as the host lets it take.
Passes host_bound_block(const Passes& issued, const BlockContext& c, const model::Job& job) {
  Passes all = host_bound(issued, c.rates, job.blocking_launches);
  all += issued_one_by_one(c, job);
  return all;
}

}  // namespace

BlockTime block_time(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                     double samples_per_replica, const cluster::DeviceShape& shape,
                     std::span<const CollectiveCurve> curves) {
  if (const auto own = model::own_job(block, job)) {
    return block_time(block, *own, degrees, samples_per_replica, shape, curves);
  }
  const Exchanges exchanges{shape, curves, process_groups(degrees, shape)};
  const BlockContext c{block,
                       degrees,
                       exchanges,
                       local_block(block, job, degrees, samples_per_replica),
                       device_rates(shape.device, job),
                       expert_rates(block, job, shape.device),
                       added_gradient(job),
                       job.flash_attention,
                       job.fused_kernels,
                       job.eager_operators,
                       job.expert_dispatch != model::ExpertDispatch::kAllToAll,
                       job.context_exchange};
  BlockTime time;
  Modules parts;
  MixerTime mixer = add_mixer(c, parts.mixing);
  parts.mixing += adapters(c, true);
  parts.mixing += dequantized_others(c);
  const double columns = c.local.dense + c.local.shared;
  parts.feeding = feeding(c, columns);
  const bool moe = block.feed_forward.is_moe();
  if (moe) parts.router = router(c);
  const Passes routed = moe ? experts(c, parts.router) : Passes{};
  const Passes streams = residual_stream(c);
  const Passes tensor = tensor_exchange(c);
  const ExpertExchange experts_exchange = moe ? expert_exchange(c, job) : ExpertExchange{};
  const bool feeds_apart = columns > 0 && !block.parallel_attention;
  for (const Passes& around : {issued_of(tensor), exchange_copies(c)}) {
    if (block.mixes()) parts.mixing += around;
    if (feeds_apart) parts.feeding += around;
  }
  Passes device = streams;
  for (const Passes& part : {parts.mixing, parts.feeding, routed}) device += part;
  device += {0, 0, experts_exchange.issued, experts_exchange.issued};
  const Passes issued = issued_kernels(device, with_streams(parts, streams, block), block, job.cuda_graphs);
  time.compute = host_bound_block(issued, c, job);

  const int regions = (block.mixes() ? 1 : 0) + (feeds_apart ? 1 : 0);
  const Passes travel = context_exchange(c);
  const Passes hidden_ring = hidden_exchange(c, travel,
                                             {mixer.core.forward + time.compute.forward - device.forward,
                                              mixer.core.backward + time.compute.backward - device.backward});
  mixer.exchange += travel.forward - hidden_ring.forward;
  const double selective = selective_seconds(c, mixer, routed, experts_exchange, job);
  const Passes again = added(issued, {0, selective, kStateCalls, recompute_calls(c, job)}, c, job);
  time.states = again.forward;
  time.selective_compute = again.backward;
  time.overlapped = hidden_ring;
  time.tensor = {regions * tensor.forward + experts_exchange.tensor,
                 regions * tensor.backward + experts_exchange.tensor};
  const bool beside_products = job.overlap_tp && degrees.sequence_parallel && shape.methods.overlapped;
  if (beside_products) hide_tensor_exchange(time, degrees.tp, shape.methods);
  const Passes routes = expose_routes(time, experts_exchange.routes, job);
  time.unread = unread_seconds(c, routes.forward, job);
  time.communication = {time.tensor.forward + routes.forward + travel.forward - hidden_ring.forward,
                        time.tensor.backward + routes.backward + travel.backward - hidden_ring.backward};
  if (!job.offload_modules.empty()) {
    const DType format = matrix_format(shape.device, job.precision);
    const ActivationBytes kept = block_activation(block, job, degrees, samples_per_replica, format, shape.methods);
    if (kept.offloaded > 0) expose_offload(time, kept.offloaded, shape);
  }
  if (!block.gradients.any()) drop_backward(time);
  return time;
}

Passes share_of_trained(const BlockTime& time, const BlockTime& trained) {
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  return {
      share(time.compute.forward + time.communication.forward, trained.compute.forward + trained.communication.forward),
      share(time.compute.backward + time.communication.backward,
            trained.compute.backward + trained.communication.backward)};
}

}  // namespace tangram::cost
