// The records of the plan file, field by field, for both visitors of fields.hpp. Whoever adds a field adds it here, to
// its struct and to configs/schemas.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "fields.hpp"
#include "names.hpp"
#include "tangram/base/at.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

inline constexpr std::int64_t kMost = 1'000'000'000'000;  // samples, positions, microbatches
inline constexpr std::int64_t kMostDegree = 1 << 20;
inline constexpr io::IntegerRange kDegree{1, kMostDegree};
inline constexpr io::IntegerRange kCoordinate{0, kMostDegree};
inline constexpr io::IntegerRange kTally{0, std::numeric_limits<std::int64_t>::max()};

/// What references in records lead to. A reader knows how many there are before it reads any, so that a bad one is
/// reported at its place; a writer needs the devices alone.
struct References {
  std::int64_t islands = 0;
  std::int64_t pipelines = 0;
  std::int64_t stages = 0;
  std::int64_t ranks = 0;
  std::int64_t blocks = 0;
  bool zero_bubble = false;  ///< whether weight gradients are put off
  std::vector<cluster::GpuType> devices = {};
  std::vector<std::int64_t> parts = {};  ///< of the stages

  [[nodiscard]] std::int64_t parts_of(int stage) const {
    const auto index = static_cast<std::size_t>(stage);
    return index < parts.size() ? parts[index] : 0;
  }
};

template <class Io>
void fields(Io& io, Of<Io, cluster::Link>& link) {
  io.number("bandwidth_bytes_s", link.bandwidth, io::kNotNegative);
  io.milliseconds("latency_ms", link.latency);
  io.milliseconds_if("ramp_ms", link.ramp);
}

template <class Io>
void link_field(Io& io, std::string_view key, Of<Io, cluster::Link>& link) {
  io.object(key, [&](Io& inner) { fields(inner, link); });
}

template <class Io>
void fields(Io& io, Of<Io, cluster::NativeAttention>& native) {
  io.number("forward", native.forward, {0.0, 1.0, true});
  io.number("backward", native.backward, {0.0, 1.0, true});
  io.number("forward_extra_keys", native.forward_extra_keys, io::kNotNegative);
  io.number("backward_extra_keys", native.backward_extra_keys, io::kNotNegative);
  io.number_if("head_dim_multiple", native.head_dim_multiple, io::kNotNegative);
  io.number_if("forward_extra_head_dim", native.forward_extra_head_dim, io::kNotNegative);
  io.number_if("backward_extra_head_dim", native.backward_extra_head_dim, io::kNotNegative);
  io.number_if("forward_least_head_dim", native.forward_least_head_dim, io::kNotNegative);
  io.number_if("backward_least_head_dim", native.backward_least_head_dim, io::kNotNegative);
  io.number_if("widest_value_dim", native.widest_value_dim, io::kNotNegative);
  io.number_if("early_forward_extra_keys", native.early_forward_extra_keys, io::kNotNegative);
  io.number_if("early_backward_extra_keys", native.early_backward_extra_keys, io::kNotNegative);
  io.text_or("source", native.source);
}

template <class Io>
void fields(Io& io, Of<Io, cluster::FusedKernels>& fused) {
  io.number("gemm_efficiency", fused.gemm_efficiency, {0.0, 1.0, true});
  io.number("fp8_efficiency", fused.fp8_efficiency, {0.0, 1.0, true});
  io.number_if("fp4_efficiency", fused.fp4_efficiency, {0.0, 1.0, true});
  io.number("memory_efficiency", fused.memory_efficiency, {0.0, 1.0, true});
  io.text_or("source", fused.source);
}

template <class Io>
void fields(Io& io, Of<Io, cluster::ComputeCalibration>& compute) {
  io.number("gemm_efficiency", compute.gemm_efficiency, {0.0, 1.0, true});
  io.number("attention_forward", compute.attention_forward, io::kPositive);
  io.number("attention_backward", compute.attention_backward, io::kPositive);
  io.object_if("native_attention", compute.native_attention, [](Io& inner, auto& native) { fields(inner, native); });
  io.number("memory_efficiency", compute.memory_efficiency, {0.0, 1.0, true});
  io.object_if("fused_kernels", compute.fused_kernels, [](Io& inner, auto& fused) { fields(inner, fused); });
  io.milliseconds("kernel_launch_ms", compute.kernel_launch);
  io.milliseconds("host_issue_ms", compute.host_issue);
  io.number_if("unvectorized_values_s", compute.unvectorized_values, io::kPositive);
  io.text_or("source", compute.source);
}

template <class Io>
void fields(Io& io, Of<Io, cluster::GpuType>& device) {
  io.text("name", device.name);
  io.text_or("vendor", device.vendor);
  io.text_or("architecture", device.architecture);
  io.integer("multiprocessors", device.multiprocessors, {0, 10'000});
  io.bytes("memory_bytes", device.memory);
  io.bytes("reserved_bytes", device.reserved);
  io.number("memory_bandwidth_bytes_s", device.memory_bandwidth, io::kPositive);
  io.object("peak_flops_s", [&](Io& peaks) {
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto format = static_cast<DType>(i);
      if (format == DType::kFp4) {  // unknown to older plans
        peaks.number_if(to_string(format), at(device.peak, i), io::kNotNegative);
      } else {
        peaks.number(to_string(format), at(device.peak, i), io::kNotNegative);
      }
    }
  });
  link_field(io, "peer_link", device.peer_link);
  io.number_if("peer_pair_bytes_s", device.peer_pair, io::kNotNegative);
  link_field(io, "pcie", device.pcie);
  io.object("compute", [&](Io& inner) { fields(inner, device.compute); });
  io.number("price_per_hour", device.price_per_hour, io::kNotNegative);
  io.text_or("source", device.source);
}

template <class Io>
void fields(Io& io, Of<Io, parallelizer::CountedReason>& reason) {
  io.text("code", reason.code);
  io.integer("count", reason.count, kTally);
  io.text_or("example", reason.example);
}

template <class Io>
void fields(Io& io, Of<Io, parallelizer::Tally>& tally) {
  const auto reasons = [](Io& entry, auto& reason, std::size_t) { fields(entry, reason); };
  io.text("name", tally.info.name);
  io.text_or("version", tally.info.version);
  io.boolean_or("deterministic", tally.info.deterministic);
  io.integer("queries", tally.queries, kTally);
  io.integer("plans", tally.plans, kTally);
  io.integer("infeasible", tally.infeasible, kTally);
  io.integer("unsupported", tally.unsupported, kTally);
  io.object_if("claimed_time_over_recomputed", tally.claimed, [](Io& entry, auto& claimed) {
    entry.number("least", claimed.least, io::kNotNegative);
    entry.number("most", claimed.most, io::kNotNegative);
  });
  io.records("rejected", tally.rejected, Presence::kAny, reasons);
  io.records("failed", tally.failed, Presence::kAny, reasons);
}

template <class Io>
void fields(Io& io, Of<Io, PlanProvenance>& provenance) {
  io.text_or("version", provenance.version);
  io.texts("inputs", provenance.inputs, &InputDigest::name, &InputDigest::digest);
  io.strings("parallelizers", provenance.parallelizers);
  io.records("outside_parallelizers", provenance.outsiders, Presence::kIfAny, [](Io& entry, auto& tally, std::size_t) {
    if constexpr (Io::kReads) tally.info.built_in = false;
    fields(entry, tally);
  });
  io.text_or("level", provenance.level);
  io.embedded("space", provenance.space);
  io.embedded_if("search", provenance.search);
  io.integer("states", provenance.states, kTally);
  io.integer("labels", provenance.labels, kTally);
  io.text_or("objective", provenance.objective);
  io.boolean("optimal", provenance.optimal);
  io.seconds("search_bound_s", provenance.search_bound);
  io.seconds("relaxed_bound_s", provenance.relaxed_bound);
  io.number("search_gap", provenance.search_gap);
  io.number("relaxed_gap", provenance.relaxed_gap);
  io.number_if("time_limit_s", provenance.time_limit, io::kNotNegative);
  io.records("chosen_options", provenance.options, Presence::kIfAny, [](Io& entry, auto& chosen, std::size_t) {
    entry.row("option", chosen.option, model::option_names(), &model::OptionName::option);
    entry.text("value", chosen.value);
    if (entry.has("gain", chosen.gain.has_value())) {
      double gain = chosen.gain.value_or(0);
      entry.number("gain", gain);
      if constexpr (Io::kReads) chosen.gain = gain;
    }
  });
  io.records("runs_on", provenance.runs_on, Presence::kIfAny, [](Io& entry, auto& look, std::size_t) {
    entry.text("runtime", look.runtime);
    entry.seconds("iteration_s", look.iteration);
    entry.text_if("why_not", look.why_not);
  });
  io.text_or("note", provenance.note);
}

/// What the plan is for. Transfers and warm-up follow from it; they are written for those who do not know the runtime.
template <class Io>
void execution_fields(Io& io, Of<Io, LaunchPlan>& plan) {
  io.row("runtime", plan.runtime, runtime::runtimes(), &runtime::Runtime::target);
  if (io.has("interleaving", plan.is_interleaved())) {
    io.object("interleaving", [&](Io& inner) { inner.integer("group", plan.group, {1, kMost}); });
  }
  if (io.has("schedule", plan.zero_bubble)) {
    io.template choice<bool>("schedule", plan.zero_bubble, {{"zero-bubble", true}});
  }
  io.repeats("transfers", [&] { return to_string(plan.semantics().transfers); });
  io.repeats("warmup", [&] { return to_string(plan.semantics().warmup); });
}

template <class Io>
void fields(Io& io, Of<Io, ColocatedEncoders::Encoder>& encoder) {
  using cost::RecomputeMode;
  io.text("module", encoder.module);
  io.integer("tp", encoder.layout.tp, kDegree);
  io.boolean("sequence_parallel", encoder.layout.sequence_parallel);
  io.boolean("zero1", encoder.layout.zero1);
  io.template choice<RecomputeMode>(
      "recompute", encoder.layout.recompute,
      {{"none", RecomputeMode::kNone}, {"selective", RecomputeMode::kSelective}, {"full", RecomputeMode::kFull}});
}

template <class Io>
void fields(Io& io, Of<Io, ColocatedEncoders>& colocated) {
  using cost::EncoderTurns;
  io.template choice<EncoderTurns>(
      "turns", colocated.turns,
      {{"per-microbatch", EncoderTurns::kPerMicrobatch}, {"three-phase", EncoderTurns::kThreePhases}});
  io.records("encoders", colocated.encoders, Presence::kSome,
             [](Io& entry, auto& encoder, std::size_t) { fields(entry, encoder); });
  link_field(io, "handover_link", colocated.handover_link);
  link_field(io, "sync_link", colocated.sync_link);
  io.milliseconds("gather_ms", colocated.gather);
  io.milliseconds("broadcast_ms", colocated.broadcast);
}

/// What the model and the pipelines say.
template <class Io>
void batch_fields(Io& io, const LaunchPlan& plan) {
  io.repeats("global", [&] { return plan.model.job.global_batch; });
  if (!plan.pipelines.empty()) {
    io.repeats("microbatch", [&] { return plan.pipelines.front().microbatch; });
    io.repeats("num_microbatches", [&] { return plan.pipelines.front().microbatches; });
  }
  io.repeats("loss_normalization", [&] { return plan.model.job.loss_normalization; });
}

template <class Io>
void fields(Io& io, Of<Io, PlanIsland>& island, const References& known, std::size_t position) {
  io.identifier("id", island.id, position);
  io.text("class", island.island_class);
  io.repeats("gpu_type", [&] { return island.device.name; });
  io.element("gpu_type_record", island.device, known.devices);
  io.integer("gpus_per_member", island.gpus_per_member, kDegree);
  io.integer("members_per_island", island.members_per_island, kDegree);
  link_field(io, "inside_member", island.inside_member);
  link_field(io, "between_members", island.between_members);
  link_field(io, "between_islands", island.between_islands);
  io.number("price_per_gpu_hour", island.price_per_gpu_hour, io::kNotNegative);
  io.records("nodes", island.nodes, Presence::kSome, [](Io& entry, auto& node, std::size_t) {
    entry.text("host", node.host);
    entry.integers("gpus", node.gpus, kMostDegree);
  });
}

template <class Io>
void fields(Io& io, Of<Io, Pipeline>& pipeline, const References& known, std::size_t position) {
  constexpr io::IntegerRange kBatch = io::integer_limit("global_batch_samples");
  io.identifier("id", pipeline.id, position);
  io.integer("samples", pipeline.samples, kBatch);
  io.integer("microbatch", pipeline.microbatch, kBatch);
  io.integer("num_microbatches", pipeline.microbatches, kBatch);
  if (io.has("last_microbatch", pipeline.has_smaller_last())) {
    io.repeats("last_microbatch", [&] { return pipeline.last_microbatch(); });
  }
  io.integers("stages", pipeline.stages, known.stages);
  io.check(!pipeline.stages.empty(), "stages", "empty", "a pipeline has at least one stage");
}

/// What blocks take on a GPU, be they of the stage or of colocated encoders.
template <class Io>
void training_fields(Io& io, auto& predicted) {
  io.milliseconds("forward_ms", predicted.forward);
  io.milliseconds("backward_ms", predicted.backward);
  io.milliseconds("gradient_sync_ms", predicted.gradient_sync);
  io.milliseconds("gradient_sync_exposed_ms", predicted.gradient_sync_exposed);
  io.milliseconds("optimizer_step_ms", predicted.optimizer_step);
  io.bytes("static_bytes", predicted.static_memory);
  io.bytes("transient_bytes", predicted.transient);
}

template <class Io>
void fields(Io& io, Of<Io, PartPrediction>& predicted, const References& known) {
  using cost::Provenance;
  training_fields(io, predicted);
  io.bytes("activation_bytes", predicted.activation);
  io.bytes("peak_memory_bytes", predicted.peak_memory);
  io.bytes("usable_bytes", predicted.usable_memory);
  io.integer("in_flight", predicted.in_flight, {1, kMost});
  io.template choice<Provenance>("provenance", predicted.provenance,
                                 {{"measured", Provenance::kMeasured},
                                  {"interpolated", Provenance::kInterpolated},
                                  {"corrected", Provenance::kCorrected},
                                  {"modelled", Provenance::kModelled}});
  io.records("chunks", predicted.chunks, Presence::kIfAny, [](Io& entry, auto& chunk, std::size_t) {
    entry.milliseconds("forward_ms", chunk.forward);
    entry.milliseconds("backward_ms", chunk.backward);
    entry.bytes("activation_bytes", chunk.activation);
  });
  if (io.has("weight_gradient_ms", known.zero_bubble)) {
    io.milliseconds("weight_gradient_ms", predicted.weight_gradient);
  }
  if (io.has("put_off_bytes", known.zero_bubble)) io.bytes("put_off_bytes", predicted.put_off);
}

template <class Io>
void fields(Io& io, Of<Io, cost::Degrees>& degrees) {
  io.integer("tp", degrees.tp, kDegree);
  io.integer("cp", degrees.cp, kDegree);
  io.integer("dp", degrees.dp, kDegree);
  io.integer("ep", degrees.ep, kDegree);
  io.integer("etp", degrees.etp, kDegree);
  io.boolean("sequence_parallel", degrees.sequence_parallel);
  if (io.has("dp_replicate", degrees.dp_replicate > 1)) io.integer("dp_replicate", degrees.dp_replicate, kDegree);
  io.repeats("order", [] { return kRankOrder; });
  if constexpr (Io::kReads) {
    const std::int64_t pair = std::int64_t{degrees.tp} * degrees.cp;
    const bool fits = pair <= kMostDegree && pair * degrees.dp <= kMostDegree;
    io.check(fits, "tp", "out-of-range", "tp x cp x dp is more GPUs than any plan has");
    if (!fits) degrees = {};
  }
}

template <class Io>
void fields(Io& io, Of<Io, cost::BlockRun>& run) {
  using cost::RecomputeMode;
  io.integer("blocks", run.blocks, kDegree);
  io.integer("zero", run.policy.zero, {0, 3});
  io.template choice<RecomputeMode>(
      "recompute", run.policy.recompute,
      {{"none", RecomputeMode::kNone}, {"selective", RecomputeMode::kSelective}, {"full", RecomputeMode::kFull}});
}

template <class Io>
void fields(Io& io, Of<Io, cost::MemoryPolicy>& policy) {
  using cost::RecomputeMode;
  io.integer("zero", policy.zero, {0, 3});
  io.object("recompute", [&](Io& inner) {
    inner.template choice<RecomputeMode>("granularity", policy.recompute,
                                         {{"none", RecomputeMode::kNone},
                                          {"selective", RecomputeMode::kSelective},
                                          {"full", RecomputeMode::kFull},
                                          {kMixed, RecomputeMode::kNone}},
                                         policy.is_mixed() ? kMixed : "");
    if constexpr (Io::kReads) {
      const io::Node* said = inner.reader().raw("granularity");
      inner.check(said == nullptr || (said->text == kMixed) == io.has("block_runs", false), "granularity",
                  "inconsistent", "is \"mixed\" where there are block_runs, and only there");
    }
    inner.repeats("method", [&] { return recompute_method(policy.recompute); });
    inner.integer("layers", policy.recompute_layers, kCoordinate);
  });
  if (io.has("block_runs", policy.is_mixed())) {
    io.records("block_runs", policy.runs, Presence::kSome,
               [](Io& entry, auto& run, std::size_t) { fields(entry, run); });
  }
}

template <class Io>
void fields(Io& io, Of<Io, EncoderPrediction>& predicted) {
  training_fields(io, predicted);
  io.bytes("held_bytes", predicted.held);
  io.bytes("embeddings_bytes", predicted.embeddings);
}

template <class Io>
void fields(Io& io, Of<Io, Part>& part, const References& known) {
  io.index("island", part.island, known.islands);
  io.integer("samples", part.samples, {1, kMost});
  io.repeats("samples_per_replica", [&] { return part.samples_per_replica(); });
  io.object("parallel", [&](Io& inner) { fields(inner, part.strategy.degrees); });
  io.object("ranks", [&](Io& inner) {
    const int count = part.strategy.degrees.gpus();
    inner.index("first", part.first_rank, known.ranks);
    inner.repeats("count", [=] { return count; });
    inner.check(part.first_rank + count <= known.ranks, "count", "out-of-range",
                "these ranks are more than the plan lists");
  });
  io.integer("members", part.members, kDegree);
  fields(io, part.strategy.policy);
  io.text_or("parallelizer", part.parallelizer);
  io.text_if("opaque", part.opaque);
  io.object("predicted", [&](Io& inner) { fields(inner, part.predicted, known); });
  io.object_if("encoders", part.encoders, [](Io& inner, auto& encoders) { fields(inner, encoders); });
}

/// `blocks` are those from the first to the last that the stage holds; `chunks` say which of them, where others are
/// between.
template <class Io>
void chunk_fields(Io& io, Of<Io, Stage>& stage, const References& known) {
  model::BlockRange all{stage.first(), stage.last()};
  io.range("blocks", all.first, all.last, known.blocks);
  io.check(all.first != all.last, "blocks", "empty", "a stage holds at least one block");
  if constexpr (Io::kReads) stage.chunks = {all};
  if (!io.has("chunks", stage.chunks.size() > 1)) return;
  io.ranges("chunks", stage.chunks, known.blocks);
  io.check(stage.chunks.size() > 1, "chunks", "inconsistent", "are listed where a stage has several");
  io.check(stage.first() == all.first && stage.last() == all.last, "chunks", "inconsistent",
           "must begin and end where blocks do");
}

template <class Io>
void fields(Io& io, Of<Io, Stage>& stage, const References& known, std::size_t position) {
  io.identifier("id", stage.id, position);
  io.index("pipeline", stage.pipeline, known.pipelines);
  chunk_fields(io, stage, known);
  io.boolean("embedding", stage.embedding);
  io.boolean("head", stage.head);
  io.object("schedule", [&](Io& inner) {
    inner.integer("warmup", stage.warmup, {0, kMost});
    if (inner.has("put_off", known.zero_bubble)) inner.integer("put_off", stage.put_off, {0, kMost});
  });
  io.records("parts", stage.parts, Presence::kSome,
             [&](Io& entry, auto& part, std::size_t) { fields(entry, part, known); });
}

template <class Io>
void fields(Io& io, Of<Io, Transfer>& transfer, const References& known) {
  io.index("src", transfer.src, known.ranks);
  io.index("dst", transfer.dst, known.ranks);
  io.range("samples", transfer.sample_first, transfer.sample_last, kMost);
  io.range("seq", transfer.seq_first, transfer.seq_last, kMost);
  io.bytes("bytes", transfer.bytes);
}

template <class Io>
void fields(Io& io, Of<Io, Boundary>& boundary, const References& known, std::size_t) {
  io.index("from", boundary.from, known.stages);
  io.index("to", boundary.to, known.stages);
  io.template choice<BoundaryMode>("mode", boundary.mode,
                                   {{"equal", BoundaryMode::kEqual},
                                    {"fan_in", BoundaryMode::kFanIn},
                                    {"fan_out", BoundaryMode::kFanOut},
                                    {"overlap", BoundaryMode::kOverlap}});
  link_field(io, "link", boundary.link);
  io.index("source_part", boundary.source_part, known.parts_of(boundary.from));
  io.index("target_part", boundary.target_part, known.parts_of(boundary.to));
  io.milliseconds("latency_ms", boundary.latency);
  io.milliseconds("occupancy_ms", boundary.occupancy);
  io.records("transfers", boundary.transfers, Presence::kSome,
             [&](Io& entry, auto& transfer, std::size_t) { fields(entry, transfer, known); });
}

template <class Io>
void fields(Io& io, Of<Io, Rank>& rank, const References& known, std::size_t position) {
  io.identifier("rank", rank.rank, position);
  io.text("host", rank.host);
  io.integer("local_rank", rank.local_rank, kCoordinate);
  io.integer("gpu", rank.gpu, kCoordinate);
  io.index("island", rank.island, known.islands);
  io.index("stage", rank.stage, known.stages);
  io.index("part", rank.part, known.parts_of(rank.stage));
  io.index("replica", rank.replica, known.pipelines);
  io.integer("tp", rank.tp, kCoordinate);
  io.integer("cp", rank.cp, kCoordinate);
  io.integer("dp", rank.dp, kCoordinate);
  io.integer("ep", rank.ep, kCoordinate);
  io.integer("etp", rank.etp, kCoordinate);
  io.integer("edp", rank.edp, kCoordinate);
}

template <class Io>
void fields(Io& io, Of<Io, IdleGpus>& idle, const References&, std::size_t) {
  io.text("class", idle.island_class);
  io.integer("gpus", idle.gpus, io::kCount);
  io.text_or("reason", idle.reason);
}

template <class Io>
void fields(Io& io, Of<Io, Predicted>& predicted, const References& known) {
  io.seconds("iteration_s", predicted.iteration);
  io.seconds("closed_form_s", predicted.closed_form);
  io.number("tokens_per_s", predicted.tokens_per_s, io::kNotNegative);
  io.number("mfu", predicted.mfu, io::kNotNegative);
  io.number("mfu_fleet", predicted.mfu_fleet, io::kNotNegative);
  io.number("cost_per_mtoken", predicted.cost_per_mtoken, io::kNotNegative);
  io.index("bottleneck_stage", predicted.bottleneck_stage, known.stages);
  io.number("bubble_fraction", predicted.bubble_fraction);
  io.object("breakdown", [&](Io& inner) {
    inner.number("compute_s", predicted.breakdown.compute);
    inner.number("bubble_s", predicted.breakdown.bubble);
    inner.number("exposed_sync_s", predicted.breakdown.exposed_sync);
    inner.number("optimizer_s", predicted.breakdown.optimizer);
  });
  io.object_if("own_runs", predicted.own_runs, [](Io& inner, auto& own) {
    inner.number("ratio", own.ratio, io::kPositive);
    inner.number("deviation", own.deviation, io::kNotNegative);
    inner.integer("runs", own.runs, io::kCount);
  });
}

template <class Io>
void fields(Io& io, Of<Io, TargetVerdict>& verdict, const References& known) {
  io.boolean("ok", verdict.ok);
  io.records("reasons", verdict.reasons, Presence::kAny, [&](Io& entry, auto& reason, std::size_t) {
    entry.text("code", reason.code);
    entry.integers("stages", reason.stages, known.stages);
    entry.text("text", reason.text);
  });
}

}  // namespace tangram::plan
