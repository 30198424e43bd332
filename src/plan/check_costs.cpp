// Every part's times and memory, worked out anew from the embedded model and GPU records, and every boundary's price.
#include <algorithm>
#include <optional>
#include <string>

#include "findings.hpp"
#include "saturating.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/put_off.hpp"
#include "tangram/cost/validity.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::plan {

cluster::DeviceShape checked_shape(const LaunchPlan& plan, const Part& part) {
  const PlanIsland& island = plan.island(part.island);
  const int gpus = part.strategy.degrees.gpus();
  bool spills = false;
  for (int i = 0; i < gpus; ++i) {
    spills |= plan.rank(part, i).island != part.island;
  }
  cluster::IslandClass island_class;
  island_class.alias = island.island_class;
  island_class.device = island.device;
  island_class.gpus_per_member = island.gpus_per_member;
  island_class.members_per_island = island.members_per_island;
  island_class.inside_member = island.inside_member;
  island_class.between_members = spills ? island.between_islands : island.between_members;
  island_class.between_islands = island.between_islands;
  const int islands = (part.members + island.members_per_island - 1) / island.members_per_island;
  for (int i = 0; i < islands; ++i) island_class.islands.push_back(i);
  return cluster::make_shape(island_class, gpus);
}

namespace {

/// Whether the cost functions' requirements hold; what does not hold is reported by the other steps.
bool computable(const LaunchPlan& plan, const Part& part) {
  if (plan.is_interleaved() && part.strategy.policy.is_mixed()) return false;
  const auto& degrees = part.strategy.degrees;
  const int gpus = degrees.gpus();
  const int member = plan.island(part.island).gpus_per_member;
  const bool inside = part.members == 1 && gpus <= member;
  const bool whole = part.members > 1 && gpus == std::int64_t{part.members} * member;
  return (inside || whole) && part.samples >= degrees.dp && gpus % (std::int64_t{degrees.ep} * degrees.etp) == 0;
}

template <class Quantity>
void compare(Quantity written, Quantity computed, const char* what, const std::string& where, Findings& findings) {
  if (written == computed) return;
  findings.add("cost-differs", where,
               std::string(what) + " is " + std::to_string(written.value()) + ", recomputed it is " +
                   std::to_string(computed.value()));
}

void compare_costs(const PartPrediction& written, const cost::StageCost& computed, const std::string& where,
                   Findings& findings) {
  compare(written.forward, computed.forward, "forward (ns)", where, findings);
  compare(written.backward, computed.backward, "backward (ns)", where, findings);
  compare(written.optimizer_step, computed.optimizer_step, "optimizer_step (ns)", where, findings);
  compare(written.static_memory, computed.static_memory(), "static memory (bytes)", where, findings);
  compare(written.transient, computed.transient, "transient memory (bytes)", where, findings);
  compare(written.activation, computed.activation, "activation (bytes)", where, findings);
  if (written.provenance != computed.provenance) {
    findings.add("cost-differs", where, "the provenance of the figures is another");
  }
}

void compare_chunks(const PartPrediction& written, const std::vector<cost::StageCost>& computed,
                    const std::string& where, Findings& findings) {
  for (std::size_t c = 0; c < computed.size(); ++c) {
    const std::string chunk = where + " chunk " + std::to_string(c);
    compare(written.chunks[c].forward, computed[c].forward, "forward (ns)", chunk, findings);
    compare(written.chunks[c].backward, computed[c].backward, "backward (ns)", chunk, findings);
    compare(written.chunks[c].activation, computed[c].activation, "activation (bytes)", chunk, findings);
  }
}

/// What was written of it is in `p`. Backward passes of a stage may be whole.
void recompute_put_off(const LaunchPlan& plan, const Stage& stage, const cost::UnitCosts& units,
                       const std::string& where, PartPrediction& p, Findings& findings) {
  if (!stage.puts_off() && p.put_off == Bytes(0)) return;
  const auto cost =
      cost::put_off_cost(plan.pipelined(), units, model::signature(plan.pipelined(), stage.chunks.front()));
  const Nanoseconds weight_gradient = std::min(cost.weight_gradient, p.backward);
  compare(p.weight_gradient, weight_gradient, "weight_gradient (ns)", where, findings);
  compare(p.put_off, cost.held, "put off (bytes)", where, findings);
  p.weight_gradient = weight_gradient;
  p.put_off = cost.held;
}

// A part's own synchronisation is recomputed; what crosses is as long as the plan says, for all parts of the stage the
// same, and nothing where the stage has nobody to synchronise with. A part that ends early has at least what is exposed
// of the stage.
void check_whole_sync(const Stage& stage, const std::vector<RecomputedPart>& parts, bool alone, Findings& findings) {
  const auto ends_early = [](const PartPrediction& p) { return p.gradient_sync == p.gradient_sync_exposed; };
  std::optional<std::int64_t> crossing = alone ? std::optional<std::int64_t>(0) : std::nullopt;
  for (std::size_t p = 0; p < parts.size() && !crossing; ++p) {
    const PartPrediction& written = stage.parts[p].predicted;
    if (!ends_early(written)) crossing = crossing_of(written, parts[p].predicted);
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const PartPrediction& written = stage.parts[p].predicted;
    const std::int64_t own = crossing_of(written, parts[p].predicted);
    const bool fits = !alone && ends_early(written) ? own >= crossing.value_or(0) : own == crossing;
    if (fits && own >= 0 && written.gradient_sync >= written.gradient_sync_exposed) continue;
    findings.add("sync-differs", at_part(stage.id, p),
                 "gradient synchronisation is " + std::to_string(written.gradient_sync.value()) + " ns, of which " +
                     std::to_string(parts[p].predicted.gradient_sync.value()) + " ns are its own");
  }
}

/// Three phases synchronise when all of them are over.
bool hides_sync(const LaunchPlan& plan) { return !plan.colocated || plan.colocated->each_microbatch(); }

// A stage's exposure is how much later than its slowest part's T the last of its synchronisations ends.
void check_sync(const LaunchPlan& plan, const Stage& stage, const std::vector<RecomputedPart>& parts,
                Findings& findings) {
  const auto time = [](const PartPrediction& p) { return sum(p.forward.value(), p.backward.value()); };
  if (!std::ranges::all_of(parts, &RecomputedPart::known)) return;  // reported already
  const bool alone = plan.pipelines.size() == 1 && parts.size() == 1 &&
                     !model::signature(plan.pipelined(), stage.first(), stage.last()).tied_elsewhere;
  check_whole_sync(stage, parts, alone, findings);
  std::int64_t slowest = 0;
  std::int64_t last = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const PartPrediction& computed = parts[p].predicted;
    const Nanoseconds whole = stage.parts[p].predicted.gradient_sync;
    slowest = std::max(slowest, time(computed));
    const Nanoseconds exposed = hides_sync(plan) ? cost::exposed_sync(whole, computed.backward) : whole;
    last = std::max(last, sum(time(computed), exposed.value()));
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::int64_t written = stage.parts[p].predicted.gradient_sync_exposed.value();
    if (written == last - slowest) continue;
    findings.add("sync-differs", at_part(stage.id, p),
                 "exposed gradient synchronisation is " + std::to_string(written) + " ns, recomputed it is " +
                     std::to_string(last - slowest) + " ns");
  }
}

/// As put_off.hpp of cost has it, of numbers that may be anything.
std::int64_t held_with_put_off(const PartPrediction& p, std::int64_t in_flight, std::int64_t put_off) {
  const std::int64_t held = p.put_off.value();
  return sum(product(std::max(p.activation.value(), held), in_flight), product(held, put_off));
}

/// Bytes of activations at their peak.
std::int64_t held_of(const LaunchPlan& plan, const Stage& stage, const PartPrediction& p, std::int64_t in_flight) {
  if (plan.zero_bubble) return held_with_put_off(p, in_flight, stage.put_off);
  if (!plan.is_interleaved()) return product(p.activation.value(), in_flight);
  const Pipeline& pipeline = at(plan.pipelines, stage.pipeline);
  return interleaved_activations(p, pipeline.microbatches, plan.group, in_flight - 1);
}

void check_memory(const LaunchPlan& plan, const Stage& stage, const Part& part, RecomputedPart& recomputed,
                  const std::string& where, Findings& findings) {
  PartPrediction& p = recomputed.predicted;
  p.usable_memory = plan.island(part.island).device.usable();
  p.peak_memory =
      Bytes(sum(sum(p.static_memory.value(), p.transient.value()), held_of(plan, stage, p, part.predicted.in_flight)));
  if (plan.colocated) {
    recomputed.encoders = recomputed.known ? check_encoders(plan, stage, part, where, findings) : *part.encoders;
    p.peak_memory = Bytes(sum(p.peak_memory.value(), recomputed.encoders.memory().value()));
  }
  if (part.predicted.usable_memory != p.usable_memory) {
    findings.add("usable-differs", where,
                 "the GPU record leaves " + std::to_string(p.usable_memory.value()) + " bytes to a plan, not " +
                     std::to_string(part.predicted.usable_memory.value()));
  }
  if (part.predicted.peak_memory != p.peak_memory) {
    findings.add("memory-differs", where,
                 "peak memory is " + std::to_string(part.predicted.peak_memory.value()) + " bytes, recomputed it is " +
                     std::to_string(p.peak_memory.value()));
  }
  if (p.peak_memory > p.usable_memory) {
    findings.add(
        "memory-exceeded", where,
        "needs " + std::to_string(p.peak_memory.value()) + " bytes of " + std::to_string(p.usable_memory.value()));
  }
}

RecomputedPart recompute(const LaunchPlan& plan, const Stage& stage, const Part& part, const std::string& where,
                         Findings& findings) {
  RecomputedPart recomputed{false, part.predicted};
  if (!computable(plan, part)) return recomputed;
  const std::vector<model::SliceSignature> chunks = stage.signatures(plan.pipelined());
  const auto units = cost::unit_costs(plan.pipelined(), checked_shape(plan, part), part.strategy.degrees,
                                      static_cast<int>(part.samples), &plan.profiles);
  // Degrees that the stage's layers cannot run at are reported with its structure.
  if (!units) {
    const std::string why = cost::unsupported(plan.pipelined(), part.strategy.degrees, static_cast<int>(part.samples),
                                              plan.island(part.island).device.name)
                                .of(chunks);
    if (why.empty()) findings.add("cost-unsupported", where, units.error().front().message);
    return recomputed;
  }
  if (!units->unsupported.of(chunks).empty()) return recomputed;
  cost::StageCost computed;
  if (plan.is_interleaved()) {
    const cost::ChunkedCost chunked = cost::chunked_cost(*units, chunks, part.strategy.policy);
    compare_chunks(part.predicted, chunked.chunks, where, findings);
    std::ranges::transform(chunked.chunks, recomputed.predicted.chunks.begin(), [](const cost::StageCost& chunk) {
      return ChunkPrediction{chunk.forward, chunk.backward, chunk.activation};
    });
    computed = chunked.all;
  } else {
    computed = cost::stage_cost(*units, chunks.front(), part.strategy.policy);
  }
  compare_costs(part.predicted, computed, where, findings);
  if (plan.zero_bubble) recompute_put_off(plan, stage, *units, where, recomputed.predicted, findings);
  recomputed.known = true;
  PartPrediction& p = recomputed.predicted;
  p.forward = computed.forward;
  p.backward = computed.backward;
  p.gradient_sync = computed.gradient_sync;
  recomputed.gradient_volume = computed.gradient_volume;
  p.optimizer_step = computed.optimizer_step;
  p.static_memory = computed.static_memory();
  p.transient = computed.transient;
  p.activation = computed.activation;
  return recomputed;
}

void check_boundary(const LaunchPlan& plan, const Boundary& boundary, Findings& findings) {
  const Stage& from = plan.stage(boundary.from);
  const Stage& to = plan.stage(boundary.to);
  if (from.first_cut() >= plan.pipelined().block_count()) return;
  const Part& source = at(from.parts, boundary.source_part);
  const Part& target = at(to.parts, boundary.target_part);
  const std::int64_t microbatch = at(plan.pipelines, from.pipeline).microbatch;
  const Bytes bytes(product(model::cut_bytes(plan.pipelined(), from.first_cut()), microbatch));
  const auto price = cost::boundary_cost(bytes, boundary.link, source.members, source.strategy.degrees.gpus(),
                                         target.members, target.strategy.degrees.gpus());
  if (boundary.latency != price.latency) {
    findings.add("boundary-latency", at_boundary(boundary),
                 "latency is " + std::to_string(boundary.latency.value()) + " ns, the link gives " +
                     std::to_string(price.latency.value()));
  }
  if (boundary.occupancy != price.occupancy) {
    findings.add("boundary-occupancy", at_boundary(boundary),
                 "occupancy is " + std::to_string(boundary.occupancy.value()) + " ns, the link gives " +
                     std::to_string(price.occupancy.value()));
  }
}

}  // namespace

Recomputed check_costs(const LaunchPlan& plan, Findings& findings) {
  Recomputed recomputed;
  for (const auto& stage : plan.stages) {
    auto& parts = recomputed.emplace_back();
    for (std::size_t p = 0; p < stage.parts.size(); ++p) {
      const std::string where = at_part(stage.id, p);
      parts.push_back(recompute(plan, stage, stage.parts[p], where, findings));
      check_memory(plan, stage, stage.parts[p], parts.back(), where, findings);
    }
    check_sync(plan, stage, parts, findings);
  }
  for (const auto& boundary : plan.boundaries) check_boundary(plan, boundary, findings);
  return recomputed;
}

}  // namespace tangram::plan
