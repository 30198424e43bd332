// From block times and bytes to the units that stage_cost adds up.
#include <algorithm>
#include <utility>

#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/memory.hpp"
#include "tangram/cost/stage.hpp"

namespace tangram::cost {
namespace {

void set_time(UnitCost& unit, const BlockTime& time) {
  unit.forward = time.compute.forward + time.communication.forward;
  unit.backward = time.compute.backward + time.communication.backward;
  unit.recompute_selective = time.selective_compute;
  unit.recompute_full = std::max(0.0, unit.forward - time.unread) + time.states;
  unit.alone = time.alone.forward + time.alone.backward;
}

/// Measured times in place of the modelled ones; `time` becomes what they say of compute, for what hides under it.
void set_measured(UnitCost& unit, BlockTime& time, const Measured& measured) {
  const bool includes = measured.includes_tp_communication;
  const Passes inside = includes ? time.tensor : Passes{};
  const double again = unit.forward > 0 ? unit.recompute_full / unit.forward : 1;
  unit.forward = measured.time.forward + (time.communication.forward - inside.forward);
  unit.backward = measured.time.backward + (time.communication.backward - inside.backward);
  unit.recompute_full = again * unit.forward;
  const Passes compute{std::max(0.0, measured.time.forward - inside.forward),
                       std::max(0.0, measured.time.backward - inside.backward)};
  if (time.compute.forward > 0) unit.recompute_selective *= compute.forward / time.compute.forward;
  unit.recompute_selective = std::min(unit.recompute_selective, unit.recompute_full);
  time.compute = compute;
  time.overlapped = {std::min(time.overlapped.forward, compute.forward),
                     std::min(time.overlapped.backward, compute.backward)};
  if (measured.activation > 0) {
    const double share = unit.activation_none > 0 ? measured.activation / unit.activation_none : 1;
    unit.activation_none = measured.activation;
    unit.activation_selective *= share;
    unit.activation_full = std::min(unit.activation_full, measured.activation);
  }
}

void set_activation(UnitCost& unit, const ActivationBytes& bytes) {
  unit.activation_none = bytes.none;
  unit.activation_selective = bytes.selective;
  unit.activation_full = bytes.full;
  unit.working = bytes.working;
}

/// The sum of a block and its connector, which run one after the other.
BlockTime joined(BlockTime a, const BlockTime& b) {
  a.compute += b.compute;
  a.communication += b.communication;
  a.tensor += b.tensor;
  return a;
}

double seconds_backward(const BlockTime& time) { return time.compute.backward + time.communication.backward; }

/// What was measured is of a unit that is trained in full, on samples of one sequence: of its passes the shares that
/// `time` has of what `time_if_trained` gives, which is asked only of units that are not. `packed`: samples are more.
template <class Trained>
Measured adapted(Measured measured, const BlockTime& time, const model::Gradients& gradients,
                 const Trained& time_if_trained, bool packed = false) {
  if (gradients == model::Gradients{} && !packed) return measured;
  const Passes share = share_of_trained(time, time_if_trained());
  measured.time.forward *= share.forward;
  measured.time.backward *= share.backward;
  if (!gradients.any()) measured.activation = 0;
  return measured;
}

/// A collective over the shared parameters and one over the experts, each among the ranks that share its shards.
double sharded_collective(Collective kind, const LocalParameters& parameters, double bytes_per_parameter,
                          const UnitCosts& units) {
  const double shared = parameters.shared * bytes_per_parameter;
  const double expert = parameters.expert * bytes_per_parameter;
  return collective_seconds(kind, shared, units.groups.shards, units.shape, units.curves) +
         collective_seconds(kind, expert, units.groups.expert_shards, units.shape, units.curves);
}

/// Kernels that read and write so many bytes for each of some parameters.
double pass_seconds(const LocalParameters& parameters, double bytes_per_parameter, const DeviceRates& rates) {
  return streaming_seconds(bytes_per_parameter * (parameters.shared + parameters.expert), rates);
}

LocalParameters all_of(const UnitCost& unit) { return {unit.shared_parameters, unit.expert_parameters}; }
LocalParameters trained_of(const UnitCost& unit) { return {unit.trained_shared, unit.trained_expert}; }
bool is_trained(const UnitCost& unit) { return unit.trained_shared + unit.trained_expert > 0; }

/// A list of shards is a tensor of its own: gathers clear the target (written) and copy each shard to its place (read,
/// written), scatters copy each shard into the list (PyTorch's ProcessGroupNCCL.cpp; DeepSpeed's
/// runtime/zero/partition_parameters.py of 2021).
constexpr double kGatherCopies = 3;
constexpr double kScatterCopies = 2;

/// Of a unit's gather what its pass waits for.
double waited_share(const UnitCost& unit, const UnitCosts& units) {
  const double barrier = units.shape.methods.gather_barrier;
  const double bytes = (unit.shared_parameters + unit.expert_parameters) * unit.gathered_bytes;
  return barrier < bytes ? barrier / bytes : 1;
}

/// Gathers and scatters run beside the unit's own compute, since the next unit's are gathered ahead; of what runs
/// side by side kOverlapLoss stays exposed. What already hides context parallelism's ring hides nothing else.
void set_zero(UnitCost& unit, const BlockTime& time, const model::Job& job, const UnitCosts& units) {
  const cluster::ExecutionMethods& methods = units.shape.methods;
  const auto gradient = static_cast<double>(units.gradient_bytes);
  double gather = sharded_collective(Collective::kAllGather, all_of(unit), unit.gathered_bytes, units);
  double scatter = 0;
  if (is_trained(unit)) {
    scatter = sharded_collective(Collective::kReduceScatter, trained_of(unit), gradient, units);
  }
  if (!methods.gathered_once) {
    const DeviceRates rates = device_rates(units.shape.device, job);
    gather += pass_seconds(all_of(unit), kGatherCopies * unit.gathered_bytes, rates);
    if (is_trained(unit)) scatter += pass_seconds(trained_of(unit), kScatterCopies * gradient, rates);
  }
  const double share = methods.overlapped ? 1 : 0;
  const double forward = share * (time.compute.forward + time.bus.forward - time.overlapped.forward);
  const double backward = share * (time.compute.backward + time.bus.backward - time.overlapped.backward);
  const double waited = gather * waited_share(unit, units);
  unit.zero3_gather = waited + seconds_beside(gather - waited, forward);
  if (unit.backward <= 0) return;  // nothing is gathered for it again
  const double again = gather - waited + (methods.reduced_once ? 0 : scatter);
  unit.zero3_backward = waited + seconds_beside(again, methods.gathers_between ? 0 : backward);
  unit.zero3_busy = waited + (1 + kOverlapLoss) * again;
  if (!methods.gathered_once) unit.zero3_recompute = unit.zero3_gather;
  unit.zero2_scatter = seconds_beside(scatter, backward);
  unit.zero2_busy = (1 + kOverlapLoss) * scatter;
}

/// Gradients that kernels of their own add to the main ones: converted to wider ones (read, written wide), as
/// DeepSpeed's runtime/bf16_optimizer.py does, and added (both read, the main ones written).
void add_accumulation(UnitCost& unit, const model::Job& job, const UnitCosts& units) {
  if (job.fused_accumulation || !is_trained(unit)) return;
  const auto parameter = static_cast<double>(units.parameter_bytes);
  const auto gradient = static_cast<double>(units.gradient_bytes);
  const double conversion = gradient > parameter ? parameter + gradient : 0;
  const DeviceRates rates = device_rates(units.shape.device, job);
  unit.backward += pass_seconds(trained_of(unit), conversion + 3 * gradient, rates);
}

/// Else Megatron-Core's: 40 million parameters, or a million a data-parallel rank (distributed_data_parallel.py).
double bucket_of(const model::Job& job, const ProcessGroups& groups) {
  if (job.gradient_bucket > 0) return static_cast<double>(job.gradient_bucket);
  return std::max(40e6, 1e6 * groups.data.size());
}

void set_state_bytes(UnitCosts& units, const model::Job& job) {
  units.parameter_bytes = job.parameter_bytes;
  units.gradient_bytes = job.gradient_bytes;
  units.optimizer_bytes = model::resident_state_bytes(job);
  units.host_stepped = job.optimizer.offload_fraction;
  units.update_bytes = wide_gradient_bytes(job);
  const DeviceRates rates = device_rates(units.shape.device, job);
  units.memory_rate = rates.memory;
  units.gradient_bucket = bucket_of(job, units.groups);
  units.gathers_beside = job.overlap_gather;
}

/// Of all parameters of a block: those of norms and routers, which stay as they are, are few. What is kept in 8 or 4
/// bits and not trained is as it was loaded.
void set_copies(UnitCost& unit, const model::Job& job, const NarrowCopies& copies) {
  const bool narrow = job.narrow_parameters && copies.one > 0;
  const auto wide = static_cast<double>(job.parameter_bytes);
  const double kept = narrow ? copies.held_bytes() : wide;
  unit.kept_shared = unit.shared_parameters * kept;
  unit.kept_expert = unit.expert_parameters * (job.wide_experts ? wide : kept);
  unit.gathered_bytes = wide;
  if (copies.one <= 0) return;
  const auto narrowed = [&](double shared, double expert) { return shared + (job.wide_experts ? 0 : expert); };
  const double parameters = narrowed(unit.shared_parameters, unit.expert_parameters);
  const double cast = narrow ? narrowed(unit.trained_shared, unit.trained_expert) : parameters;
  unit.copies = parameters * copies.held_bytes();
  unit.gathered_copies = narrow ? 0 : unit.copies;
  unit.cast = cast * (copies.gradient_reads * wide + copies.held_bytes());
  if (narrow && (!job.wide_experts || unit.expert_parameters <= 0)) unit.gathered_bytes = copies.one;
}

/// Of the embedding, the head or a tied matrix, which are in 2 bytes whatever blocks are.
void keep_wide(UnitCost& unit, std::int64_t parameter_bytes) {
  unit.gathered_bytes = static_cast<double>(parameter_bytes);
  unit.kept_shared = unit.shared_parameters * unit.gathered_bytes;
}

/// Of a block's parameters those of its largest matrix; experts are one.
double largest_share(const model::BlockType& block, const UnitCost& unit, const Degrees& degrees) {
  double largest = 0;
  for (const model::AdaptableMatrix& matrix : model::adaptable_matrices(block)) {
    const LocalMatrix local = local_matrix(block, matrix, degrees);
    largest = std::max(largest, local.in * local.out);
  }
  largest = std::max(largest, unit.expert_parameters);
  const double all = unit.shared_parameters + unit.expert_parameters;
  return largest > 0 ? std::min(1.0, largest / all) : 1;
}

UnitCost block_unit(const model::Model& model, const model::BlockType& block, const UnitCosts& units,
                    const std::optional<Measured>& measured) {
  const double samples = static_cast<double>(units.degrees.most_samples(units.samples));
  const auto time_of = [&](const model::BlockType& type) {
    return block_time(type, model.job, units.degrees, samples, units.shape, units.curves);
  };
  BlockTime time = time_of(block);
  const LocalParameters local = local_held_parameters(block, model.job, units.degrees);
  const LocalParameters trained = local_trained_parameters(block, units.degrees);
  UnitCost unit;
  set_time(unit, time);
  const std::optional<model::Job> own = model::own_job(block, model.job);
  const model::Job& job = own ? *own : model.job;
  const DType format = matrix_format(units.shape.device, job.precision);
  set_activation(unit, block_activation(block, job, units.degrees, samples, format, units.shape.methods));
  if (measured) {
    const auto trained_time = [&] { return time_of(model::plain(block)); };
    const bool packed = block.attention.packed_length > 0;
    set_measured(unit, time, adapted(*measured, time, block.gradients, trained_time, packed));
  }
  if (!block.gradients.any()) unit.recompute_full = 0;
  if (block.connector) {
    const BlockTime connector = connector_time(block, model.job, units.degrees, samples, units.shape, units.curves);
    unit.forward += connector.compute.forward + connector.communication.forward;
    unit.backward += seconds_backward(connector);
    time = joined(time, connector);
  }
  unit.shared_parameters = local.shared;
  unit.expert_parameters = local.expert;
  unit.trained_shared = trained.shared;
  unit.trained_expert = trained.expert;
  unit.trained_parameters = static_cast<double>(model::trained_parameters(block).total());
  set_copies(unit, job, narrow_copies(units.shape.device, format, job));
  if (units.shape.methods.scheduled) unit.tensor_share = largest_share(block, unit, units.degrees);
  add_accumulation(unit, model.job, units);
  set_zero(unit, time, model.job, units);
  return unit;
}

/// The vocabulary matrix is sharded by tp (padded); the rest of the embedding or head is on every rank.
struct Matrix {
  double whole = 0;
  double local = 0;
};

Matrix vocabulary_matrix(const model::Model& model, int tp) {
  const double width = static_cast<double>(model.embedding_projection > 0 ? model.embedding_projection : model.hidden);
  return {static_cast<double>(model.vocabulary) * width, padded_vocabulary(model.vocabulary, tp) / tp * width};
}

UnitCost embedding_unit(const model::Model& model, const UnitCosts& units, const std::optional<Measured>& measured) {
  const double samples = static_cast<double>(units.degrees.most_samples(units.samples));
  BlockTime time = embedding_time(model, units.degrees, samples, units.shape, units.curves);
  const Matrix matrix = vocabulary_matrix(model, units.degrees.tp);
  UnitCost unit;
  set_time(unit, time);
  set_activation(unit, embedding_activation(model, units.degrees, samples));
  // Its input are tokens: without gradients of its own it has none.
  const model::Gradients gradients{model.end_gradients().weights, model.end_gradients().weights};
  if (measured) {
    const auto trained_time = [&] {
      return embedding_time(unfrozen(model), units.degrees, samples, units.shape, units.curves);
    };
    set_measured(unit, time, adapted(*measured, time, gradients, trained_time));
  }
  unit.shared_parameters = static_cast<double>(model.embedding_parameters()) - matrix.whole + matrix.local;
  keep_wide(unit, units.parameter_bytes);
  unit.trained_parameters = static_cast<double>(model.trained_embedding_parameters());
  unit.trained_shared = unit.trained_parameters;
  if (gradients.weights) unit.trained_shared = unit.trained_parameters - matrix.whole + matrix.local;
  add_accumulation(unit, model.job, units);
  set_zero(unit, time, model.job, units);
  return unit;
}

UnitCost head_unit(const model::Model& model, const UnitCosts& units, const std::optional<Measured>& measured) {
  const double samples = static_cast<double>(units.degrees.most_samples(units.samples));
  BlockTime time = head_time(model, units.degrees, samples, units.shape, units.curves);
  UnitCost unit;
  set_time(unit, time);
  set_activation(unit, head_activation(model, units.degrees, samples));
  if (measured) {
    const auto trained_time = [&] {
      return head_time(unfrozen(model), units.degrees, samples, units.shape, units.curves);
    };
    set_measured(unit, time, adapted(*measured, time, model.end_gradients(), trained_time));
  }
  unit.shared_parameters = static_cast<double>(model.head_parameters());
  if (!model.tied_embeddings) {
    const Matrix matrix = vocabulary_matrix(model, units.degrees.tp);
    unit.shared_parameters += matrix.local - matrix.whole;
  }
  keep_wide(unit, units.parameter_bytes);
  unit.trained_parameters = static_cast<double>(model.trained_head_parameters());
  unit.trained_shared = model.end_gradients().weights ? unit.shared_parameters : 0;
  add_accumulation(unit, model.job, units);
  set_zero(unit, time, model.job, units);
  return unit;
}

void set_unmeasured(Unsupported& unsupported, const model::Model& model, std::size_t type) {
  unsupported.types.resize(model.types.size());
  unsupported.types[type] = "not measured there: " + model.types[type].name;
}

void add_units(UnitCosts& units, const model::Model& model, const ProfileSet& profiles) {
  const auto replica = static_cast<int>(units.degrees.most_samples(units.samples));
  const cluster::GpuType& device = units.shape.device;
  for (const CurveId& id : profiles.curves_of(units.groups, device)) units.curves.push_back(profiles.curve(id));
  const auto provenance = [](const std::optional<Measured>& m) { return m ? m->provenance : Provenance::kModelled; };
  for (std::size_t type = 0; type < model.types.size(); ++type) {
    if (!units.unsupported.of_type(type).empty()) {
      units.blocks.emplace_back();
      units.block_provenance.push_back(Provenance::kModelled);
      continue;
    }
    const model::BlockType& block = model.types[type];
    const auto measured = profiles.block(block, model.job, units.degrees, replica, device);
    if (profiles.measured_only() && !measured) set_unmeasured(units.unsupported, model, type);
    units.blocks.push_back(block_unit(model, block, units, measured));
    units.block_provenance.push_back(provenance(measured));
  }
  const auto embedding = profiles.edge(ProfileKind::kEmbedding, model, units.degrees, replica, device);
  units.embedding = embedding_unit(model, units, embedding);
  units.embedding_provenance = provenance(embedding);
  const auto head = profiles.edge(ProfileKind::kHead, model, units.degrees, replica, device);
  units.head = head_unit(model, units, head);
  units.head_provenance = provenance(head);
}

Diagnostic infeasible(std::string message) {
  return problem(ErrorKind::kInfeasible, "unsupported-degrees", std::move(message));
}

}  // namespace

UnitCost tied_unit(const UnitCosts& units) {
  UnitCost unit;
  unit.shared_parameters = units.tied_parameters;
  keep_wide(unit, units.parameter_bytes);
  if (!units.tied_trained) return unit;
  unit.trained_shared = units.tied_parameters;
  unit.trained_parameters = units.tied_matrix;
  return unit;
}

Expected<UnitCosts> unit_costs(const model::Model& model, const cluster::DeviceShape& shape, const Degrees& degrees,
                               int samples, const ProfileSet* profiles) {
  if (degrees.gpus() != shape.gpus()) {
    return fail(infeasible("degrees use " + std::to_string(degrees.gpus()) + " GPUs of a shape of " +
                           std::to_string(shape.gpus())));
  }
  Unsupported unsupported_parts = unsupported(model, degrees, samples, shape.device.name);
  if (std::string reason = unsupported_parts.of_all_types(); !reason.empty()) {
    return fail(infeasible(std::move(reason)));
  }
  if (!(matrix_peak(shape.device, model.job.precision).value() > 0)) {
    return fail(infeasible("GPU type \"" + shape.device.name + "\" has no peak rate for " +
                           std::string(to_string(model.job.precision)) + " or any format it can fall back to"));
  }
  UnitCosts units;
  units.unsupported = std::move(unsupported_parts);
  units.degrees = degrees;
  units.samples = samples;
  units.shape = shape;
  units.groups = process_groups(degrees, shape);
  set_state_bytes(units, model.job);
  add_units(units, model, profiles != nullptr ? *profiles : ProfileSet{});
  if (model.tied_embeddings) {
    const Matrix matrix = vocabulary_matrix(model, degrees.tp);
    units.tied_parameters = matrix.local;
    units.tied_matrix = matrix.whole;
    units.tied_trained = model.end_gradients().weights;
  }
  return units;
}

Expected<UnitCosts> unit_costs_of(const model::Model& model, const model::SliceSignature& slice,
                                  const cluster::DeviceShape& shape, const Degrees& degrees, int samples,
                                  const ProfileSet* profiles) {
  auto units = unit_costs(model, shape, degrees, samples, profiles);
  if (!units) return units;
  if (const std::string& reason = units->unsupported.of(slice); !reason.empty()) return fail(infeasible(reason));
  return units;
}

void collect_used(const ProfileSet& profiles, const model::Model& model, const model::SliceSignature& slice,
                  const cluster::DeviceShape& shape, const Degrees& degrees, int samples, Selection& used) {
  const auto replica = static_cast<int>(degrees.most_samples(samples));
  const cluster::GpuType& device = shape.device;
  const auto add = [&](const std::optional<Measured>& measured) {
    if (measured) used.rows.insert(measured->rows.begin(), measured->rows.end());
  };
  used.curves.merge(profiles.curves_of(process_groups(degrees, shape), device));
  if (slice.embedding) add(profiles.edge(ProfileKind::kEmbedding, model, degrees, replica, device));
  for (const auto& [type, count] : slice.runs) {
    add(profiles.block(at(model.types, type), model.job, degrees, replica, device));
  }
  if (slice.head) add(profiles.edge(ProfileKind::kHead, model, degrees, replica, device));
}

Provenance slice_provenance(const UnitCosts& units, const model::SliceSignature& slice) {
  const auto is_modelled = [](Provenance provenance) { return provenance == Provenance::kModelled; };
  const bool none_measured = std::ranges::all_of(units.block_provenance, is_modelled) &&
                             is_modelled(units.embedding_provenance) && is_modelled(units.head_provenance);
  if (none_measured) return Provenance::kModelled;  // however many runs share the time
  const auto seconds = [](const UnitCost& unit, int count) { return count * (unit.forward + unit.backward); };
  const auto each = [&](const auto& visit) {
    if (slice.embedding) visit(seconds(units.embedding, 1), units.embedding_provenance);
    for (const auto& [type, count] : slice.runs) {
      const auto index = static_cast<std::size_t>(type);
      const bool known = index < units.block_provenance.size();
      visit(seconds(units.blocks[index], count), known ? units.block_provenance[index] : Provenance::kModelled);
    }
    if (slice.head) visit(seconds(units.head, 1), units.head_provenance);
  };
  double total = 0;
  each([&](double share, Provenance) { total += share; });
  Provenance weakest = Provenance::kMeasured;
  each([&](double share, Provenance provenance) {
    if (share >= kNegligibleShare * total) weakest = std::max(weakest, provenance);
  });
  return weakest;
}

}  // namespace tangram::cost
