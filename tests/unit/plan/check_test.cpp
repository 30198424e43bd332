// The judge accepts good plans, and catches every fault that is planted in one.
#include <algorithm>
#include <functional>
#include <limits>

#include "support/catch.hpp"
#include "tangram/plan/check.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::plan;
using namespace tangram::plan::example;

namespace {

std::string listing(const CheckReport& report) {
  std::string text;
  for (const auto& v : report.violations) text += v.code + " at " + v.where + ": " + v.message + "\n";
  return text;
}

bool has(const CheckReport& report, const std::string& code) {
  return std::ranges::any_of(report.violations, [&](const Violation& v) { return v.code == code; });
}

struct Fault {
  std::string code;
  std::string what;
  std::function<void(LaunchPlan&)> plant;
};

Part& part(LaunchPlan& plan, std::size_t stage, std::size_t index = 0) { return plan.stages[stage].parts[index]; }
PartPrediction& predicted(LaunchPlan& plan, std::size_t stage, std::size_t index = 0) {
  return part(plan, stage, index).predicted;
}
Transfer& transfer(LaunchPlan& plan, std::size_t index) { return plan.boundaries[0].transfers[index]; }

/// Bounds with the gaps that they give.
void set_bounds(LaunchPlan& plan, Nanoseconds search, Nanoseconds relaxed) {
  const auto gap = [&](Nanoseconds bound) {
    return std::max(0.0, plan.predicted.closed_form.as_double() / bound.as_double() - 1);
  };
  plan.provenance.search_bound = search;
  plan.provenance.relaxed_bound = relaxed;
  plan.provenance.search_gap = gap(search);
  plan.provenance.relaxed_gap = gap(relaxed);
}

// Stage 0: ranks 0-7 of a0; stage 1: 8-15 of b0, b1; stage 2: 16-19 of a1 and 20 of b3.
const std::vector<Fault>& faults() {
  static const std::vector<Fault> list{
      {"bad-reference", "an island that is not there", [](LaunchPlan& p) { part(p, 0).island = 9; }},
      {"bad-reference", "ranks beyond the end", [](LaunchPlan& p) { part(p, 2).first_rank = 20; }},
      {"bad-reference", "ids out of order", [](LaunchPlan& p) { std::swap(p.stages[0], p.stages[1]); }},
      {"bad-reference", "a rank's number", [](LaunchPlan& p) { p.ranks[4].rank = 5; }},
      {"bad-reference", "degrees of nothing", [](LaunchPlan& p) { part(p, 0).strategy.degrees.cp = 0; }},
      {"bad-reference", "blocks beyond the model", [](LaunchPlan& p) { p.stages[2].chunks.front().last = 9; }},
      {"bad-reference", "a transfer to nowhere", [](LaunchPlan& p) { transfer(p, 0).dst = 99; }},
      {"bad-reference", "a price of no part", [](LaunchPlan& p) { p.boundaries[1].target_part = 2; }},
      {"blocks-not-covered", "a gap between stages", [](LaunchPlan& p) { p.stages[1].chunks.front().first = 4; }},
      {"blocks-not-covered", "an overlap of stages", [](LaunchPlan& p) { p.stages[1].chunks.front().first = 2; }},
      {"blocks-not-covered", "a missing end", [](LaunchPlan& p) { p.stages[2].chunks.front().last = 7; }},
      {"embedding-misplaced", "no embedding", [](LaunchPlan& p) { p.stages[0].embedding = false; }},
      {"head-misplaced", "two heads", [](LaunchPlan& p) { p.stages[1].head = true; }},
      {"stage-pipeline", "stages out of order", [](LaunchPlan& p) { p.pipelines[0].stages = {0, 1, 1}; }},
      {"batch-sum", "a lost sample", [](LaunchPlan& p) { p.pipelines[0].samples = 31; }},
      {"batch-microbatches", "a lost microbatch", [](LaunchPlan& p) { p.pipelines[0].microbatches = 7; }},
      {"samples-sum", "a part too eager", [](LaunchPlan& p) { part(p, 2, 1).samples = 2; }},
      {"samples-dp", "samples that do not split", [](LaunchPlan& p) { part(p, 0).samples = 3; }},
      {"batch-microbatches", "a microbatch without samples", [](LaunchPlan& p) { p.pipelines[0].microbatches = 9; }},
      {"bad-reference", "groups of nothing", [](LaunchPlan& p) { part(p, 0).strategy.degrees.dp_replicate = 0; }},
      {"degrees-invalid", "groups that do not divide dp",
       [](LaunchPlan& p) { part(p, 1).strategy.degrees.dp_replicate = 3; }},
      {"degrees-invalid", "groups without ZeRO",
       [](LaunchPlan& p) {
         part(p, 1).strategy.policy.zero = 0;
         part(p, 1).strategy.degrees.dp_replicate = 2;
       }},
      {"sharding-group", "ZeRO over more ranks than the job wants",
       [](LaunchPlan& p) {
         part(p, 1).strategy.policy.zero = 1;
         p.model.job.sharding_group = {model::ShardingGroup::Kind::kRanks, 1};
       }},
      {"degrees-invalid", "experts on no grid", [](LaunchPlan& p) { part(p, 1).strategy.degrees.ep = 3; }},
      {"degrees-invalid", "sequence parallelism alone",
       [](LaunchPlan& p) { part(p, 2, 1).strategy.degrees.sequence_parallel = true; }},
      {"recompute-layers", "more layers than there are",
       [](LaunchPlan& p) { part(p, 0).strategy.policy = {0, cost::RecomputeMode::kFull, 4}; }},
      {"block-runs", "a block that nothing is said of",
       [](LaunchPlan& p) { part(p, 0).strategy.policy.runs = {{1, {3}}, {1, {0}}}; }},
      {"block-runs", "recompute told twice",
       [](LaunchPlan& p) {
         part(p, 0).strategy.policy = {0, cost::RecomputeMode::kSelective, 0};
         part(p, 0).strategy.policy.runs = {{1, {3}}, {2, {0}}};
       }},
      {"technique-forbidden", "a mixture with a forbidden mode",
       [](LaunchPlan& p) {
         p.model.job.allow.recompute_full = false;
         part(p, 0).strategy.policy.runs = {{1, {0, cost::RecomputeMode::kFull}}, {2, {3}}};
       }},
      {"technique-forbidden", "a forbidden degree", [](LaunchPlan& p) { p.model.job.allow.cp = false; }},
      {"technique-forbidden", "a forbidden mixed stage", [](LaunchPlan& p) { p.model.job.allow.mixed_stages = false; }},
      {"microbatch-fixed", "another microbatch", [](LaunchPlan& p) { p.model.job.microbatch = 2; }},
      {"ranks-overlap", "a part on another's ranks", [](LaunchPlan& p) { part(p, 1).first_rank = 7; }},
      {"ranks-gap", "a rank nobody uses", [](LaunchPlan& p) { part(p, 0).strategy.degrees = {1, 1, 4, 1, 1, false}; }},
      {"rank-placement", "a rank that runs another stage", [](LaunchPlan& p) { p.ranks[3].stage = 1; }},
      {"rank-coordinates", "a wrong tp", [](LaunchPlan& p) { p.ranks[3].tp = 0; }},
      {"rank-coordinates", "a wrong ep", [](LaunchPlan& p) { p.ranks[13].ep = 1; }},
      {"rank-island", "a rank on another class", [](LaunchPlan& p) { p.ranks[3].island = 1; }},
      {"gpu-shared", "two ranks on a GPU", [](LaunchPlan& p) { p.ranks[3].gpu = 2; }},
      {"gpu-not-in-island", "a GPU of nobody", [](LaunchPlan& p) { p.ranks[3].gpu = 9; }},
      {"gpu-unused", "a GPU listed in vain", [](LaunchPlan& p) { p.islands[2].nodes[0].gpus.push_back(5); }},
      {"islands-overlap", "a GPU in two islands", [](LaunchPlan& p) { p.islands[2].nodes.push_back({"a0", {0}}); }},
      {"local-rank", "a wrong local rank", [](LaunchPlan& p) { p.ranks[20].local_rank = 4; }},
      {"shape-invalid", "too many members", [](LaunchPlan& p) { part(p, 0).members = 2; }},
      {"member-split", "a member on two hosts", [](LaunchPlan& p) { std::swap(p.ranks[9].host, p.ranks[13].host); }},
      {"idle-count", "a GPU gone missing", [](LaunchPlan& p) { p.idle[0].gpus -= 1; }},
      {"boundary-missing", "no boundary", [](LaunchPlan& p) { p.boundaries.pop_back(); }},
      {"boundary-extra", "a boundary twice", [](LaunchPlan& p) { p.boundaries.push_back(p.boundaries[0]); }},
      {"boundary-extra", "a boundary backwards",
       [](LaunchPlan& p) { std::swap(p.boundaries[0].from, p.boundaries[0].to); }},
      {"boundary-mode", "a wrong mode", [](LaunchPlan& p) { p.boundaries[0].mode = BoundaryMode::kEqual; }},
      {"boundary-latency", "a faster link", [](LaunchPlan& p) { p.boundaries[0].link.latency -= Nanoseconds(1); }},
      {"boundary-occupancy", "a shorter transfer", [](LaunchPlan& p) { p.boundaries[0].occupancy -= Nanoseconds(1); }},
      {"transfer-missing", "a lost transfer", [](LaunchPlan& p) { p.boundaries[0].transfers.pop_back(); }},
      {"transfer-missing", "a shortened transfer", [](LaunchPlan& p) { transfer(p, 0).seq_last -= 1; }},
      {"transfer-duplicate", "a doubled transfer",
       [](LaunchPlan& p) { p.boundaries[0].transfers.push_back(transfer(p, 0)); }},
      {"transfer-owner", "a sender that has it not", [](LaunchPlan& p) { transfer(p, 0).src = 1; }},
      {"transfer-target", "a receiver that needs it not", [](LaunchPlan& p) { transfer(p, 0).dst = 9; }},
      {"transfer-rank", "a transfer inside a stage", [](LaunchPlan& p) { transfer(p, 0).dst = 1; }},
      {"transfer-empty", "a transfer of nothing",
       [](LaunchPlan& p) { transfer(p, 0).sample_last = transfer(p, 0).sample_first; }},
      {"transfer-bytes", "a byte too few", [](LaunchPlan& p) { transfer(p, 0).bytes -= Bytes(1); }},
      {"cost-differs", "a faster forward", [](LaunchPlan& p) { predicted(p, 0).forward -= Nanoseconds(1); }},
      {"cost-differs", "a slower backward", [](LaunchPlan& p) { predicted(p, 1).backward += Nanoseconds(1); }},
      {"sync-differs", "a cheaper sync",
       [](LaunchPlan& p) { predicted(p, 1).gradient_sync = predicted(p, 1).gradient_sync_exposed - Nanoseconds(1); }},
      {"cost-differs", "a cheaper step", [](LaunchPlan& p) { predicted(p, 2, 1).optimizer_step -= Nanoseconds(1); }},
      {"cost-differs", "leaner parameters", [](LaunchPlan& p) { predicted(p, 0).static_memory -= Bytes(1); }},
      {"cost-differs", "leaner buffers", [](LaunchPlan& p) { predicted(p, 0).transient -= Bytes(1); }},
      {"cost-differs", "leaner activations", [](LaunchPlan& p) { predicted(p, 0).activation -= Bytes(1); }},
      {"cost-differs", "measured, as it says",
       [](LaunchPlan& p) { predicted(p, 0).provenance = cost::Provenance::kMeasured; }},
      {"cost-differs", "a faster GPU", [](LaunchPlan& p) { p.islands[0].device.peak[3] = FlopsPerSecond(9e14); }},
      {"cost-differs", "another ZeRO stage", [](LaunchPlan& p) { part(p, 1).strategy.policy.zero = 0; }},
      {"degrees-invalid", "degrees the model refuses",
       [](LaunchPlan& p) { p.model.types[0].attention.heads = p.model.types[0].attention.kv_heads = 5; }},
      {"sync-differs", "a hidden sync", [](LaunchPlan& p) { predicted(p, 0).gradient_sync_exposed -= Nanoseconds(1); }},
      {"usable-differs", "memory the GPU has not", [](LaunchPlan& p) { predicted(p, 0).usable_memory += Bytes(1); }},
      {"memory-differs", "a lower peak", [](LaunchPlan& p) { predicted(p, 0).peak_memory -= Bytes(1); }},
      {"memory-exceeded", "a smaller GPU",
       [](LaunchPlan& p) { p.islands[2].device.memory = p.islands[2].device.reserved + Bytes(1); }},
      {"warmup-differs", "another warm-up", [](LaunchPlan& p) { p.stages[0].warmup += 1; }},
      {"in-flight-low", "too few in flight", [](LaunchPlan& p) { predicted(p, 0).in_flight -= 1; }},
      {"in-flight-range", "more in flight than there are", [](LaunchPlan& p) { predicted(p, 0).in_flight = 9; }},
      {"in-flight-differs", "parts of two minds", [](LaunchPlan& p) { predicted(p, 2, 1).in_flight = 2; }},
      {"closed-form-differs", "a faster plan", [](LaunchPlan& p) { p.predicted.closed_form -= Nanoseconds(1); }},
      {"iteration-too-short", "an impossible iteration", [](LaunchPlan& p) { p.predicted.iteration = Nanoseconds(1); }},
      {"sync-differs", "more exposed than there is",
       [](LaunchPlan& p) { predicted(p, 0).gradient_sync = predicted(p, 0).gradient_sync_exposed - Nanoseconds(1); }},
      {"provenance-impossible", "optimal without a bound", [](LaunchPlan& p) { p.provenance.optimal = true; }},
      {"provenance-impossible", "a gap to nothing", [](LaunchPlan& p) { p.provenance.search_gap = 0.1; }},
      {"provenance-impossible", "a gap that is no number",
       [](LaunchPlan& p) { p.provenance.relaxed_gap = std::numeric_limits<double>::quiet_NaN(); }},
      {"provenance-impossible", "a bound that the plan itself refutes",
       [](LaunchPlan& p) { set_bounds(p, p.predicted.closed_form, p.predicted.closed_form + Nanoseconds(1)); }},
      {"provenance-impossible", "a bound of the space below that of everything",
       [](LaunchPlan& p) { set_bounds(p, p.predicted.closed_form / 3, p.predicted.closed_form / 2); }},
      {"provenance-impossible", "a gap that its bound does not give",
       [](LaunchPlan& p) {
         set_bounds(p, p.predicted.closed_form / 2, p.predicted.closed_form / 3);
         p.provenance.relaxed_gap = 0.5;
       }},
      {"provenance-impossible", "optimal with a gap",
       [](LaunchPlan& p) {
         set_bounds(p, p.predicted.closed_form / 2, p.predicted.closed_form / 3);
         p.provenance.optimal = true;
       }},
      {"target-differs", "another verdict", [](LaunchPlan& p) { p.targets.front().ok = !p.targets.front().ok; }},
      {"target-differs", "a verdict less", [](LaunchPlan& p) { p.targets.pop_back(); }},
      {"target-differs", "another reason", [](LaunchPlan& p) { p.targets.back().reasons.push_back({"NONE", {}, ""}); }},
      {"plan-id", "an edited file", [](LaunchPlan& p) { p.plan_id = std::string(32, '0'); }},
  };
  return list;
}

}  // namespace

TEST_CASE("a good plan passes") {
  World world = make_world();
  const LaunchPlan plan = good_plan(world);
  const CheckReport report = check(plan);
  CHECK(listing(report).empty());
  CHECK(report.ranks == 21);
  CHECK(report.stages == 3);
  CHECK(report.closed_form == plan.predicted.closed_form);
  CHECK(report.tightest_memory > 0);
  CHECK(report.tightest_memory <= 1);
}

TEST_CASE("a good plan passes after writing and reading") {
  World world = make_world();
  LaunchPlan plan = good_plan(world);
  const auto read = read_plan(write_plan(plan), "plan.json");
  REQUIRE(read);
  CHECK(listing(check(*read)).empty());
}

TEST_CASE("bounds and gaps that fit the times pass") {
  World world = make_world();
  LaunchPlan plan = good_plan(world);
  const Nanoseconds time = plan.predicted.closed_form;
  set_bounds(plan, time / 2, time / 3);
  CHECK(listing(check(plan)).empty());
  set_bounds(plan, time, time);
  plan.provenance.optimal = true;
  CHECK(listing(check(plan)).empty());
}

TEST_CASE("every planted fault is caught by its name") {
  World world = make_world();
  const LaunchPlan good = good_plan(world);
  for (const auto& fault : faults()) {
    LaunchPlan plan = good;
    fault.plant(plan);
    const CheckReport report = check(plan);
    INFO(fault.code << ": " << fault.what << "\n" << listing(report));
    CHECK(has(report, fault.code));
  }
}

TEST_CASE("what synchronises with others may take longer, never shorter, than a part alone") {
  World world = make_world();
  world.model.tied_embeddings = true;
  const auto alike = strategy(1, 1, 4);
  const std::vector<StageSpec> stages{{4, {{0, 4, 4, alike}}}, {8, {{1, 4, 4, alike}}}};
  auto composition = make_composition(world, 1, 4, 8, stages);
  // The tied table's other end is in another stage: the exposure is the composer's, at least the stage's own.
  const auto longer = Nanoseconds(1000);
  composition.stages[0].A += longer;
  composition.stages[0].crossing = longer;
  LaunchPlan plan = make_plan(world, composition);
  CHECK_FALSE(has(check(plan), "sync-differs"));
  predicted(plan, 0).gradient_sync_exposed -= longer + Nanoseconds(1);
  CHECK(has(check(plan), "sync-differs"));
}

TEST_CASE("the faster part of a mixed stage may synchronise while the slower one still works") {
  // Part 0 (class A) is faster than part 1 (class C) by more than its own exposed synchronisation: the stage then
  // shows none of it, A = T.
  World world = make_world();
  const std::vector<StageSpec> mixed{{8, {{0, 2, 2, strategy(1, 1, 2)}, {2, 1, 2, strategy(1, 1, 1)}}}};
  auto composition = make_composition(world, 1, 4, 8, mixed);
  auto& stage = composition.stages[0];
  stage.crossing = Nanoseconds(0);  // as if its parts met in no time
  const auto& fast = stage.parts[0].plan.cost;
  const auto own = cost::exposed_sync(fast.gradient_sync, fast.backward);
  REQUIRE(fast.forward + fast.backward + own < stage.T);
  composition.closed_form -= stage.A - stage.T;
  stage.A = stage.T;
  CHECK(listing(check(make_plan(world, composition))).empty());
}

TEST_CASE("faults of one kind are counted, not listed without end") {
  World world = make_world();
  LaunchPlan plan = good_plan(world);
  for (auto& rank : plan.ranks) rank.local_rank += 1;
  // 21 ranks are wrong: 8 shown, 13 counted.
  const CheckReport report = check(plan);
  CHECK(std::ranges::count(report.violations, "local-rank", &Violation::code) == 8);
  CHECK(listing(report).find("(and 13 more like this)") != std::string::npos);
}
