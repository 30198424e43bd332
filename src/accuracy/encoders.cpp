#include "encoders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "infer.hpp"
#include "reason.hpp"
#include "tangram/base/at.hpp"
#include "tangram/model/split.hpp"

namespace tangram::accuracy {
namespace {

using Reason = std::optional<Diagnostic>;

Reason why_incomplete(const EncoderFacts& encoder) {
  if (encoder.hidden < 1 || encoder.layers < 1 || encoder.heads < 1) {
    return reason("the dimensions of the encoder are not printed");
  }
  if (encoder.tokens_in < 1 || encoder.items < 1) return reason("the tokens of the encoder are not printed");
  if (encoder.recompute.starts_with("selective")) return reason("a selectively recomputed encoder");
  return std::nullopt;
}

/// What is not printed of one of them is as the other's.
bool is_alike(const std::optional<bool>& a, const std::optional<bool>& b) { return !a || !b || *a == *b; }

/// One set of degrees for all modules.
Reason why_not_homogeneous(const Measurement& m, const LanguageLayout& language) {
  const EncoderFacts& encoder = *m.encoder;
  const bool same_degrees = encoder.tp.value_or(language.tp) == language.tp &&
                            encoder.dp.value_or(language.dp) == language.dp &&
                            is_alike(encoder.sequence_parallel, m.sequence_parallel);
  if (!same_degrees) return reason("a homogeneous encoder has other degrees than the language model");
  const bool same_recompute = is_recomputed(encoder) == (find_recompute(m) == model::RecomputeMode::kFull);
  if (!same_recompute) return reason("a homogeneous encoder is recomputed otherwise than the language model");
  return std::nullopt;
}

/// Each direction, of all GPUs of a node together; of several nodes the slowest.
cluster::Link link_among(const Experiment& experiment, const Machine& machine) {
  if (machine.nodes.size() == 1) {
    const cluster::DeviceShape& shape = experiment.stages.front().parts.front().shape;
    cluster::Link link = shape.intra;
    link.bandwidth = cluster::bandwidth_among(shape.device, link, 2) * static_cast<double>(machine.gpus.size());
    return link;
  }
  cluster::Link slowest = machine.nodes.front().network;
  for (const NodeFacts& node : machine.nodes) {
    slowest.bandwidth = std::min(slowest.bandwidth, node.network.bandwidth);
    slowest.latency = std::max(slowest.latency, node.network.latency);
  }
  return slowest;
}

/// Of all pipelines.
std::int64_t round_samples(const Experiment& experiment, cost::EncoderTurns turns) {
  const std::int64_t microbatches = turns == cost::EncoderTurns::kPerMicrobatch ? 1 : experiment.microbatches;
  return experiment.microbatch * microbatches;
}

bool shards_sequence(const Measurement& m, const cluster::GpuType& device) {
  return m.encoder->sequence_parallel.value_or(uses_sequence_parallelism(m, device));
}

cost::EncoderLayout layout_of(const Measurement& m, const cluster::GpuType& device, int tp, int zero) {
  cost::EncoderLayout layout;
  layout.tp = tp;
  layout.sequence_parallel = shards_sequence(m, device) && tp > 1;
  layout.zero1 = zero > 0;
  if (is_recomputed(*m.encoder)) layout.recompute = cost::RecomputeMode::kFull;
  return layout;
}

Reason share_items(SharedEncoder& encoder, std::int64_t items) {
  if (items / encoder.lanes > std::numeric_limits<int>::max()) return reason("an encoder's lane has too many items");
  if (items % encoder.lanes != 0) {
    return reason(fmt::format("{} items of a round are no multiple of {} lanes", items, encoder.lanes));
  }
  encoder.items = items / encoder.lanes;
  return std::nullopt;
}

Reason set_lanes(SharedEncoder& encoder, const EncoderFacts& facts, std::int64_t gpus) {
  encoder.lanes = gpus / encoder.layout.tp;
  if (encoder.lanes * encoder.layout.tp == gpus && facts.dp.value_or(static_cast<int>(encoder.lanes)) == encoder.lanes)
    return std::nullopt;
  return reason(fmt::format("the encoder's lanes are not the {} GPUs of the language model", gpus));
}

void set_handover(SharedEncoder& encoder, const Experiment& experiment, const LanguageLayout& language,
                  std::int64_t items) {
  const cluster::DeviceShape& first = experiment.stages.front().parts.front().shape;
  const double bytes = static_cast<double>(items) * static_cast<double>(encoder.output_bytes);
  encoder.handover.bytes = ceil_to_bytes(bytes);
  encoder.handover.link = encoder.sync_link;
  encoder.handover.members = first.nodes;
  encoder.handover.stages = language.stages;
  encoder.handover.lanes = static_cast<int>(encoder.lanes);
  encoder.handover.replicas = language.dp;
  constexpr double kWithGradients = 2;
  encoder.embeddings = ceil_to_bytes(bytes / language.dp * kWithGradients);
}

}  // namespace

bool is_recomputed(const EncoderFacts& encoder) { return encoder.recompute.starts_with("full"); }

std::string_view to_string(Placement placement) {
  switch (placement) {
    case Placement::kHomogeneous: return "homogeneous";
    case Placement::kColocated: return "colocated";
    case Placement::kDisjoint: break;
  }
  return "disjoint";
}

Reason why_no_encoder(const Measurement& m, const LanguageLayout& language) {
  const EncoderFacts& encoder = *m.encoder;
  if (auto missing = why_incomplete(encoder)) return missing;
  if (m.uneven()) return reason("an encoder beside stages that are not alike");
  if (encoder.offloaded && (encoder.placement != Placement::kColocated || language.stages == 1)) {
    return reason("the encoder was offloaded, but not beside a pipeline");
  }
  if (encoder.placement == Placement::kHomogeneous) return why_not_homogeneous(m, language);
  if (m.virtual_stages > 1) return reason("an encoder with degrees of its own beside virtual stages");
  if (zero_stage(m) > 1) return reason("an encoder with degrees of its own under ZeRO-2 or ZeRO-3");
  return std::nullopt;
}

Placement placement_of(const Measurement& m, const LanguageLayout& language) {
  const Placement printed = m.encoder->placement;
  const bool alike = language.stages == 1 && !why_not_homogeneous(m, language);
  return printed == Placement::kColocated && alike ? Placement::kHomogeneous : printed;
}

bool stands_in_front(const Measurement& m) { return m.encoder && m.encoder->placement == Placement::kDisjoint; }

Expected<std::vector<Replica>> take_own_stage(const Measurement& m, Machine& machine) {
  const int tp = m.encoder->tp.value_or(0);
  const int dp = m.encoder->dp.value_or(0);
  if (tp < 1 || dp < 1) return fail(reason("the degrees of the encoder are not printed"));
  const std::int64_t count = static_cast<std::int64_t>(tp) * dp;
  if (count >= std::ssize(machine.gpus)) return fail(reason("the encoder leaves the language model no GPUs"));
  std::vector<Replica> replicas;
  for (int i = 0; i < dp; ++i) {
    const auto first = machine.gpus.begin() + static_cast<std::ptrdiff_t>(i) * tp;
    replicas.emplace_back(first, first + tp);
  }
  machine.gpus.erase(machine.gpus.begin(), machine.gpus.begin() + count);
  return replicas;
}

Expected<Part> own_part(const Measurement& m, const std::vector<Replica>& replicas, std::int64_t microbatch,
                        const Machine& machine) {
  const std::int64_t dp = std::ssize(replicas);
  const std::int64_t items = microbatch * m.encoder->items;
  if (items % dp != 0) {
    return fail(reason(fmt::format("{} items of a microbatch are no multiple of the encoder's dp {}", items, dp)));
  }
  if (items > std::numeric_limits<int>::max()) return fail(reason("an encoder's microbatch has too many items"));
  cost::Degrees degrees;
  degrees.sequence_parallel = shards_sequence(m, *replicas.front().front().device);
  auto parts = make_parts(replicas, degrees, 0, static_cast<int>(items / dp), machine);
  if (!parts) return tl::unexpected(parts.error());
  if (parts->size() > 1) return fail(reason("an encoder on two GPU types"));
  return std::move(parts->front());
}

Cut with_encoder(Cut cut, const Measurement& m, int blocks) {
  if (blocks == 0) return cut;
  if (!stands_in_front(m)) {
    cut.blocks.front() += blocks;
    return cut;
  }
  cut.blocks.insert(cut.blocks.begin(), blocks);
  return cut;
}

Reason share_gpus(Experiment& experiment, const Measurement& m, const LanguageLayout& language,
                  const Machine& machine) {
  const auto mixed = [](const Stage& stage) { return stage.parts.size() > 1; };
  if (std::ranges::any_of(experiment.stages, mixed)) return reason("an encoder on the GPUs of mixed stages");
  const EncoderFacts& facts = *m.encoder;
  SharedEncoder encoder;
  encoder.model = model::encoder_of(experiment.model, 0);
  set_printed(encoder.model.job, facts.kernels);
  encoder.layout = layout_of(m, experiment.stages.front().parts.front().shape.device, facts.tp.value_or(language.tp),
                             experiment.zero);
  encoder.turns = language.stages == 1 ? cost::EncoderTurns::kPerMicrobatch : cost::EncoderTurns::kThreePhases;
  encoder.output_bytes = model::encoder_output_bytes(experiment.model, 0);
  encoder.sync_link = link_among(experiment, machine);
  encoder.kept_every = facts.recompute_layers;
  encoder.offloaded = facts.offloaded;
  const std::int64_t items = round_samples(experiment, encoder.turns) * facts.items;
  if (auto wrong = set_lanes(encoder, facts, std::ssize(machine.gpus))) return wrong;
  if (auto wrong = share_items(encoder, items)) return wrong;
  set_handover(encoder, experiment, language, items);
  experiment.model = model::language_of(experiment.model);
  experiment.encoder = std::move(encoder);
  return std::nullopt;
}

}  // namespace tangram::accuracy
