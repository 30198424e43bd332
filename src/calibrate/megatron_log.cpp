// A stage's passes in a log, shared out among its units. Megatron-LM's timer forward-compute runs over the forward
// passes of all microbatches and model chunks, batch-generator inside it; backward-compute holds recompute. Both wait
// for the device, so that exchanges inside the stage are in them, those between stages are not
// (megatron/core/pipeline_parallel/schedules.py). With the model's times m of units u, and M microbatches:
//
//   forward(u)  = m_forward(u)  * (forward-compute - batch-generator) / M / stage's m_forward
//   backward(u) = m_backward(u) * backward-compute / M / stage's m_backward, recompute included
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "megatron_timers.hpp"
#include "modelled.hpp"
#include "tangram/base/at.hpp"
#include "tangram/calibrate/timings.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/plan/gpu_places.hpp"
#include "tangram/plan/launch_order.hpp"

namespace tangram::calibrate {
namespace {

/// A stage's part, as the model has it.
struct ModelledPart {
  double forward = 0;              ///< seconds of one microbatch
  double backward = 0;             ///< recompute included
  std::vector<std::size_t> units;  ///< indices in Timings::units
};

cost::StageCost stage_cost_of(const plan::LaunchPlan& plan, const plan::Stage& stage, const plan::Part& part,
                              const cost::UnitCosts& units) {
  const auto chunks = stage.signatures(plan.pipelined());
  if (chunks.size() == 1) return cost::stage_cost(units, chunks.front(), part.strategy.policy);
  return cost::chunked_cost(units, chunks, part.strategy.policy).all;
}

class LogShares {
 public:
  explicit LogShares(const plan::LaunchPlan& plan) : plan_(plan), order_(plan::stage_order(plan)) {}

  void read(const profiles::SourceFile& file) {
    auto entries = read_timers(file);
    if (!entries) {
      mistakes_.insert(mistakes_.end(), entries.error().begin(), entries.error().end());
      return;
    }
    for (const TimerEntry& entry : *entries) {
      if (auto wrong = complaint(entry, file.path)) {
        mistakes_.push_back(std::move(*wrong));
        return;
      }
    }
    Run run;
    run.plan = plan_.plan_id;
    run.source = fmt::format(
        "Megatron-LM's forward-compute and backward-compute, plan {}; times of stages shared out among their units as "
        "the cost model predicts",
        plan_.plan_id);
    run.date = entries->back().date;
    timings_.runs.push_back(std::move(run));
    for (const TimerEntry& entry : *entries) add(entry);
  }

  Expected<Timings> finished() && {
    if (!mistakes_.empty()) return fail(std::move(mistakes_));
    return std::move(timings_);
  }

 private:
  [[nodiscard]] std::optional<Diagnostic> complaint(const TimerEntry& entry, const std::string& file) const {
    const auto wrong = [&](std::string code, std::string message, std::string hint) {
      Diagnostic diagnostic;
      diagnostic.code = std::move(code);
      diagnostic.where = {file, entry.line, 1};
      diagnostic.message = std::move(message);
      diagnostic.hint = std::move(hint);
      return diagnostic;
    };
    const auto ranks = static_cast<int>(plan_.ranks.size());
    if (entry.by_rank && std::max(entry.forward.rbegin()->first, entry.backward.rbegin()->first) >= ranks) {
      return wrong("other-plan",
                   fmt::format("times of rank {}, where the plan has {} ranks", entry.forward.rbegin()->first, ranks),
                   "--plan is the plan that ran");
    }
    if (!entry.by_rank && (plan_.stages.size() > 1 || plan_.stages.front().parts.size() > 1)) {
      return wrong("no-ranks", "the least and the most of all ranks do not say which stage they are of",
                   "train with --timing-log-option all");
    }
    const std::int64_t batch = plan_.model.job.global_batch;
    if (entry.global_batch > 0 && entry.global_batch != batch) {
      return wrong("other-batch",
                   fmt::format("a global batch of {} samples, where the plan has {}", entry.global_batch, batch),
                   "--plan is the plan that ran; leave out the part of the log in which the batch ramps up");
    }
    return std::nullopt;
  }

  void add(const TimerEntry& entry) {
    for (const auto& [rank, forward] : entry.forward) {
      const auto backward = entry.backward.find(rank);
      if (backward == entry.backward.end()) continue;
      const auto batch = entry.batch.find(rank);
      const double fetching = batch == entry.batch.end() ? 0 : batch->second;
      if (forward > fetching) add(entry, rank, {forward - fetching, backward->second});
    }
  }

  struct Milliseconds {
    double forward = 0;
    double backward = 0;
  };

  void add(const TimerEntry& entry, int log_rank, const Milliseconds& iteration) {
    const plan::Rank& rank = at(plan_.ranks, at(order_.plan_rank, log_rank));
    const plan::Stage& stage = plan_.stage(rank.stage);
    const plan::Part& part = at(stage.parts, rank.part);
    const cost::Degrees& degrees = part.strategy.degrees;
    const std::int64_t samples =
        degrees.samples_before(rank.dp + 1, part.samples) - degrees.samples_before(rank.dp, part.samples);
    if (samples != part.samples_per_replica()) return;  // of an uneven share the fullest replicas tell
    const ModelledPart& whole = part_of(stage, rank.part);
    const double microbatches = 1e3 * static_cast<double>(at(plan_.pipelines, stage.pipeline).microbatches);
    Observation observation;
    observation.run = static_cast<int>(timings_.runs.size()) - 1;
    observation.step = entry.first;
    observation.rank = rank.rank;
    for (const std::size_t index : whole.units) {
      TimedUnit& unit = timings_.units[index];
      observation.forward = unit.modelled.forward * iteration.forward / microbatches / whole.forward;
      observation.backward = unit.modelled.backward * iteration.backward / microbatches / whole.backward;
      unit.observations.push_back(observation);
    }
  }

  const ModelledPart& part_of(const plan::Stage& stage, int part) {
    const auto key = std::pair(stage.id, part);
    if (const auto known = parts_.find(key); known != parts_.end()) return known->second;
    return parts_.emplace(key, made(stage, at(stage.parts, part))).first->second;
  }

  ModelledPart made(const plan::Stage& stage, const plan::Part& part) {
    const cluster::DeviceShape shape = plan::shape_of(plan_, part);
    const auto units =
        cost::unit_costs(plan_.pipelined(), shape, part.strategy.degrees, static_cast<int>(part.samples), nullptr);
    ModelledPart whole;
    // A plan that check refuses: nothing is shared out.
    if (!units || !units->unsupported.of(stage.signatures(plan_.pipelined())).empty()) return whole;
    const cost::StageCost cost = stage_cost_of(plan_, stage, part, *units);
    whole.forward = to_seconds(cost.forward);
    whole.backward = to_seconds(cost.backward);
    const model::Model& model = plan_.pipelined();
    std::set<int> types;
    for (const int block : stage.blocks()) types.insert(at(model.blocks, block));
    for (const int type : types) {
      const model::BlockType& block = at(model.types, type);
      whole.units.push_back(index_of(part, shape, block_of(block, model.job, shape.device), block.name));
    }
    for (const auto& [has, kind] :
         {std::pair(stage.embedding, cost::ProfileKind::kEmbedding), std::pair(stage.head, cost::ProfileKind::kHead)}) {
      if (has) whole.units.push_back(index_of(part, shape, edge_of(kind, model, shape.device), ""));
    }
    return whole;
  }

  std::size_t index_of(const plan::Part& part, const cluster::DeviceShape& shape, cost::ProfileUnit what,
                       const std::string& type) {
    TimedUnit unit;
    unit.device = shape.device;
    unit.unit = std::move(what);
    unit.type = type;
    unit.degrees = part.strategy.degrees;
    unit.degrees.dp = 1;
    unit.samples = part.samples_per_replica();
    unit.includes_tp_communication = true;
    const auto same = std::ranges::find_if(timings_.units, [&](const TimedUnit& other) {
      return other.device.name == unit.device.name && other.unit == unit.unit && other.degrees == unit.degrees &&
             other.samples == unit.samples;
    });
    if (same != timings_.units.end()) return static_cast<std::size_t>(same - timings_.units.begin());
    unit.modelled = modelled(plan_.model, unit, part.strategy.degrees, shape);
    const plan::PlanIsland& island = plan_.island(part.island);
    unit.elsewhere = modelled_elsewhere(plan_.model, unit, [&](int gpus) { return island_shape(island, gpus); });
    timings_.units.push_back(std::move(unit));
    return timings_.units.size() - 1;
  }

  const plan::LaunchPlan& plan_;
  plan::LaunchOrder order_;
  std::map<std::pair<int, int>, ModelledPart> parts_;  ///< by stage and part
  Timings timings_;
  Diagnostics mistakes_;
};

}  // namespace

Expected<Timings> read_megatron_log(const std::vector<profiles::SourceFile>& files, const plan::LaunchPlan& plan) {
  LogShares shares(plan);
  for (const profiles::SourceFile& file : files) shares.read(file);
  return std::move(shares).finished();
}

}  // namespace tangram::calibrate
