// Plans with profiles: of measured blocks alone, and what a plan says that is not.
#include "measured_look.hpp"

#include <algorithm>
#include <random>

#include "inputs.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/scaled_rows.hpp"
#include "tangram/plan/check.hpp"

using namespace tangram;
using namespace tangram::planner;
using namespace tangram::planner::tests;

namespace {

/// A third of the usual degrees and samples of the model's first block, each 1 to 2 times as long as the model says.
cost::Profile random_profile(const cluster::GpuType& device, const model::Model& model, std::mt19937& random) {
  std::uniform_real_distribution<double> factor(1.0, 2.0);
  cost::ProfileUnit unit;
  unit.block = model.types.front();
  unit.block.name.clear();
  unit.sequence_length = unit.block.tokens;
  unit.dtype = cost::matrix_format(device, model.job.precision);
  unit.flash_attention = model.job.flash_attention;
  for (const cost::Degrees& degrees : cost::usual_degrees(model, unit)) {
    for (std::int64_t samples = 1; samples <= 64; samples *= 2) {
      if (random() % 3 != 0) continue;
      const double slower = factor(random);
      const auto time = cost::modelled_time(model, unit, samples, degrees, cost::one_host(device, degrees.gpus()));
      cost::ProfileRow row;
      row.degrees = degrees;
      row.degrees.dp = 1;
      row.samples = samples;
      row.forward = ceil_to_nanoseconds(slower * time.compute.forward);
      row.backward = ceil_to_nanoseconds(slower * time.compute.backward);
      unit.rows.push_back(row);
    }
  }
  cost::Profile profile;
  profile.device = device;
  profile.units = {unit};
  return profile;
}

cost::ProfileSet random_profiles(const cluster::Fleet& fleet, const model::Model& model, unsigned seed) {
  std::mt19937 random(seed);
  cost::ProfileSet set;
  for (const cluster::Node& node : fleet.nodes) {
    const auto known = [&](const cost::Profile& p) { return p.device == node.groups.front().device; };
    if (std::ranges::any_of(set.profiles(), known)) continue;
    set.add(random_profile(node.groups.front().device, model, random));
  }
  return set;
}

PlanOptions with_profiles(const cost::ProfileSet& profiles) {
  PlanOptions options;
  options.look_at_runtimes = true;
  options.search.profiles = &profiles;
  return options;
}

bool all_measured(const plan::LaunchPlan& plan, const cost::ProfileSet& measured) {
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) {
      const cluster::GpuType& device = at(plan.islands, part.island).device;
      const auto found = measured.block(plan.model.types.front(), plan.model.job, part.strategy.degrees,
                                        part.samples_per_replica(), device);
      if (!found) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE(
    "planner: of measured blocks alone no plan is faster than where the rest is corrected, and the note says it") {
  const cluster::Fleet fleet = tiny_fleet();
  const model::Model model = mini_model();
  int found = 0;
  int noted = 0;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    const cost::ProfileSet measured = random_profiles(fleet, model, seed);
    const cost::ProfileSet corrected = cost::with_scaled_rows(measured, model);
    const cost::ProfileSet alone = cost::measured_alone(corrected);
    CHECK(alone.profiles() == measured.profiles());

    const auto any = make_plan(fleet, model, with_profiles(corrected));
    REQUIRE(any);
    CHECK(plan::check(any->plan).ok());
    const auto best = make_plan(fleet, model, with_profiles(alone));
    const bool looked = looks_at_measured(any->plan, with_profiles(corrected));
    CHECK(looked == !all_measured(any->plan, measured));
    if (!best) continue;
    ++found;
    CHECK(plan::check(best->plan).ok());
    CHECK(all_measured(best->plan, measured));
    CHECK(best->plan.predicted.iteration.as_double() >= 0.998 * any->plan.predicted.iteration.as_double());
    CHECK_FALSE(looks_at_measured(best->plan, with_profiles(alone)));
    const auto says = [&](const plan::LaunchPlan& plan) {
      return plan.provenance.note.find("not all blocks were measured") != std::string::npos;
    };
    CHECK(says(any->plan) == looked);
    CHECK_FALSE(says(best->plan));
    noted += looked ? 1 : 0;
  }
  CHECK(found >= 20);
  CHECK(noted >= 10);
}
