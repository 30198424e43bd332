#include "tangram/accuracy/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "cut.hpp"
#include "encoders.hpp"
#include "infer.hpp"
#include "number_scanner.hpp"
#include "placement.hpp"
#include "reason.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/runtime/runtime.hpp"
#include "words.hpp"

namespace tangram::accuracy {
namespace {

using Reason = std::optional<Diagnostic>;

/// As printed; 0: not printed.
struct Batch {
  std::int64_t global = 0;
  std::int64_t microbatch = 0;  ///< of a replica
};

Batch batch_of(const Measurement& m) { return {m.global_batch.value_or(0), m.microbatch.value_or(0)}; }

/// What is missing, or not modelled at all.
Reason why_incomplete(const Measurement& m) {
  const bool degrees = m.tp || m.model_parallel.value_or(0) > 0 || m.uneven();
  if (!degrees) return reason("the parallel degrees are not printed");
  const Batch batch = batch_of(m);
  if (batch.microbatch < 1) return reason("the microbatch is not printed");
  if (batch.global < 1) return reason("the global batch is not printed");
  if (m.sequence.value_or(0) < 1) return reason("the sequence length is not printed");
  if (m.context_exchange == "a2a+p2p") {
    return reason("exchanges of heads inside nodes and a ring between them are not modelled");
  }
  if (m.offloads_activations && m.offload_modules.empty()) {
    return reason("activations were offloaded to the host, and which is not printed");
  }
  if (m.uneven() && m.cp.value_or(1) > 1) return reason("uneven stages with context parallelism");
  return std::nullopt;
}

/// Degrees of a uniform plan.
struct Uniform {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t cp = 1;
};

/// Where only the product of tp and pp was printed, tp fills a node.
Uniform uniform_degrees(const Measurement& m, int per_node) {
  Uniform degrees{m.tp.value_or(1), m.pp.value_or(1), m.cp.value_or(1)};
  const std::int64_t product = m.model_parallel.value_or(0);
  if (!m.tp && product > 0) {
    degrees.tp = std::gcd(product, per_node);
    degrees.pp = m.pp.value_or(static_cast<int>(product / degrees.tp));
  }
  return {std::max<std::int64_t>(1, degrees.tp), std::max<std::int64_t>(1, degrees.pp),
          std::max<std::int64_t>(1, degrees.cp)};
}

/// What each stage's GPUs are, replica by replica.
using StageReplicas = std::vector<std::vector<Replica>>;

/// The next `count` GPUs behind the `taken` first, which then are taken too.
Replica take(const std::vector<Gpu>& gpus, std::int64_t& taken, std::int64_t count) {
  const auto first = gpus.begin() + taken;
  taken += count;
  return {first, first + count};
}

Expected<StageReplicas> uniform_stages(const Machine& machine, const Uniform& degrees) {
  const auto all = static_cast<std::int64_t>(machine.gpus.size());
  const std::int64_t replica = degrees.tp * degrees.cp;
  if (replica > all || degrees.pp > all || all % (degrees.pp * replica) != 0) {
    return fail(
        reason(fmt::format("{} GPUs are not a multiple of {} stages of {} GPUs a replica", all, degrees.pp, replica)));
  }
  StageReplicas result(static_cast<std::size_t>(degrees.pp));
  std::int64_t taken = 0;
  for (auto& stage : result) {
    for (std::int64_t i = 0; i < all / (degrees.pp * replica); ++i) {
      stage.push_back(take(machine.gpus, taken, replica));
    }
  }
  return result;
}

/// Stages that name their GPUs: each replica takes the next free ones of its type.
Expected<StageReplicas> named_stages(const Measurement& m, const Machine& machine,
                                     std::span<const cluster::GpuType> devices) {
  std::map<const cluster::GpuType*, std::vector<Gpu>> fleet;
  for (const Gpu& gpu : machine.gpus) fleet[gpu.device].push_back(gpu);
  std::map<const cluster::GpuType*, std::int64_t> taken;
  StageReplicas result;
  for (const auto& stage : m.stage_replicas) {
    auto& replicas = result.emplace_back();
    for (const ReplicaFacts& facts : stage) {
      const cluster::GpuType* device = find_device(facts.gpu, devices);
      if (facts.tp < 1 || taken[device] + facts.tp > std::ssize(fleet[device])) {
        return fail(reason(fmt::format("stages use more GPUs \"{}\" than the fleet has", facts.gpu)));
      }
      replicas.push_back(take(fleet[device], taken[device], facts.tp));
    }
  }
  return result;
}

/// Stages that print their number of GPUs and their tp.
Expected<StageReplicas> counted_stages(const Measurement& m, const Machine& machine) {
  StageReplicas result;
  std::int64_t taken = 0;
  for (std::size_t s = 0; s < m.stage_gpus.size(); ++s) {
    const int tp = s < m.stage_tp.size() && m.stage_tp[s].size() == 1 ? m.stage_tp[s].front() : 0;
    if (tp <= 0) return fail(reason("a stage changes its tensor parallelism between operators"));
    if (taken + m.stage_gpus[s] > std::ssize(machine.gpus) || m.stage_gpus[s] % tp != 0) {
      return fail(reason("stages do not fit the GPUs printed"));
    }
    auto& replicas = result.emplace_back();
    for (int i = 0; i < m.stage_gpus[s] / tp; ++i) {
      replicas.push_back(take(machine.gpus, taken, tp));
    }
  }
  return result;
}

Expected<StageReplicas> choose_stages(const Measurement& m, const Machine& machine,
                                      std::span<const cluster::GpuType> devices) {
  if (!m.stage_replicas.empty()) return named_stages(m, machine, devices);
  if (!m.stage_gpus.empty()) return counted_stages(m, machine);
  return uniform_stages(machine, uniform_degrees(m, machine.nodes.front().gpus));
}

Expected<StageReplicas> find_stages(const Measurement& m, const Machine& machine,
                                    std::span<const cluster::GpuType> devices) {
  auto stages = choose_stages(m, machine, devices);
  if (!stages) return stages;
  const auto differs = [&](const auto& stage) { return stage.size() != stages->front().size(); };
  if (stages->front().empty() || std::ranges::any_of(*stages, differs)) {
    return fail(reason("stages have different numbers of replicas, whose shares of the batch are not printed"));
  }
  return stages;
}

Reason set_batch(Experiment& experiment, const Batch& batch, std::size_t replicas) {
  const std::int64_t microbatch = batch.microbatch * static_cast<std::int64_t>(replicas);
  if (microbatch > batch.global) {
    return reason(fmt::format("a batch of {} is smaller than {} replicas of microbatch {}", batch.global, replicas,
                              batch.microbatch));
  }
  if (batch.global % microbatch != 0) {
    return reason(fmt::format("a batch of {} is no multiple of {} replicas of microbatch {}", batch.global, replicas,
                              batch.microbatch));
  }
  experiment.microbatch = microbatch;
  experiment.microbatches = batch.global / microbatch;
  return std::nullopt;
}

std::vector<Gpu> flat(const std::vector<Replica>& replicas) {
  std::vector<Gpu> all;
  for (const Replica& replica : replicas) all.insert(all.end(), replica.begin(), replica.end());
  return all;
}

/// tp of each part follows from its replicas.
cost::Degrees common_degrees(const Measurement& m, const model::Model& model, const cluster::GpuType& device) {
  cost::Degrees degrees;
  degrees.cp = std::max(1, m.cp.value_or(1));
  degrees.ep = std::max(1, m.ep.value_or(1));
  if (model.has_experts()) degrees.etp = expert_tensor_parallelism(m);
  degrees.sequence_parallel = uses_sequence_parallelism(m, device);
  return degrees;
}

/// 0: all of dp. A group of one is what tables print that say whether a run shards, not how far.
int ranks_sharded_over(const Measurement& m) {
  const int printed = m.sharding_group.value_or(0);
  return printed == 1 ? 0 : printed;
}

Reason place(Experiment& experiment, const Measurement& m, const StageReplicas& stages, const Machine& machine) {
  const cost::Degrees degrees = common_degrees(m, experiment.model, *machine.gpus.front().device);
  const int zero = experiment.zero;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Stage& stage = experiment.stages.emplace_back();
    auto parts = make_parts(stages[s], degrees, zero > 0 ? ranks_sharded_over(m) : 0,
                            static_cast<int>(batch_of(m).microbatch), machine);
    if (!parts) return parts.error().front();
    stage.parts = std::move(*parts);
    connect(stage, flat(stages[s]), flat(stages[(s + 1) % stages.size()]), machine);
  }
  return std::nullopt;
}

/// GPUs of all stages of the language model, and of an encoder in a stage of its own.
struct Layout {
  StageReplicas stages;
  LanguageLayout language;
  std::vector<Replica> own;
};

LanguageLayout language_layout(const StageReplicas& stages, const Measurement& m) {
  const auto replica = static_cast<int>(stages.front().front().size());
  return {replica / std::max(1, m.cp.value_or(1)), static_cast<int>(stages.front().size()),
          static_cast<int>(stages.size())};
}

Expected<Layout> lay_out(const Measurement& m, Machine machine, std::span<const cluster::GpuType> devices) {
  Layout layout;
  if (stands_in_front(m)) {
    auto own = take_own_stage(m, machine);
    if (!own) return tl::unexpected(own.error());
    layout.own = std::move(*own);
  }
  auto stages = find_stages(m, machine, devices);
  if (!stages) return tl::unexpected(stages.error());
  layout.stages = std::move(*stages);
  layout.language = language_layout(layout.stages, m);
  return layout;
}

/// With the placement that the encoder's layout amounts to; or why it cannot be expressed.
Expected<Measurement> with_placement(Measurement m, const LanguageLayout& language) {
  if (!m.encoder) return m;
  if (auto missing = why_no_encoder(m, language)) return fail(*missing);
  m.encoder->placement = placement_of(m, language);
  return m;
}

/// In a stage in front of the others, or on the GPUs of all; elsewhere it is in the first stage.
Reason place_encoder(Experiment& experiment, const Measurement& m, const Layout& layout, const Machine& machine) {
  if (!m.encoder || m.encoder->placement == Placement::kHomogeneous) return std::nullopt;
  if (!stands_in_front(m)) return share_gpus(experiment, m, layout.language, machine);
  auto part = own_part(m, layout.own, experiment.microbatch, machine);
  if (!part) return part.error().front();
  Stage stage;
  stage.parts.push_back(std::move(*part));
  experiment.items = m.encoder->items;
  connect(stage, flat(layout.own), flat(layout.stages.front()), machine);
  experiment.stages.insert(experiment.stages.begin(), std::move(stage));
  return std::nullopt;
}

/// "full 24/52 layers", "full, 15 of 61 layers": a part of them; else all.
double fully_recomputed_share(const Measurement& m) {
  const std::vector<TextNumber> numbers = numbers_in(m.recompute);
  if (numbers.size() != 2 || numbers[0].value > numbers[1].value) return 1;
  return numbers[0].value / numbers[1].value;
}

/// Blocks of a position recomputed in full.
double fully_recomputed(const Chunk& chunk, const Measurement& m, const model::Model& model) {
  if (m.recomputed_layers.empty()) return (chunk.last - chunk.first) * fully_recomputed_share(m);
  const int encoder = m.encoder ? model::encoder_blocks(model) : 0;
  return static_cast<double>(std::ranges::count_if(
      m.recomputed_layers, [&](int layer) { return encoder + layer >= chunk.first && encoder + layer < chunk.last; }));
}

/// Blocks of a position recomputed in full and in the job's modules alone, where the cut does not say so.
/// "selective-op" keeps every second product.
void set_recompute(Chunk& chunk, const Measurement& m, const Experiment& experiment) {
  const cost::RecomputeMode mode = experiment.recompute;
  const double blocks = chunk.last - chunk.first;
  if (mode == cost::RecomputeMode::kFull) chunk.recomputed = fully_recomputed(chunk, m, experiment.model);
  if (m.recompute == "selective-op") chunk.recomputed = blocks / 2;
  if (mode == cost::RecomputeMode::kSelective) chunk.selective = blocks - chunk.recomputed;
}

/// Blocks of a stage that an encoder has for itself.
void recompute_encoder(Chunk& chunk, const Measurement& m) {
  if (is_recomputed(*m.encoder)) chunk.recomputed = chunk.last - chunk.first;
}

void add_chunks(Experiment& experiment, const Measurement& m, const Cut& cut) {
  const std::size_t stages = experiment.stages.size();
  const std::size_t first = stands_in_front(m) ? 1 : 0;
  double next = 0;
  for (std::size_t position = 0; position < cut.blocks.size(); ++position) {
    Chunk chunk;
    chunk.first = next;
    next += cut.blocks[position];
    chunk.last = next;
    chunk.embedding = position == first;
    chunk.head = position + 1 == cut.blocks.size();
    if (position < first) {
      recompute_encoder(chunk, m);
    } else if (cut.recomputed.empty()) {
      set_recompute(chunk, m, experiment);
    } else {
      chunk.recomputed = cut.recomputed[position];
      chunk.selective = cut.selective[position];
    }
    experiment.stages[position % stages].chunks.push_back(chunk);
  }
}

Reason cut_model(Experiment& experiment, const Measurement& m) {
  const std::int64_t stages = std::ssize(experiment.stages) - (stands_in_front(m) ? 1 : 0);
  const int encoder = m.encoder ? model::encoder_blocks(experiment.model) : 0;
  auto cut = find_cut(m, experiment.model.block_count() - encoder, stages * m.virtual_stages);
  if (!cut) return cut.error().front();
  add_chunks(experiment, m, with_encoder(std::move(*cut), m, encoder));
  return std::nullopt;
}

/// `change`: of the methods of one part.
template <class Change>
void change_methods(Experiment& experiment, const Change& change) {
  for (Stage& stage : experiment.stages) {
    for (Part& part : stage.parts) change(part.shape.methods);
  }
}

/// Gathers before each pass, and nothing beside them.
void shard_eagerly(Experiment& experiment) {
  change_methods(experiment, [](cluster::ExecutionMethods& own) { own.overlapped = own.gathered_once = false; });
}

/// XLA removes what nothing reads; torch.utils.checkpoint without re-entrance, which trainers on PyTorch's FSDP apply,
/// stops early.
bool stops_early(const Measurement& m) { return is_compiled(m) || is_on_pytorch(m); }

/// Composer, which trains MosaicML's models (composer/trainer/dist_strategy.py, the default of backward_prefetch).
bool gathers_between(const Measurement& m) { return names_any(m.source, {"llm-foundry"}); }

void set_methods(Experiment& experiment, const Measurement& m) {
  change_methods(experiment, [&](cluster::ExecutionMethods& own) {
    own.scheduled = is_compiled(m);
    own.early_stop = stops_early(m);
    own.gather_barrier = m.gather_barrier;
    own.gathers_between = gathers_between(m);
    own.reduced_once = m.no_sync;
    own.copied_exchanges = own.tensor_forward_alone = is_on_pytorch(m);
    own.gathered_by_each_optimizer = m.ep.value_or(1) > 1 && !is_compiled(m) && !is_on_pytorch(m);
    own.output_again = std::ranges::count(m.recompute_modules, "out_proj") > 0;
  });
}

double kept_on_gpu(const Measurement& m, const Experiment& experiment) {
  if (m.offloaded_layers == 0 || experiment.stages.size() > 1) return 1;
  const int layers = experiment.model.block_count();
  return std::clamp(static_cast<double>(layers - m.offloaded_layers + 1) / layers, 0.0, 1.0);
}

/// Published pipelines ran under Megatron-LM or what was made of it. Interleaved, its transfers run beside the passes.
bool stops_for_transfers(const Measurement& m) {
  const runtime::Semantics semantics = runtime::runtime_of(runtime::Target::kMegatron).semantics;
  return semantics.transfers == runtime::Transfers::kBlocking && m.virtual_stages == 1;
}

/// ZeRO-3 inside a pipeline works as ZeRO-1 does.
int planned_zero(const Measurement& m, std::size_t stages) {
  const int zero = zero_stage(m);
  return zero == 3 && stages > 1 ? 1 : zero;
}

/// Where nothing runs beside the exchange, it has no buckets.
constexpr std::int64_t kAllGradients = std::numeric_limits<std::int64_t>::max();

}  // namespace

void restrict_methods(Experiment& experiment, const cluster::ExecutionMethods& methods) {
  change_methods(experiment, [&](cluster::ExecutionMethods& own) {
    own.hierarchical &= methods.hierarchical;
    own.overlapped &= methods.overlapped;
  });
  if (methods.overlapped) return;
  experiment.overlaps_sync = false;
  experiment.blocking_transfers = true;
}

Expected<Experiment> express(const Measurement& printed, std::span<const cluster::GpuType> all_devices) {
  if (!printed.plan.empty()) return fail(reason("a plan ran, which says all of it: tangram calibrate --from runs"));
  const std::vector<cluster::GpuType> devices = devices_of_the_time(printed, all_devices);
  const auto machine = build_machine(printed, devices);
  if (!machine) return tl::unexpected(machine.error());
  if (auto missing = why_incomplete(printed)) return fail(*missing);
  const auto layout = lay_out(printed, *machine, devices);
  if (!layout) return tl::unexpected(layout.error());
  const auto m = with_placement(printed, layout->language);
  if (!m) return tl::unexpected(m.error());
  const cluster::GpuType& device = *machine->gpus.front().device;
  auto model = find_model(*m, device);
  if (!model) return tl::unexpected(model.error());

  Experiment experiment;
  experiment.model = std::move(*model);
  experiment.gpus = static_cast<int>(machine->gpus.size());
  experiment.microbatch_group = m->microbatch_group;
  experiment.zero = planned_zero(*m, layout->stages.size());
  const bool sharded_by_block = experiment.zero == 3 && !shards_eagerly(*m, device);
  experiment.overlaps_sync = is_recent(device) || sharded_by_block || overlaps_reduction(*m);
  if (!experiment.overlaps_sync) experiment.model.job.gradient_bucket = kAllGradients;
  experiment.blocking_transfers = stops_for_transfers(*m);
  experiment.recompute = find_recompute(*m);
  if (auto wrong = set_batch(experiment, batch_of(*m), layout->stages.front().size())) return fail(*wrong);
  if (auto wrong = place(experiment, *m, layout->stages, *machine)) return fail(*wrong);
  if (auto wrong = place_encoder(experiment, *m, *layout, *machine)) return fail(*wrong);
  if (auto wrong = cut_model(experiment, *m)) return fail(*wrong);
  if (shards_eagerly(*m, device)) shard_eagerly(experiment);
  set_methods(experiment, *m);
  experiment.kept_on_gpu = kept_on_gpu(*m, experiment);
  experiment.keeps_both_gradients = keeps_both_gradients(*m, experiment.model.job);
  experiment.communicators = communicators_counted(*m, experiment);
  return experiment;
}

}  // namespace tangram::accuracy
