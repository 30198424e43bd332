// Statements about every launch plan: what crosses a boundary, what a file keeps, what placement respects, and that
// the judge agrees with plans that were put together by others.
#include <rapidcheck.h>

#include <map>
#include <set>

#include "support/catch.hpp"
#include "tangram/plan/check.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::plan;
using namespace tangram::plan::example;

namespace {

int pick(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); }

template <class T>
T any_of(const std::vector<T>& values) {
  return values[static_cast<std::size_t>(pick(0, static_cast<int>(values.size()) - 1))];
}

/// A stage of one to three parts with any degrees that together take `samples`.
Stage random_stage(std::int64_t samples, int first_rank) {
  Stage stage;
  std::int64_t left = samples;
  const int parts = pick(1, static_cast<int>(std::min<std::int64_t>(3, samples)));
  for (int p = 0; p < parts; ++p) {
    const auto share = p + 1 == parts ? left : pick(1, static_cast<int>(left) - (parts - 1 - p));
    std::vector<int> divisors;
    for (int d = 1; d <= share; ++d) {
      if (share % d == 0) divisors.push_back(d);
    }
    Part part;
    part.samples = share;
    part.first_rank = first_rank;
    part.strategy.degrees = {pick(1, 4), pick(1, 3), any_of(divisors), 1, 1, false};
    first_rank += part.strategy.degrees.gpus();
    left -= share;
    stage.parts.push_back(part);
  }
  return stage;
}

int ranks_of(const Stage& stage) {
  int ranks = 0;
  for (const auto& part : stage.parts) ranks += part.strategy.degrees.gpus();
  return ranks;
}

/// How often each (sample, position) of a microbatch is touched, by the rank that sends or receives it.
using Touch = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<int>>;

Touch touches(const std::vector<Transfer>& transfers, int Transfer::* rank) {
  Touch touch;
  for (const auto& t : transfers) {
    for (auto sample = t.sample_first; sample < t.sample_last; ++sample) {
      for (auto position = t.seq_first; position < t.seq_last; ++position) touch[{sample, position}].push_back(t.*rank);
    }
  }
  return touch;
}

/// Stages on the example's classes, 1 to 3 of them, mixed or not; shapes and degrees that the model can run.
std::vector<StageSpec> random_stages(int microbatch) {
  const auto part = [&](int island_class, int samples) {
    const int per_member = island_class == 2 ? 2 : island_class == 1 ? 4 : 8;
    std::vector<int> sizes;
    for (int gpus = 1; gpus <= per_member; gpus *= 2) sizes.push_back(gpus);
    PartSpec spec{island_class, any_of(sizes), samples, {}};
    std::vector<cost::Strategy> strategies;
    for (int tp = 1; tp <= spec.gpus; tp *= 2) {
      for (int cp = 1; cp * tp <= spec.gpus; cp *= 2) {
        const int dp = spec.gpus / (tp * cp);
        if (samples % dp != 0) continue;
        strategies.push_back(strategy(tp, cp, dp));
        if (dp * cp > 1) strategies.push_back(strategy(tp, cp, dp, 1, 1, pick(1, 3)));
        // ep x etp may take any of the ranks; the cost model decides, so only what it surely takes.
        if (tp == 1 && cp == 1 && dp > 1) strategies.push_back(strategy(1, 1, dp, dp, 1, 1));
      }
    }
    if (strategies.empty()) {
      spec.gpus = 1;
      strategies.push_back(strategy(1, 1, 1));
    }
    spec.strategy = any_of(strategies);
    return spec;
  };
  std::vector<int> classes{0, 1, 2};
  std::vector<StageSpec> stages;
  const int count = pick(1, 3);
  int last = 0;
  for (int s = 0; s < count; ++s) {
    last = s + 1 == count ? 8 : pick(last + 1, 8 - (count - 1 - s));
    StageSpec stage{last, {}};
    if (microbatch > 1 && pick(0, 2) == 0) {
      const int share = pick(1, microbatch - 1);
      stage.parts = {part(0, share), part(1, microbatch - share)};
    } else {
      stage.parts = {part(classes[static_cast<std::size_t>(s)], microbatch)};
    }
    stages.push_back(stage);
  }
  return stages;
}

/// Both class A and class B hold at least two shapes of every size, class C one of each.
bool fits(const std::vector<StageSpec>& stages) {
  std::map<int, int> gpus;
  for (const auto& stage : stages) {
    for (const auto& part : stage.parts) gpus[part.island_class] += part.gpus;
  }
  return gpus[0] <= 16 && gpus[1] <= 16 && gpus[2] <= 2;
}

LaunchPlan random_plan(World& world) {
  const int microbatch = any_of(std::vector{1, 2, 3, 4, 6, 8});
  const auto stages = random_stages(microbatch);
  RC_PRE(fits(stages));
  return make_plan(world, make_composition(world, 1, microbatch, pick(1, 12), stages));
}

std::string listing(const CheckReport& report) {
  std::string text;
  for (const auto& v : report.violations) text += v.code + " at " + v.where + ": " + v.message + "\n";
  return text;
}

}  // namespace

TEST_CASE("every sample and position crosses a boundary once, and all bytes with it") {
  CHECK(rc::check([] {
    const std::int64_t samples = pick(1, 12);
    const std::int64_t tokens = pick(12, 40);
    const Bytes bytes(pick(1, 4000));
    const Stage from = random_stage(samples, 0);
    const Stage to = random_stage(samples, ranks_of(from));
    const auto transfers = boundary_transfers(from, to, tokens, bytes);
    std::int64_t total = 0;
    std::set<int> senders;
    std::set<int> receivers;
    for (const auto& t : transfers) {
      total += t.bytes.value();
      senders.insert(t.src);
      receivers.insert(t.dst);
    }
    RC_ASSERT(total == bytes.value() * samples);
    const auto sent = touches(transfers, &Transfer::src);
    const auto received = touches(transfers, &Transfer::dst);
    RC_ASSERT(static_cast<std::int64_t>(sent.size()) == samples * tokens);
    for (const auto* touch : {&sent, &received}) {
      for (const auto& [place, ranks] : *touch) RC_ASSERT(ranks.size() == 1U);
    }
    // With at least as many positions as sequence shards nobody stands idle, and each keeps to its stage.
    RC_ASSERT(static_cast<int>(senders.size()) == ranks_of(from));
    RC_ASSERT(static_cast<int>(receivers.size()) == ranks_of(to));
    RC_ASSERT(*senders.rbegin() < ranks_of(from));
    RC_ASSERT(*receivers.begin() >= ranks_of(from));
  }));
}

TEST_CASE("a boundary seen backwards is the same boundary") {
  CHECK(rc::check([] {
    const std::int64_t samples = pick(1, 12);
    const Stage from = random_stage(samples, 0);
    const Stage to = random_stage(samples, ranks_of(from));
    auto there = boundary_transfers(from, to, 24, Bytes(2400));
    auto back = boundary_transfers(to, from, 24, Bytes(2400));
    for (auto& t : back) std::swap(t.src, t.dst);
    const auto key = [](const Transfer& t) { return std::tuple(t.src, t.dst, t.sample_first, t.seq_first); };
    std::ranges::sort(there, {}, key);
    std::ranges::sort(back, {}, key);
    RC_ASSERT(there == back);
  }));
}

TEST_CASE("the judge accepts assembled plans, and files keep all of them") {
  World world = make_world();
  CHECK(rc::check([&world] {
    LaunchPlan plan = random_plan(world);
    const CheckReport report = check(plan, world.fleet, &world.model);
    RC_LOG() << listing(report);
    RC_ASSERT(report.ok());
    const std::string text = write_plan(plan);
    auto read = read_plan(text, "plan.json");
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->islands == plan.islands);
    RC_ASSERT(read->stages == plan.stages);
    RC_ASSERT(read->boundaries == plan.boundaries);
    RC_ASSERT(read->ranks == plan.ranks);
    RC_ASSERT(read->predicted == plan.predicted);
    RC_ASSERT(read->targets == plan.targets);
    RC_ASSERT(read->idle == plan.idle);
    RC_ASSERT(check(*read).ok());
    RC_ASSERT(write_plan(*read) == text);
  }));
}

TEST_CASE("any figure that is changed in a file is noticed") {
  World world = make_world();
  const LaunchPlan good = good_plan(world);
  CHECK(rc::check([&good] {
    LaunchPlan plan = good;
    auto& stage = plan.stages[static_cast<std::size_t>(pick(0, 2))];
    auto& p = stage.parts[static_cast<std::size_t>(pick(0, static_cast<int>(stage.parts.size()) - 1))].predicted;
    const std::vector<std::int64_t> deltas{-1'000, -1, 1, 1'000};
    const auto delta = any_of(deltas);
    switch (pick(0, 8)) {
      case 0: p.forward += Nanoseconds(delta); break;
      case 1: p.backward += Nanoseconds(delta); break;
      case 2: p.gradient_sync += Nanoseconds(delta); break;
      case 3: p.optimizer_step += Nanoseconds(delta); break;
      case 4: p.static_memory += Bytes(delta); break;
      case 5: p.transient += Bytes(delta); break;
      case 6: p.activation += Bytes(delta); break;
      case 7: p.peak_memory += Bytes(delta); break;
      default: p.usable_memory += Bytes(delta); break;
    }
    RC_ASSERT(!check(plan).ok());
  }));
}

TEST_CASE("ten thousand ranks are written in one line each and read back") {
  // 1248 nodes of 8 A, 1248 replicas of 4 + 4 GPUs, each on one node: 9984 ranks.
  World world = make_world();
  const auto node = world.fleet.nodes.front();
  world.fleet.nodes.clear();
  world.level.islands = {{0, 0, {}, ""}};
  world.level.classes.resize(1);
  world.level.classes[0].islands = {0};
  world.level.classes[0].members_per_island = 1248;
  world.level.links.resize(1);
  for (std::size_t i = 0; i < 1248; ++i) {
    auto copy = node;
    copy.name = "gpu-node-" + std::to_string(10'000 + i);
    world.fleet.nodes.push_back(copy);
    world.level.islands[0].members.push_back({i, 0, 0, 8});
  }
  const std::vector<StageSpec> stages{{4, {{0, 4, 4, strategy(1, 1, 4)}}}, {8, {{0, 4, 4, strategy(1, 1, 4)}}}};
  LaunchPlan plan = make_plan(world, make_composition(world, 1248, 4, 4, stages));
  REQUIRE(plan.ranks.size() == 9984);
  const std::string text = write_plan(plan);
  CHECK(text.size() < 12'000'000);
  const auto read = read_plan(text, "plan.json");
  REQUIRE(read);
  CHECK(read->ranks == plan.ranks);
  const CheckReport report = check(*read, world.fleet, &world.model);
  INFO(listing(report));
  CHECK(report.ok());
}

TEST_CASE("a damaged file is refused or judged, and never more than that") {
  World world = make_world();
  LaunchPlan good = good_plan(world);
  const std::string text = write_plan(good);
  CHECK(rc::check([&] {
    std::string damaged = text;
    const int hits = pick(1, 4);
    for (int i = 0; i < hits; ++i) {
      const auto at = static_cast<std::size_t>(pick(0, static_cast<int>(damaged.size()) - 1));
      const std::string alphabet = "0123456789-,:[]{}\"e.";
      const char letter = alphabet[static_cast<std::size_t>(pick(0, static_cast<int>(alphabet.size()) - 1))];
      switch (pick(0, 2)) {
        case 0: damaged[at] = letter; break;
        case 1: damaged.insert(at, 1, letter); break;
        default: damaged.erase(at, 1); break;
      }
    }
    const auto read = read_plan(damaged, "plan.json");
    if (!read) {
      RC_ASSERT(!read.error().empty());
      return;
    }
    const CheckReport report = check(*read, world.fleet, &world.model);
    RC_ASSERT(report.ranks == static_cast<int>(read->ranks.size()));
  }));
}
