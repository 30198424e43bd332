#include "measured_look.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "options.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/scaled_rows.hpp"

namespace tangram::planner {

namespace {

/// Whether the profiles know all blocks of a part at its degrees and samples.
bool is_measured(const plan::LaunchPlan& plan, const plan::Stage& stage, const plan::Part& part,
                 const cost::ProfileSet& profiles) {
  const cluster::GpuType& device = at(plan.islands, part.island).device;
  return std::ranges::all_of(stage.blocks(), [&](int block) {
    const auto found = profiles.block(plan.model.block(block), plan.model.job, part.strategy.degrees,
                                      part.samples_per_replica(), device);
    return found && found->provenance <= cost::Provenance::kInterpolated;
  });
}

bool is_measured(const plan::LaunchPlan& plan, const cost::ProfileSet& profiles) {
  return std::ranges::all_of(plan.stages, [&](const plan::Stage& stage) {
    return std::ranges::all_of(stage.parts,
                               [&](const plan::Part& part) { return is_measured(plan, stage, part, profiles); });
  });
}

PlanOptions of_measured(PlanOptions options, const cost::ProfileSet& alone) {
  options.search.profiles = &alone;
  options.look_at_runtimes = false;
  options.choose = {};
  return options;
}

}  // namespace

bool looks_at_measured(const plan::LaunchPlan& plan, const PlanOptions& options) {
  const cost::ProfileSet* const profiles = options.search.profiles;
  if (!options.look_at_runtimes || profiles == nullptr || profiles->empty() || profiles->measured_only()) return false;
  return !is_measured(plan, *profiles);
}

std::string measured_note(const plan::LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model& model,
                          const PlanOptions& options, const compose::ProgressCallback& progress) {
  const cost::ProfileSet alone = cost::measured_alone(*options.search.profiles);
  const ForModel measured(model, of_measured(options, alone));
  const auto other = make_plan(fleet, measured.model(), measured.options(), progress);
  if (options.search.deadline.is_missed()) return {};
  const std::string_view some = "not all blocks were measured";
  if (!other) return fmt::format("{}, and there is no plan whose blocks were", some);
  const double own = to_seconds(plan.predicted.iteration);
  const double slower = to_seconds(other->plan.predicted.iteration);
  return fmt::format("{}: the best plan whose blocks were takes {:.4g} s, {:.1f} % more (--measured-only)", some,
                     slower, (slower / own - 1) * 100);
}

}  // namespace tangram::planner
