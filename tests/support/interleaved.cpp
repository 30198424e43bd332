#include "support/interleaved.hpp"

#include <algorithm>
#include <stdexcept>

#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/plan/gpu_places.hpp"

namespace tangram::test {

namespace {

class Dealer {
 public:
  Dealer(plan::LaunchPlan& plan, std::size_t chunks) : plan_(plan), chunks_(chunks) {}

  void deal(const plan::Pipeline& pipeline) {
    const auto places = static_cast<int>(pipeline.stages.size() * chunks_);
    const int blocks = plan_.model.block_count();
    int first = 0;
    for (int place = 0; place < places; ++place) {
      const auto stages = static_cast<int>(pipeline.stages.size());
      plan::Stage& stage =
          plan_.stages[static_cast<std::size_t>(pipeline.stages[static_cast<std::size_t>(place % stages)])];
      if (place < stages) stage.chunks.clear();
      const int last = first + blocks / places + (place < blocks % places ? 1 : 0);
      stage.chunks.push_back({first, last});
      first = last;
    }
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) price(pipeline, s);
    close(pipeline);
  }

 private:
  void price(const plan::Pipeline& pipeline, std::size_t index) {
    plan::Stage& stage = plan_.stages[static_cast<std::size_t>(pipeline.stages[index])];
    const auto after = static_cast<std::int64_t>(pipeline.stages.size() - 1 - index);
    const auto chunks = static_cast<std::int64_t>(chunks_);
    stage.warmup = std::min(2 * after + (chunks - 1) * plan_.group, pipeline.microbatches * chunks - 1);
    for (plan::Part& part : stage.parts) {
      const auto units = cost::unit_costs(plan_.model, plan::shape_of(plan_, part), part.strategy.degrees,
                                          static_cast<int>(part.samples), &plan_.profiles);
      if (!units) throw std::runtime_error(render(units.error()));
      const cost::ChunkedCost cost = cost::chunked_cost(*units, stage.signatures(plan_.model), part.strategy.policy);
      plan::PartPrediction& p = part.predicted;
      p.forward = cost.all.forward;
      p.backward = cost.all.backward;
      p.gradient_sync = cost.all.gradient_sync;
      p.gradient_sync_exposed = cost::exposed_sync(p.gradient_sync, p.backward);
      p.optimizer_step = cost.all.optimizer_step;
      p.static_memory = cost.all.static_memory();
      p.transient = cost.all.transient;
      p.activation = cost.all.activation;
      p.provenance = cost.all.provenance;
      p.in_flight = stage.warmup + 1;
      p.chunks.clear();
      for (const cost::StageCost& chunk : cost.chunks) {
        p.chunks.push_back({chunk.forward, chunk.backward, chunk.activation});
      }
      p.peak_memory =
          p.static_memory + p.transient + Bytes(held_at_peak(p, pipeline.microbatches, plan_.group, stage.warmup));
    }
  }

  /// The way from the last stage to the first.
  void close(const plan::Pipeline& pipeline) {
    const plan::Stage& from = plan_.stage(pipeline.stages.back());
    const plan::Stage& to = plan_.stage(pipeline.stages.front());
    const Bytes bytes(model::cut_bytes(plan_.model, from.first_cut()));
    const plan::Part& source = from.parts.front();
    const plan::Part& target = to.parts.front();
    plan::Boundary round;
    round.from = from.id;
    round.to = to.id;
    round.link = plan_.boundaries.front().link;
    for (const plan::Boundary& boundary : plan_.boundaries) {
      if (boundary.link.bandwidth < round.link.bandwidth) round.link = boundary.link;
    }
    const auto price =
        cost::boundary_cost(bytes * pipeline.microbatch, round.link, source.members, source.strategy.degrees.gpus(),
                            target.members, target.strategy.degrees.gpus());
    round.latency = price.latency;
    round.occupancy = price.occupancy;
    round.transfers = plan::boundary_transfers(from, to, plan_.model.block(from.first_cut() - 1).tokens, bytes);
    round.mode = plan::boundary_mode(round.transfers);
    plan_.boundaries.push_back(std::move(round));
  }

  plan::LaunchPlan& plan_;
  std::size_t chunks_;
};

}  // namespace

std::int64_t held_at_peak(const plan::PartPrediction& part, std::int64_t microbatches, std::int64_t group,
                          std::int64_t warmup) {
  const std::size_t chunks = part.chunks.size();
  std::vector<std::size_t> table;
  for (std::int64_t first = 0; first < microbatches; first += group) {
    for (std::size_t c = 0; c < chunks; ++c) {
      table.insert(table.end(), static_cast<std::size_t>(std::min(group, microbatches - first)), c);
    }
  }
  std::int64_t held = 0;
  std::int64_t peak = 0;
  for (std::size_t forward = 0; forward < table.size(); ++forward) {
    held += part.chunks[table[forward]].activation.value();
    peak = std::max(peak, held);
    if (static_cast<std::int64_t>(forward) < warmup) continue;
    const std::size_t backward = forward - static_cast<std::size_t>(warmup);
    held -= part.chunks[chunks - 1 - table[backward]].activation.value();
  }
  return peak;
}

plan::LaunchPlan interleaved(plan::LaunchPlan plan, std::size_t chunks, std::int64_t group) {
  plan.runtime = runtime::Target::kMegatron;
  plan.group = group;
  plan.plan_id.clear();
  plan.provenance = {};
  Dealer dealer(plan, chunks);
  for (const plan::Pipeline& pipeline : plan.pipelines) dealer.deal(pipeline);
  plan.predicted.iteration = Nanoseconds(0);
  plan.predicted.closed_form = plan::check(plan).closed_form;
  plan.predicted.iteration = plan.predicted.closed_form;
  plan.targets = plan::target_verdicts(plan);
  return plan;
}

}  // namespace tangram::test
