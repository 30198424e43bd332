// Plans whose weight gradients are put off: the judge accepts good ones, and catches every fault that is planted in
// one.
#include "tangram/plan/zero_bubble.hpp"

#include <algorithm>
#include <functional>

#include "support/catch.hpp"
#include "tangram/cost/put_off.hpp"
#include "tangram/plan/check.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::plan;
using namespace tangram::plan::example;

namespace {

std::string findings_of(const CheckReport& report) {
  std::string text;
  for (const auto& v : report.violations) text += v.code + " at " + v.where + ": " + v.message + "\n";
  return text;
}

LaunchPlan put_off_plan() {
  World world = make_world();
  LaunchPlan plan = good_plan(world);
  REQUIRE(put_off_weight_gradients(plan));
  plan.targets = target_verdicts(plan);
  return plan;
}

PartPrediction& first_predicted(LaunchPlan& plan, std::size_t stage) { return plan.stages[stage].parts[0].predicted; }

struct PutOffFault {
  std::string code;
  std::string what;
  std::function<void(LaunchPlan&)> plant;
};

const std::vector<PutOffFault>& put_off_faults() {
  static const std::vector<PutOffFault> list{
      {"schedule-unknown", "a runtime without it", [](LaunchPlan& p) { p.runtime = runtime::Target::kMegatron; }},
      {"schedules-mixed", "chunks as well", [](LaunchPlan& p) { p.group = 2; }},
      {"put-off-range", "put off under 1F1B", [](LaunchPlan& p) { p.zero_bubble = false; }},
      {"put-off-range", "more microbatches than there are", [](LaunchPlan& p) { p.stages[1].put_off = 8; }},
      {"put-off-range", "microbatches held for nothing",
       [](LaunchPlan& p) {
         first_predicted(p, 1).weight_gradient = Nanoseconds(0);
         first_predicted(p, 1).put_off = Bytes(0);
       }},
      {"put-off-range", "nothing that is put off",
       [](LaunchPlan& p) {
         for (Stage& stage : p.stages) {
           stage.put_off = 0;
           for (Part& part : stage.parts) part.predicted.weight_gradient = Nanoseconds(0);
         }
       }},
      {"put-off-range", "a negative count", [](LaunchPlan& p) { p.stages[1].put_off = -1; }},
      {"put-off-range", "more than a backward pass",
       [](LaunchPlan& p) { first_predicted(p, 1).weight_gradient = first_predicted(p, 1).backward + Nanoseconds(1); }},
      {"cost-differs", "shorter weight gradients",
       [](LaunchPlan& p) { first_predicted(p, 0).weight_gradient -= Nanoseconds(1); }},
      {"cost-differs", "leaner weight gradients", [](LaunchPlan& p) { first_predicted(p, 0).put_off -= Bytes(1); }},
      {"memory-differs", "a peak without what is put off",
       [](LaunchPlan& p) {
         PartPrediction& last = first_predicted(p, 2);
         last.peak_memory = last.static_memory + last.transient + last.activation * last.in_flight;
       }},
      {"memory-differs", "another count than the peak has", [](LaunchPlan& p) { --p.stages[2].put_off; }},
      {"technique-forbidden", "a job that forbids it", [](LaunchPlan& p) { p.model.job.allow.zero_bubble = false; }},
      {"iteration-too-short", "less than the slowest stage works",
       [](LaunchPlan& p) { p.predicted.iteration = p.predicted.closed_form / 3; }},
  };
  return list;
}

}  // namespace

TEST_CASE("a good plan of 1F1B puts its weight gradients off") {
  const LaunchPlan plan = put_off_plan();
  CHECK(findings_of(check(plan)).empty());
  CHECK(plan.schedule() == runtime::Schedule::kZeroBubble);
  for (const Stage& stage : plan.stages) {
    CHECK(stage.put_off == plan.pipelines.front().microbatches - stage.warmup - 1);  // memory is ample
    for (const Part& part : stage.parts) {
      const PartPrediction& p = part.predicted;
      CHECK(p.weight_gradient > Nanoseconds(0));
      CHECK(p.weight_gradient < p.backward);
      CHECK(p.peak_memory ==
            p.static_memory + p.transient + cost::put_off_peak(p.activation, p.put_off, p.in_flight, stage.put_off));
    }
  }
}

TEST_CASE("every fault that is planted in what is put off is found") {
  const LaunchPlan good = put_off_plan();
  for (const PutOffFault& fault : put_off_faults()) {
    LaunchPlan plan = good;
    fault.plant(plan);
    const CheckReport report = check(plan);
    INFO(fault.code << ": " << fault.what << " among\n" << findings_of(report));
    CHECK(std::ranges::any_of(report.violations, [&](const Violation& v) { return v.code == fault.code; }));
  }
}

TEST_CASE("as many weight gradients are put off as memory holds, and none of a stage where it holds none") {
  World world = make_world();
  const LaunchPlan ample = put_off_plan();
  // With room for two beyond those in flight, and of stage 1 for `lacking` bytes less than for none.
  const auto with_room = [&](Bytes lacking) {
    LaunchPlan plan = good_plan(world);
    for (Stage& stage : plan.stages) {
      const std::int64_t count = stage.id == 1 && lacking > Bytes(0) ? 0 : 2;
      for (std::size_t i = 0; i < stage.parts.size(); ++i) {
        const PartPrediction& p = at(at(ample.stages, stage.id).parts, i).predicted;
        const Bytes held = cost::put_off_peak(p.activation, p.put_off, p.in_flight, count);
        stage.parts[i].predicted.usable_memory = p.static_memory + p.transient + held;
        if (stage.id == 1) stage.parts[i].predicted.usable_memory -= lacking;
      }
    }
    return plan;
  };
  LaunchPlan two = with_room(Bytes(0));
  CHECK(put_off_weight_gradients(two));
  for (const Stage& stage : two.stages) CHECK(stage.put_off == 2);
  LaunchPlan partly = with_room(Bytes(1));
  CHECK(put_off_weight_gradients(partly));
  for (const Stage& stage : partly.stages) {
    CHECK(stage.puts_off() == (stage.id != 1));
    CHECK(stage.put_off == (stage.id == 1 ? 0 : 2));
  }
  // Its backward passes are whole, and it holds what it holds under 1F1B.
  const PartPrediction& whole = partly.stages[1].parts[0].predicted;
  CHECK(whole.peak_memory == good_plan(world).stages[1].parts[0].predicted.peak_memory);
}

TEST_CASE("what is put off can be limited stage by stage") {
  LaunchPlan plan = put_off_plan();
  const std::vector<std::int64_t> most{0, 1, 100};
  const std::int64_t last = plan.stages[2].put_off;
  limit_put_off(plan, most);
  CHECK(plan.stages[0].put_off == 0);
  CHECK(plan.stages[1].put_off == 1);
  CHECK(plan.stages[2].put_off == last);
  CHECK(findings_of(check(plan)).empty());
}

TEST_CASE("a plan whose weight gradients are put off is read as it was written") {
  LaunchPlan plan = put_off_plan();
  const std::string text = write_plan(plan);
  auto read = read_plan(text, "plan.json");
  INFO((read ? "" : render(read.error())));
  REQUIRE(read);
  CHECK(read->zero_bubble);
  CHECK(read->stages == plan.stages);
  CHECK(write_plan(*read) == text);
}

TEST_CASE("no other runtime takes weight gradients that are put off") {
  const LaunchPlan plan = put_off_plan();
  const auto refuses = [&](const char* target, const char* code) {
    const auto verdict = std::ranges::find(plan.targets, target, &TargetVerdict::target);
    return std::ranges::any_of(verdict->reasons, [&](const TargetReason& reason) { return reason.code == code; });
  };
  CHECK(refuses("megatron", "MLM_ZERO_BUBBLE"));
  CHECK(refuses("flagscale", "FS_ZERO_BUBBLE"));
  CHECK(refuses("mimo", "MIMO_ZERO_BUBBLE"));
  CHECK(std::ranges::find(plan.targets, "generic", &TargetVerdict::target)->ok);
}
