#include "price_chunks.hpp"

#include <algorithm>

#include "findings.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/plan/gpu_places.hpp"

namespace tangram::plan {

namespace {

cost::ChunkedCost cost_of(const LaunchPlan& plan, const cost::ProfileSet* profiles, const Stage& stage,
                          const Part& part) {
  const auto units = cost::unit_costs(plan.model, shape_of(plan, part), part.strategy.degrees,
                                      static_cast<int>(part.samples), profiles);
  TANGRAM_ASSERT(units.has_value());  // as blocks in a row the part has been priced
  return cost::chunked_cost(*units, stage.signatures(plan.model), part.strategy.policy);
}

void set_costs(const cost::ChunkedCost& cost, Nanoseconds crossing, PartPrediction& p) {
  p.forward = cost.all.forward;
  p.backward = cost.all.backward;
  p.gradient_sync = cost.all.gradient_sync + crossing;
  p.optimizer_step = cost.all.optimizer_step;
  p.static_memory = cost.all.static_memory();
  p.transient = cost.all.transient;
  p.activation = cost.all.activation;
  p.provenance = cost.all.provenance;
  p.chunks.clear();
  for (const cost::StageCost& chunk : cost.chunks) {
    p.chunks.push_back({chunk.forward, chunk.backward, chunk.activation});
  }
}

// How much later than its slowest part's passes the last of a stage's synchronisations ends.
void expose_sync(Stage& stage) {
  Nanoseconds slowest;
  Nanoseconds last;
  for (const Part& part : stage.parts) {
    const PartPrediction& p = part.predicted;
    slowest = std::max(slowest, p.forward + p.backward);
    last = std::max(last, p.forward + p.backward + cost::exposed_sync(p.gradient_sync, p.backward));
  }
  for (Part& part : stage.parts) {
    part.predicted.gradient_sync_exposed = last - slowest;
    part.predicted.gradient_sync = std::max(part.predicted.gradient_sync, last - slowest);
  }
}

}  // namespace

void price_chunks(const LaunchPlan& plan, const cost::ProfileSet* profiles, const Grouping& grouping,
                  Nanoseconds crossing, Stage& stage) {
  for (Part& part : stage.parts) {
    PartPrediction& p = part.predicted;
    set_costs(cost_of(plan, profiles, stage, part), crossing, p);
    const Bytes held(interleaved_activations(p, grouping.microbatches, grouping.group, stage.warmup));
    p.peak_memory = p.static_memory + p.transient + held;
  }
  expose_sync(stage);
}

}  // namespace tangram::plan
