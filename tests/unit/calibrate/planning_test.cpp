// Planning, measuring, planning again: on a fleet with a GPU type that is slower than its record says, the second plan
// gives it less to do, and keeps its promise better.
#include <cmath>

#include "fixtures.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/plan/gpu_places.hpp"
#include "tangram/planner/plan.hpp"
#include "tangram/simulate/simulate.hpp"
#include "unit/planner/inputs.hpp"

using namespace tangram;
using namespace tangram::calibrate;
using namespace tangram::calibrate::fixtures;
using namespace tangram::planner::tests;

namespace {

constexpr double kSlower = 1.2;

/// What the GPU of that record is in truth.
cluster::GpuType in_truth(cluster::GpuType gpu) {
  if (gpu.name != "Small") return gpu;
  for (FlopsPerSecond& peak : gpu.peak) peak = FlopsPerSecond(peak.value() / kSlower);
  gpu.memory_bandwidth = BytesPerSecond(gpu.memory_bandwidth.value() / kSlower);
  for (Nanoseconds* overhead : {&gpu.compute.kernel_launch, &gpu.compute.host_issue}) {
    *overhead = Nanoseconds(std::llround(overhead->as_double() * kSlower));
  }
  return gpu;
}

cost::UnitCosts true_costs(const plan::LaunchPlan& plan, const plan::Part& part) {
  cluster::DeviceShape shape = plan::shape_of(plan, part);
  shape.device = in_truth(shape.device);
  auto units = cost::unit_costs(plan.model, shape, part.strategy.degrees, static_cast<int>(part.samples));
  REQUIRE(units);
  return *std::move(units);
}

/// What an iteration takes when the plan runs.
double true_iteration(plan::LaunchPlan plan) {
  for (plan::Stage& stage : plan.stages) {
    for (plan::Part& part : stage.parts) {
      const cost::StageCost cost =
          cost::stage_cost(true_costs(plan, part), stage.signatures(plan.model).front(), part.strategy.policy);
      part.predicted.forward = cost.forward;
      part.predicted.backward = cost.backward;
    }
  }
  return to_seconds(simulate::simulate(simulate::schedule_of(plan)).iteration);
}

void add_rows(const plan::LaunchPlan& plan, const plan::Stage& stage, const plan::Part& part, Lines& lines) {
  const cost::UnitCosts units = true_costs(plan, part);
  const auto add = [&](cost::ProfileKind kind, const std::string& type, const cost::UnitCost& unit) {
    if (unit.backward <= 0) return;  // runtimes time what has both passes
    for (int step = 0; step < 5; ++step) {
      const double warm_up = step < 2 ? 3 : 1;
      for (int i = 0; i < part.strategy.degrees.gpus(); ++i) {
        TimingLine line;
        line.step = step;
        line.rank = part.first_rank + i;
        line.gpu = plan.island(part.island).device.name;
        line.kind = kind;
        line.type = type;
        line.degrees = part.strategy.degrees;
        line.samples = part.samples_per_replica();
        line.forward = warm_up * unit.forward;
        line.backward = warm_up * unit.backward;
        lines.add(line);
      }
    }
  };
  const model::SliceSignature slice = stage.signatures(plan.model).front();
  for (const auto& [type, count] : slice.runs) {
    add(cost::ProfileKind::kBlock, at(plan.model.types, type).name, at(units.blocks, type));
  }
  if (slice.embedding) add(cost::ProfileKind::kEmbedding, "", units.embedding);
  if (slice.head) add(cost::ProfileKind::kHead, "", units.head);
}

/// What a run of the plan measures.
Timings measured(const plan::LaunchPlan& plan) {
  Lines lines(timings_header(plan.model, true, plan.plan_id));
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) add_rows(plan, stage, part, lines);
  }
  auto timings = read_timings({lines.file()}, cluster::catalogue(), &plan);
  if (!timings) FAIL(render(timings.error()));
  return *std::move(timings);
}

int layers_on(const std::string& gpu, const plan::LaunchPlan& plan) {
  int layers = 0;
  for (const plan::Stage& stage : plan.stages) {
    if (plan.island(stage.parts.front().island).device.name == gpu) layers += stage.block_count();
  }
  return layers;
}

plan::LaunchPlan planned(const cost::ProfileSet* profiles, const model::Model& model = mini_model()) {
  const cluster::Fleet fleet = tiny_fleet();
  planner::PlanOptions options = planner::usual_options(fleet, model);
  options.search.profiles = profiles;
  auto made = planner::make_plan(fleet, model, options);
  if (!made) FAIL(render(made.error()));
  (void)plan::write_plan(made->plan);
  return std::move(made->plan);
}

double promise_error(const plan::LaunchPlan& plan) {
  return std::abs(to_seconds(plan.predicted.iteration) / true_iteration(plan) - 1);
}

}  // namespace

TEST_CASE("calibration: a GPU type that is slower than its record gets fewer layers of the next plan") {
  const plan::LaunchPlan first = planned(nullptr);
  REQUIRE(layers_on("Small", first) > 0);
  CHECK(promise_error(first) > 0.02);

  const Calibration calibration = calibrated(measured(first), 2, true);
  cost::ProfileSet profiles;
  for (const cost::Profile& profile : calibration.profiles) profiles.add(profile);
  for (const CalibratedRow& row : calibration.rows) {
    INFO(row.device.name);
    CHECK(std::abs(row.ratio() - (row.device.name == "Small" ? kSlower : 1)) < 0.05);
  }

  const plan::LaunchPlan second = planned(&profiles);
  CHECK(layers_on("Small", second) < layers_on("Small", first));
  CHECK(promise_error(second) < promise_error(first));
  CHECK(promise_error(second) < 0.01);
  CHECK(true_iteration(second) < true_iteration(first));
}

TEST_CASE("calibration: timings of frozen weights with adapters say what the model takes where it is trained in full") {
  model::Model adapted = mini_model();
  set_adapters(adapted, {8, 8, {}});
  const plan::LaunchPlan first = planned(nullptr, adapted);
  const Calibration calibration = calibrated(measured(first), 2, true);
  cost::ProfileSet profiles;
  for (const cost::Profile& profile : calibration.profiles) profiles.add(profile);
  bool heads = false;
  for (const CalibratedRow& row : calibration.rows) {
    INFO(row.device.name << ' ' << row.type);
    CHECK(std::abs(row.ratio() - (row.device.name == "Small" ? kSlower : 1)) < 0.05);
    heads = heads || row.unit.kind == cost::ProfileKind::kHead;
  }
  CHECK(heads);
  CHECK(promise_error(planned(&profiles, adapted)) < 0.01);  // of the same model
  CHECK(promise_error(planned(&profiles)) < 0.03);           // of all of it, trained
}
