// Encoders on the GPUs of the language model: does every lane fit, and is what they take what the model and the GPU
// records give?
#include <algorithm>
#include <limits>
#include <string>

#include "findings.hpp"
#include "saturating.hpp"
#include "tangram/base/at.hpp"
#include "tangram/model/split.hpp"
#include "tangram/multimodal/uneven.hpp"

namespace tangram::plan {

namespace {

std::string at_encoder(const ColocatedEncoders::Encoder& encoder) { return "encoder \"" + encoder.module + '"'; }

void check_techniques_of(const LaunchPlan& plan, const ColocatedEncoders::Encoder& encoder, Findings& findings) {
  const model::Techniques& allow = plan.model.job.allow;
  const auto forbid = [&](bool allowed, bool used, const char* technique) {
    if (used && !allowed) {
      findings.add("technique-forbidden", at_encoder(encoder), std::string(technique) + " is not allowed by the job");
    }
  };
  using model::RecomputeMode;
  forbid(allow.tp, encoder.layout.tp > 1, "tensor parallelism");
  forbid(allow.sp, encoder.layout.sequence_parallel, "sequence parallelism");
  forbid(allow.zero1, encoder.layout.zero1, "ZeRO-1");
  forbid(allow.recompute_selective, encoder.layout.recompute == RecomputeMode::kSelective, "selective recompute");
  forbid(allow.recompute_full, encoder.layout.recompute == RecomputeMode::kFull, "full recompute");
  if (encoder.layout.sequence_parallel && encoder.layout.tp < 2) {
    findings.add("degrees-invalid", at_encoder(encoder), "sequence parallelism needs tensor parallelism");
  }
}

int gpus_of(const LaunchPlan& plan, const Pipeline& pipeline) {
  int gpus = 0;
  for (const int id : pipeline.stages) gpus += plan.stage(id).parts.front().strategy.degrees.gpus();
  return gpus;
}

/// Lanes stay inside a member and on one part; pipelines have equally many.
void check_lanes(const LaunchPlan& plan, Findings& findings) {
  for (const Stage& stage : plan.stages) {
    if (stage.parts.size() > 1) {
      findings.add("encoder-lanes", at_stage(stage.id), "encoders are not colocated with mixed stages");
    }
    const Part& part = stage.parts.front();
    const int in_member = std::max(1, part.strategy.degrees.gpus() / std::max(1, part.members));
    for (const ColocatedEncoders::Encoder& encoder : plan.colocated->encoders) {
      if (in_member % encoder.layout.tp == 0) continue;
      findings.add("encoder-lanes", at_part(stage.id, 0),
                   "has " + std::to_string(in_member) + " GPUs in each member, which are no lanes of " +
                       std::to_string(encoder.layout.tp) + " for " + at_encoder(encoder));
    }
  }
  const int gpus = gpus_of(plan, plan.pipelines.front());
  for (const Pipeline& pipeline : plan.pipelines) {
    if (gpus_of(plan, pipeline) != gpus) {
      findings.add("encoder-lanes", at_pipeline(pipeline.id), "has another number of GPUs than the first pipeline");
    }
    if (plan.colocated->each_microbatch() && pipeline.stages.size() > 1) {
      findings.add("encoder-turns", at_pipeline(pipeline.id),
                   "has several stages: encoders then take their turns in three phases");
    }
  }
}

/// What all encoders hand to the first stage of the fullest pipeline in one round.
Nanoseconds gather_of(const LaunchPlan& plan) {
  const Pipeline& pipeline = plan.pipelines.front();
  const Part& first = plan.stage(pipeline.stages.front()).parts.front();
  Nanoseconds time;
  for (std::size_t e = 0; e < plan.colocated->encoders.size(); ++e) {
    cost::EncoderHandover handover;
    handover.bytes = Bytes(product(model::encoder_output_bytes(plan.model, static_cast<int>(e)), plan.round_samples()));
    handover.link = plan.colocated->handover_link;
    handover.members = first.members;
    handover.stages = static_cast<int>(pipeline.stages.size());
    handover.lanes = static_cast<int>(plan.lanes_of(plan.colocated->encoders[e].layout).of_pipeline);
    handover.replicas = first.strategy.degrees.dp;
    time += cost::handover_time(handover);
  }
  return time;
}

void compare_time(Nanoseconds written, Nanoseconds computed, const char* what, const std::string& where,
                  Findings& findings) {
  if (written == computed) return;
  findings.add("encoders-differ", where,
               std::string(what) + " is " + std::to_string(written.value()) + " ns, recomputed it is " +
                   std::to_string(computed.value()) + " ns");
}

void compare_bytes(Bytes written, Bytes computed, const char* what, const std::string& where, Findings& findings) {
  if (written == computed) return;
  findings.add("encoders-differ", where,
               std::string(what) + " of encoders is " + std::to_string(written.value()) + " bytes, recomputed it is " +
                   std::to_string(computed.value()));
}

void compare_encoders(const EncoderPrediction& written, const EncoderPrediction& computed, const std::string& where,
                      Findings& findings) {
  compare_time(written.forward, computed.forward, "forward of encoders", where, findings);
  compare_time(written.backward, computed.backward, "backward of encoders", where, findings);
  compare_time(written.gradient_sync, computed.gradient_sync, "gradient synchronisation of encoders", where, findings);
  compare_time(written.gradient_sync_exposed, computed.gradient_sync_exposed,
               "exposed gradient synchronisation of encoders", where, findings);
  compare_time(written.optimizer_step, computed.optimizer_step, "optimizer step of encoders", where, findings);
  compare_bytes(written.static_memory, computed.static_memory, "static memory", where, findings);
  compare_bytes(written.transient, computed.transient, "transient memory", where, findings);
  compare_bytes(written.held, computed.held, "held memory", where, findings);
  compare_bytes(written.embeddings, computed.embeddings, "memory of embeddings", where, findings);
}

/// One encoder on a part. False: it does not run there, which is reported.
bool add_encoder(const LaunchPlan& plan, int number, const cluster::DeviceShape& shape, const std::string& where,
                 cost::EncoderCost& sum_of_all, Findings& findings) {
  const cost::EncoderLayout& layout = at(plan.colocated->encoders, number).layout;
  const model::Model encoder = model::encoder_of(plan.model, number);
  const EncoderLanes lanes = plan.lanes_of(layout);
  if (lanes.samples > std::numeric_limits<int>::max()) return false;
  auto cost = cost::encoder_cost(encoder, model::encoder_output_bytes(plan.model, number), shape, layout, lanes.samples,
                                 lanes.of_plan, &plan.profiles);
  if (!cost) {
    findings.add("encoders-unsupported", where, cost.error().front().message);
    return false;
  }
  const model::EncoderSpread spread = model::encoder_spread(plan.model, number);
  const std::int64_t together = plan.colocated->each_microbatch() ? lanes.of_pipeline : lanes.of_plan;
  *cost = cost::slowed(*cost, multimodal::slowest_lane({spread.variation, spread.none}, together, lanes.samples));
  cost->gradient_sync = cost::encoder_sync(encoder, layout, plan.colocated->sync_link, lanes.of_plan);
  sum_of_all += *cost;
  return true;
}

/// A replica of the first stage holds what encoders made for it, and gradients where there are any.
Bytes embeddings_on(const LaunchPlan& plan, const Stage& stage, const Part& part) {
  if (plan.pipelines[static_cast<std::size_t>(stage.pipeline)].stages.front() != stage.id) return Bytes(0);
  const std::int64_t samples = part.strategy.degrees.most_samples(plan.round_samples());
  std::int64_t bytes = 0;
  for (std::size_t e = 0; e < plan.colocated->encoders.size(); ++e) {
    bytes = sum(bytes, product(samples, model::encoder_output_bytes(plan.model, static_cast<int>(e))));
  }
  return Bytes(product(bytes, model::trains_encoders(plan.model) ? 2 : 1));
}

}  // namespace

void check_colocated(const LaunchPlan& plan, Findings& findings) {
  const ColocatedEncoders& colocated = *plan.colocated;
  for (std::size_t e = 0; e < colocated.encoders.size(); ++e) {
    const ColocatedEncoders::Encoder& encoder = colocated.encoders[e];
    if (encoder.module != model::encoder_name(plan.model, static_cast<int>(e))) {
      findings.add("encoder-module", at_encoder(encoder),
                   "the model calls it \"" + model::encoder_name(plan.model, static_cast<int>(e)) + '"');
    }
    check_techniques_of(plan, encoder, findings);
  }
  check_lanes(plan, findings);
  if (!(colocated.handover_link.bandwidth.value() > 0)) {
    findings.add("encoders-differ", "colocated", "a link without bandwidth hands nothing over");
    return;
  }
  const Nanoseconds gather = gather_of(plan);
  compare_time(colocated.gather, gather, "gather", "colocated", findings);
  const Nanoseconds broadcast = model::trains_encoders(plan.model) ? gather : Nanoseconds(0);
  compare_time(colocated.broadcast, broadcast, "broadcast", "colocated", findings);
}

EncoderPrediction check_encoders(const LaunchPlan& plan, const Stage& stage, const Part& part, const std::string& where,
                                 Findings& findings) {
  const cluster::DeviceShape shape = checked_shape(plan, part);
  cost::EncoderCost all;
  for (std::size_t e = 0; e < plan.colocated->encoders.size(); ++e) {
    if (!add_encoder(plan, static_cast<int>(e), shape, where, all, findings)) return *part.encoders;
  }
  EncoderPrediction computed;
  computed.forward = all.forward;
  computed.backward = all.backward;
  computed.gradient_sync = all.gradient_sync;
  computed.gradient_sync_exposed =
      plan.colocated->each_microbatch() ? cost::exposed_sync(all.gradient_sync, all.backward) : all.gradient_sync;
  computed.optimizer_step = all.optimizer_step;
  computed.static_memory = all.static_memory;
  computed.transient = all.transient;
  computed.held = all.held;
  computed.embeddings = embeddings_on(plan, stage, part);
  compare_encoders(*part.encoders, computed, where, findings);
  return computed;
}

}  // namespace tangram::plan
