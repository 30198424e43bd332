#include "tangram/baseline/formulas.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "metis.hpp"
#include "sailor.hpp"

namespace tangram::baseline {

namespace {

/// Stages of all pipelines laid over each other.
struct Overlaid {
  std::int64_t microbatches = 0;
  std::vector<DraftStage> stages;
};

bool is_plain(const cost::Strategy& strategy) {
  return strategy.degrees.cp == 1 && strategy.degrees.ep == 1 && strategy.policy.runs.empty() &&
         strategy.policy.recompute == cost::RecomputeMode::kNone;
}

std::optional<int> kind_of(const cluster::GpuType& device, const PlannerInput& input) {
  const auto kind = std::ranges::find(input.kinds, device.name, &GpuKind::name);
  if (kind == input.kinds.end()) return std::nullopt;
  return static_cast<int>(kind - input.kinds.begin());
}

bool add_replicas(const plan::LaunchPlan& plan, const plan::Stage& stage, const PlannerInput& input, DraftStage& to) {
  return std::ranges::all_of(stage.parts, [&](const plan::Part& part) {
    const auto kind = kind_of(plan.island(part.island).device, input);
    if (!kind || !is_plain(part.strategy)) return false;
    const cost::Degrees& degrees = part.strategy.degrees;
    to.replicas.insert(to.replicas.end(), static_cast<std::size_t>(degrees.dp),
                       {*kind, degrees.tp, part.samples_per_replica()});
    return true;
  });
}

std::optional<Overlaid> overlaid(const plan::LaunchPlan& plan, const PlannerInput& input) {
  Overlaid all;
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    const bool first = all.stages.empty();
    if (first) {
      all.microbatches = pipeline.microbatches;
      all.stages.resize(pipeline.stages.size());
    }
    if (pipeline.microbatches != all.microbatches || pipeline.stages.size() != all.stages.size()) return {};
    for (std::size_t s = 0; s < all.stages.size(); ++s) {
      const plan::Stage& stage = plan.stage(pipeline.stages[s]);
      DraftStage& to = all.stages[s];
      // The embedding is the first unit, the head the last.
      const int from = stage.embedding ? 0 : stage.first() + 1;
      const int end = stage.head ? input.units() : stage.last() + 1;
      if (!first && (from != to.first || end != to.last)) return {};
      to.first = from;
      to.last = end;
      if (!add_replicas(plan, stage, input, to)) return {};
    }
  }
  return all;
}

std::optional<double> metis_claim(const Overlaid& plan, const PlannerInput& input) {
  MetisLayout layout;
  layout.batches = plan.microbatches;
  layout.costed_stages = static_cast<int>(plan.stages.size());
  std::vector<MetisStage> stages;
  std::vector<int> cuts{0};
  for (const DraftStage& stage : plan.stages) {
    const Replica& lead = stage.replicas.front();
    const auto unlike = [&](const Replica& replica) { return replica.tp != lead.tp; };
    if (std::ranges::any_of(stage.replicas, unlike)) return {};
    const bool one_kind = std::ranges::all_of(stage.replicas, [&](const Replica& replica) {
      return replica.kind == lead.kind && replica.samples == lead.samples;
    });
    stages.push_back({{static_cast<int>(stage.replicas.size()), lead.tp}, stage.replicas, one_kind, false});
    cuts.push_back(stage.last);
  }
  return Metis(input, Mode::kFaithful).cost(layout, stages, cuts);
}

std::optional<double> sailor_claim(const Overlaid& plan, const PlannerInput& input) {
  const std::int64_t samples = plan.stages.front().replicas.front().samples;
  const std::size_t dp = plan.stages.front().replicas.size();
  std::vector<SailorStage> stages;
  for (const DraftStage& stage : plan.stages) {
    if (stage.replicas.size() != dp) return {};
    SailorStage to{stage.first, stage.last, {}};
    for (const Replica& replica : stage.replicas) {
      if (replica.samples != samples) return {};
      const bool alike =
          !to.shares.empty() && to.shares.back().kind == replica.kind && to.shares.back().tp == replica.tp;
      if (!alike) to.shares.push_back({replica.kind, replica.tp, 0});
      ++to.shares.back().count;
    }
    stages.push_back(std::move(to));
  }
  return Sailor(input, Mode::kFaithful).iteration(stages, samples, static_cast<int>(dp));
}

struct Formula {
  std::string_view planner;
  std::optional<double> (*claim)(const Overlaid& plan, const PlannerInput& input);
};

constexpr std::array kFormulas{Formula{"metis", metis_claim}, Formula{"sailor", sailor_claim}};

const Formula* formula_of(std::string_view planner) {
  const auto found = std::ranges::find(kFormulas, planner, &Formula::planner);
  return found == kFormulas.end() ? nullptr : &*found;
}

}  // namespace

bool has_formula(std::string_view planner) { return formula_of(planner) != nullptr; }

std::optional<double> claim_of(std::string_view planner, const plan::LaunchPlan& plan, const PlannerInput& input) {
  if (plan.schedule() != runtime::Schedule::k1F1B) return std::nullopt;  // whose formulas they are
  const Formula* formula = formula_of(planner);
  const auto all = overlaid(plan, input);
  if (formula == nullptr || !all || all->stages.empty()) return std::nullopt;
  const auto claim = formula->claim(*all, input);
  // Infinite: at degrees or samples that were not profiled.
  return claim && std::isfinite(*claim) ? claim : std::nullopt;
}

}  // namespace tangram::baseline
