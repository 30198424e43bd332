// The members of what is stored and of what keys are made of, one by one. A structured binding names every member, so
// that nothing is forgotten: a type that gets one more does not compile here until it has its place.
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>

#include "tangram/compose/search.hpp"
#include "tangram/parallelizer/tally.hpp"

namespace tangram::planner::search_cache {

template <class S, class T>
concept Of = std::same_as<std::remove_const_t<S>, T>;

// Hardware.

template <Of<cluster::Link> S>
auto members(S& s) {
  auto& [bandwidth, latency, ramp] = s;
  return std::tie(bandwidth, latency, ramp);
}

template <Of<cluster::NativeAttention> S>
auto members(S& s) {
  auto& [forward, backward, forward_keys, backward_keys, source, multiple, forward_width, backward_width, forward_least,
         backward_least, widest, early_forward, early_backward] = s;
  return std::tie(forward, backward, forward_keys, backward_keys, source, multiple, forward_width, backward_width,
                  forward_least, backward_least, widest, early_forward, early_backward);
}

template <Of<cluster::FusedKernels> S>
auto members(S& s) {
  auto& [gemm, fp8, memory, source, fp4] = s;
  return std::tie(gemm, fp8, memory, source, fp4);
}

template <Of<cluster::ComputeCalibration> S>
auto members(S& s) {
  auto& [gemm, forward, backward, native, memory, fused, launch, issue, unvectorized, source] = s;
  return std::tie(gemm, forward, backward, native, memory, fused, launch, issue, unvectorized, source);
}

template <Of<cluster::GpuType> S>
auto members(S& s) {
  auto& [name, vendor, architecture, multiprocessors, memory, reserved, bandwidth, peak, peer_link, peer_reach,
         peer_pair, pcie, compute, price, source] = s;
  return std::tie(name, vendor, architecture, multiprocessors, memory, reserved, bandwidth, peak, peer_link, peer_reach,
                  peer_pair, pcie, compute, price, source);
}

// The model and its job.

template <Of<model::Attention> S>
auto members(S& s) {
  auto& [kind, heads, kv_heads, head_dim, window, causal, qkv_bias, output_bias, qk_norm, gate, q_rank, kv_rank, nope,
         rope, v_dim, packed] = s;
  return std::tie(kind, heads, kv_heads, head_dim, window, causal, qkv_bias, output_bias, qk_norm, gate, q_rank,
                  kv_rank, nope, rope, v_dim, packed);
}

template <Of<model::Recurrence> S>
auto members(S& s) {
  auto& [kind, heads, head_dim, groups, key_dim, convolution, chunk, convolution_bias, projection_bias] = s;
  return std::tie(kind, heads, head_dim, groups, key_dim, convolution, chunk, convolution_bias, projection_bias);
}

template <Of<model::FeedForward> S>
auto members(S& s) {
  auto& [hidden, gated, bias, experts, per_token, expert_hidden, latent, shared_hidden, shared_gate, router_bias,
         expert_groups, groups_per_token] = s;
  return std::tie(hidden, gated, bias, experts, per_token, expert_hidden, latent, shared_hidden, shared_gate,
                  router_bias, expert_groups, groups_per_token);
}

template <Of<model::Gradients> S>
auto members(S& s) {
  auto& [weights, inputs] = s;
  return std::tie(weights, inputs);
}

template <Of<model::Connector> S>
auto members(S& s) {
  auto& [kind, widths, bias, norm, norm_bias, queries, extra, trainable, copies, gradients, in, out] = s;
  return std::tie(kind, widths, bias, norm, norm_bias, queries, extra, trainable, copies, gradients, in, out);
}

template <Of<model::Items> S>
auto members(S& s) {
  auto& [of, mean, p95, max, none] = s;
  return std::tie(of, mean, p95, max, none);
}

template <Of<model::Module> S>
auto members(S& s) {
  auto& [name, kind, blocks, in, out, items, patches, connector, trainable, constraint, adapters] = s;
  return std::tie(name, kind, blocks, in, out, items, patches, connector, trainable, constraint, adapters);
}

template <Of<model::ModuleConstraint> S>
auto members(S& s) {
  auto& [tp, cp, ep, gpus] = s;
  return std::tie(tp, cp, ep, gpus);
}

template <Of<model::Adapters> S>
auto members(S& s) {
  auto& [rank, alpha, targets, base] = s;
  return std::tie(rank, alpha, targets.bits, base);
}

template <Of<model::Edge> S>
auto members(S& s) {
  auto& [from, to, from_layers, into_layers] = s;
  return std::tie(from, to, from_layers, into_layers);
}

template <Of<model::ModuleGraph> S>
auto members(S& s) {
  auto& [modules, edges] = s;
  return std::tie(modules, edges);
}

template <Of<model::BlockType> S>
auto members(S& s) {
  auto& [name, hidden, tokens, attention, recurrence, feed_forward, norms, norm_bias, parallel, gradients, connector,
         constraint, wide, adapters] = s;
  return std::tie(name, hidden, tokens, attention, recurrence, feed_forward, norms, norm_bias, parallel, gradients,
                  connector, constraint, wide, adapters);
}

template <Of<model::Techniques> S>
auto members(S& s) {
  auto& [tp, sp, cp, ep, dp, zero1, zero2, zero3, selective, full, mixed, replicas, pipeline, interleaving, bubble] = s;
  return std::tie(tp, sp, cp, ep, dp, zero1, zero2, zero3, selective, full, mixed, replicas, pipeline, interleaving,
                  bubble);
}

template <Of<model::Optimizer> S>
auto members(S& s) {
  auto& [name, bytes, precision_aware, offload_fraction] = s;
  return std::tie(name, bytes, precision_aware, offload_fraction);
}

template <Of<model::OffloadModules> S>
auto members(S& s) {
  return std::tie(s.bits);
}

template <Of<model::CudaGraphs> S>
auto members(S& s) {
  return std::tie(s.bits);
}

template <Of<model::EagerOperators> S>
auto members(S& s) {
  return std::tie(s.bits);
}

template <Of<model::RecomputeModules> S>
auto members(S& s) {
  return std::tie(s.bits);
}

template <Of<model::OptionSet> S>
auto members(S& s) {
  return std::tie(s.bits);
}

template <Of<model::ShardingGroup> S>
auto members(S& s) {
  auto& [kind, ranks] = s;
  return std::tie(kind, ranks);
}

template <Of<model::WideLayers> S>
auto members(S& s) {
  auto& [first, last] = s;
  return std::tie(first, last);
}

template <Of<model::LengthCount> S>
auto members(S& s) {
  auto& [tokens, sequences] = s;
  return std::tie(tokens, sequences);
}

template <Of<model::Packing> S>
auto members(S& s) {
  auto& [mean, p95, lengths] = s;
  return std::tie(mean, p95, lengths);
}

template <Of<model::Job> S>
auto members(S& s) {
  auto& [sequence, batch, precision, recipe, narrow_parameters, transpose_cache, narrow_inputs, narrow_gates,
         wide_experts, wide_layers, parameter, gradient, flash, kernel, fused_kernels, eager, in_place_loss, fused_loss,
         graphs, grouped_gemm, dispatch, context, overlap_experts, imbalance, dropout, gather, bucket, overlap, fused,
         blocking, modules, offloaded, packing, optimizer, loss, allow, microbatch, group, free] = s;
  return std::tie(sequence, batch, precision, recipe, narrow_parameters, transpose_cache, narrow_inputs, narrow_gates,
                  wide_experts, wide_layers, parameter, gradient, flash, kernel, fused_kernels, eager, in_place_loss,
                  fused_loss, graphs, grouped_gemm, dispatch, context, overlap_experts, imbalance, dropout, gather,
                  bucket, overlap, fused, blocking, modules, offloaded, packing, optimizer, loss, allow, microbatch,
                  group, free);
}

template <Of<model::Model> S>
auto members(S& s) {
  // `assumed` tells people where the job is from; what it is stands in `job`.
  auto& [name, types, blocks, graph, vocabulary, hidden, positions, projection, tied, norm, norm_bias, extra, job,
         digest, assumed] = s;
  return std::tie(name, types, blocks, graph, vocabulary, hidden, positions, projection, tied, norm, norm_bias, extra,
                  job, digest);
}

// Measurements.

template <Of<cost::Degrees> S>
auto members(S& s) {
  auto& [tp, cp, dp, ep, etp, sequence_parallel, dp_replicate] = s;
  return std::tie(tp, cp, dp, ep, etp, sequence_parallel, dp_replicate);
}

template <Of<cost::ProfileRow> S>
auto members(S& s) {
  auto& [degrees, samples, forward, backward, activation, scaled] = s;
  return std::tie(degrees, samples, forward, backward, activation, scaled);
}

template <Of<cost::ProfileUnit> S>
auto members(S& s) {
  auto& [kind, block, vocabulary, hidden, sequence, dtype, flash, rows] = s;
  return std::tie(kind, block, vocabulary, hidden, sequence, dtype, flash, rows);
}

template <Of<cost::CurveGroup> S>
auto members(S& s) {
  auto& [ranks, nodes, sharing] = s;
  return std::tie(ranks, nodes, sharing);
}

template <Of<cost::CurvePoint> S>
auto members(S& s) {
  auto& [bytes, time] = s;
  return std::tie(bytes, time);
}

template <Of<cost::CollectiveCurve> S>
auto members(S& s) {
  auto& [operation, group, points] = s;
  return std::tie(operation, group, points);
}

template <Of<cost::Profile> S>
auto members(S& s) {
  auto& [device, source, date, includes_tp, units, collectives] = s;
  return std::tie(device, source, date, includes_tp, units, collectives);
}

// What is asked of the search.

template <Of<parallelizer::Demands> S>
auto members(S& s) {
  auto& [degrees, recompute, sequence_parallel, zero1, whole_experts, whole_modules, together, alike, whole_recompute,
         power_of_two, tp_at_ends, equal] = s;
  return std::tie(degrees, recompute, sequence_parallel, zero1, whole_experts, whole_modules, together, alike,
                  whole_recompute, power_of_two, tp_at_ends, equal);
}

template <Of<runtime::Semantics> S>
auto members(S& s) {
  auto& [transfers, warmup] = s;
  return std::tie(transfers, warmup);
}

template <Of<compose::Constraints> S>
auto members(S& s) {
  auto& [demands, semantics, gpu_types, max_replicas, expert_parallel, pipeline, chunks, later_chunks, put_off] = s;
  return std::tie(demands, semantics, gpu_types, max_replicas, expert_parallel, pipeline, chunks, later_chunks,
                  put_off);
}

template <Of<compose::SpendLimit> S>
auto members(S& s) {
  auto& [currency, most] = s;
  return std::tie(currency, most);
}

template <Of<parallelizer::ParallelizerInfo> S>
auto members(S& s) {
  auto& [name, version, deterministic, built_in, modelled, identity] = s;
  return std::tie(name, version, deterministic, built_in, modelled, identity);
}

// What it found.

template <Of<cost::BlockPolicy> S>
auto members(S& s) {
  auto& [zero, recompute] = s;
  return std::tie(zero, recompute);
}

template <Of<cost::BlockRun> S>
auto members(S& s) {
  auto& [blocks, policy] = s;
  return std::tie(blocks, policy);
}

template <Of<cost::MemoryPolicy> S>
auto members(S& s) {
  auto& [zero, recompute, layers, runs] = s;
  return std::tie(zero, recompute, layers, runs);
}

template <Of<cost::Strategy> S>
auto members(S& s) {
  auto& [degrees, policy] = s;
  return std::tie(degrees, policy);
}

template <Of<cost::StageCost> S>
auto members(S& s) {
  auto& [forward, backward, sync, step, parameters, gradients, optimizer, transient, activation, volume, provenance] =
      s;
  return std::tie(forward, backward, sync, step, parameters, gradients, optimizer, transient, activation, volume,
                  provenance);
}

template <Of<cost::BoundaryCost> S>
auto members(S& s) {
  auto& [latency, occupancy] = s;
  return std::tie(latency, occupancy);
}

template <Of<parallelizer::PartialPlan> S>
auto members(S& s) {
  auto& [strategy, cost, n_max, parallelizer, opaque] = s;
  return std::tie(strategy, cost, n_max, parallelizer, opaque);
}

template <Of<compose::PartChoice> S>
auto members(S& s) {
  auto& [island_class, gpus, samples, plan, member] = s;
  return std::tie(island_class, gpus, samples, plan, member);
}

template <Of<model::BlockRange> S>
auto members(S& s) {
  auto& [first, last] = s;
  return std::tie(first, last);
}

template <Of<compose::StageChoice> S>
auto members(S& s) {
  auto& [first, last, chunks, parts, t, f, a, o, crossing, in_flight, to_next, link, source, target] = s;
  return std::tie(first, last, chunks, parts, t, f, a, o, crossing, in_flight, to_next, link, source, target);
}

template <Of<cost::EncoderLayout> S>
auto members(S& s) {
  auto& [tp, sequence_parallel, zero1, recompute] = s;
  return std::tie(tp, sequence_parallel, zero1, recompute);
}

template <Of<cost::EncoderCost> S>
auto members(S& s) {
  auto& [forward, backward, sync, step, state, transient, held] = s;
  return std::tie(forward, backward, sync, step, state, transient, held);
}

template <Of<compose::ColocatedEncoders> S>
auto members(S& s) {
  auto& [turns, layouts, handover, sync, gather, broadcast, embeddings, costs] = s;
  return std::tie(turns, layouts, handover, sync, gather, broadcast, embeddings, costs);
}

template <Of<compose::Composition> S>
auto members(S& s) {
  auto& [level, replicas, microbatch, microbatches, samples, chunks, group, stages, colocated, period, closed_form] = s;
  return std::tie(level, replicas, microbatch, microbatches, samples, chunks, group, stages, colocated, period,
                  closed_form);
}

template <Of<compose::TimedComposition> S>
auto members(S& s) {
  auto& [time, composition] = s;
  return std::tie(time, composition);
}

template <Of<compose::Space> S>
auto members(S& s) {
  auto& [name, levels, replicas, microbatches, shapes, rules] = s;
  return std::tie(name, levels, replicas, microbatches, shapes, rules);
}

template <Of<compose::CutYield> S>
auto members(S& s) {
  auto& [slices, windows, units, spending, remainder, packing, by_time, by_bound, by_remainder, by_dominance] = s;
  return std::tie(slices, windows, units, spending, remainder, packing, by_time, by_bound, by_remainder, by_dominance);
}

template <Of<compose::SearchStatistics> S>
auto members(S& s) {
  auto& [queries, partial, frontier, programs, programs_cut, labels, states, cuts] = s;
  return std::tie(queries, partial, frontier, programs, programs_cut, labels, states, cuts);
}

template <Of<compose::LevelReport> S>
auto members(S& s) {
  auto& [name, classes, islands, best, bound] = s;
  return std::tie(name, classes, islands, best, bound);
}

template <Of<parallelizer::CountedReason> S>
auto members(S& s) {
  auto& [code, count, example] = s;
  return std::tie(code, count, example);
}

template <Of<parallelizer::Failure> S>
auto members(S& s) {
  auto& [kind, message, output] = s;
  return std::tie(kind, message, output);
}

template <Of<parallelizer::ClaimRange> S>
auto members(S& s) {
  auto& [least, most] = s;
  return std::tie(least, most);
}

template <Of<parallelizer::Tally> S>
auto members(S& s) {
  auto& [info, queries, plans, infeasible, unsupported, rejected, failed, first, timed_out, claimed] = s;
  return std::tie(info, queries, plans, infeasible, unsupported, rejected, failed, first, timed_out, claimed);
}

template <Of<SourceLocation> S>
auto members(S& s) {
  auto& [file, line, column] = s;
  return std::tie(file, line, column);
}

template <Of<Diagnostic> S>
auto members(S& s) {
  auto& [kind, code, where, pointer, message, hint, source_line, length] = s;
  return std::tie(kind, code, where, pointer, message, hint, source_line, length);
}

template <Of<compose::SearchResult> S>
auto members(S& s) {
  auto& [best, timed, space, optimal, finished, search_bound, relaxed_bound, statistics, parallelizers, levels,
         infeasible] = s;
  return std::tie(best, timed, space, optimal, finished, search_bound, relaxed_bound, statistics, parallelizers, levels,
                  infeasible);
}

}  // namespace tangram::planner::search_cache
