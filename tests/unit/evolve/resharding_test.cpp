#include "tangram/evolve/resharding.hpp"
#include "support/catch.hpp"
#include "tangram/cost/communication.hpp"
#include "tangram/evolve/switch.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::evolve;
using namespace tangram::plan::example;

namespace {

/// One stage of all eight blocks on a0, a member of eight GPUs.
plan::LaunchPlan on_one_node(World& world, const cost::Strategy& strategy) {
  return make_plan(world, make_composition(world, 1, 8, 4, {{8, {{0, 8, 8, strategy}}}}));
}

void rename_host(plan::LaunchPlan& plan, const std::string& from, const std::string& to) {
  for (plan::Rank& rank : plan.ranks) {
    if (rank.host == from) rank.host = to;
  }
}

/// Parameters of the example's blocks: 4 h^2 + 2 norms of h, and 3 h f gated of the feed-forward (h 512, f 2048); eight
/// experts of 3 h f_e (f_e 1024) and a router of 8 h.
constexpr std::int64_t kAttention = std::int64_t{4} * 512 * 512;
constexpr std::int64_t kNorms = std::int64_t{2} * 512;
constexpr std::int64_t kDense = std::int64_t{3} * 512 * 2048;
constexpr std::int64_t kDenseBlock = kAttention + kNorms + kDense;

constexpr std::int64_t kParameterBytes = 2;
constexpr std::int64_t kOptimizerBytes = 12;

}  // namespace

TEST_CASE("the same plan moves nothing") {
  World world = make_world();
  const plan::LaunchPlan plan = good_plan(world);
  const Resharding r = resharding(plan, plan, nullptr);
  CHECK(r.moved() == Bytes(0));
  CHECK(r.checkpoint == State{});
  CHECK(r.kept.total() > Bytes(0));
  CHECK(resharding_time(r, world.fleet) == Nanoseconds(0));
}

TEST_CASE("half the tensor parallelism doubles what each GPU holds, and its neighbours have it") {
  // tp 8 -> tp 4: each GPU held 1/8 of the divided parameters and needs 1/4, of which it has half: GPU 0 held [0, 1/8)
  // and needs [0, 1/4); GPU 7 (replica 1, tp 3) held [7/8, 1) and needs [3/4, 1). GPU 2 held [2/8, 3/8) and needs
  // [2/4, 3/4): nothing of it. Held of what is needed: GPUs 0, 1 (needs [1/4, 2/4), held [1/8, 2/8): none), ...
  //   GPU  held eighth  needs eighths  lacks
  //    0       0            0 1          1
  //    1       1            2 3          2
  //    2       2            4 5          2
  //    3       3            6 7          2
  //    4       4            0 1          2
  //    5       5            2 3          2
  //    6       6            4 5          2
  //    7       7            6 7          1
  // 14 eighths of the divided parameters, all of which the same host has.
  World world = make_world();
  const plan::LaunchPlan before = on_one_node(world, strategy(8, 1, 1));
  const plan::LaunchPlan after = on_one_node(world, strategy(4, 1, 2));
  const model::Model& m = after.model;
  std::int64_t divided = m.vocabulary * m.hidden + m.head_parameters();
  for (int b = 0; b < m.block_count(); ++b) {
    const model::BlockParameters p = model::parameters(m.block(b));
    divided += p.attention + p.feed_forward;
  }
  // Without experts' parallelism every rank holds all experts, before and after.
  const Resharding r = resharding(before, after, nullptr);
  CHECK(r.between == State{});
  CHECK(r.checkpoint == State{});
  CHECK(r.within == State{Bytes(divided * 14 / 8 * kParameterBytes), Bytes(divided * 14 / 8 * kOptimizerBytes)});
  REQUIRE(r.transfers.size() == 1);
  CHECK(r.transfers[0].from == "a0");
  CHECK(r.transfers[0].to == "a0");
}

TEST_CASE("of groups that ZeRO shards inside each holds everything") {
  // dp 8, ZeRO-1 over all -> inside two groups of four: replica r held eighth r of the state and needs eighths 2 (r %
  // 4) and 2 (r % 4) + 1. Replica 0 needs 0 and 1, 7 needs 6 and 7, and each has one of them; the others have none.
  // Kept are 2 of the 16 eighths that are held then.
  World world = make_world();
  const auto plan_with = [&](int groups) {
    cost::Strategy sharded = strategy(1, 1, 8, 1, 1, 1);
    sharded.degrees.dp_replicate = groups;
    return on_one_node(world, sharded);
  };
  const plan::LaunchPlan all = plan_with(1);
  const plan::LaunchPlan inside = plan_with(2);
  const Resharding same = resharding(inside, inside, nullptr);
  CHECK(same.moved() == Bytes(0));
  CHECK(same.kept.optimizer.value() == 2 * resharding(all, all, nullptr).kept.optimizer.value());
  const Resharding r = resharding(all, inside, nullptr);
  CHECK(r.checkpoint == State{});
  CHECK(r.kept.optimizer.value() * 16 == same.kept.optimizer.value() * 2);
}

TEST_CASE("ZeRO divides the optimizer state alone") {
  // dp 8, ZeRO 0 -> ZeRO 1: every GPU keeps an eighth of the optimizer state it had; nothing moves. Back: every GPU
  // lacks seven eighths of all of it.
  World world = make_world();
  const plan::LaunchPlan whole = on_one_node(world, strategy(1, 1, 8, 1, 1, 0));
  const plan::LaunchPlan divided = on_one_node(world, strategy(1, 1, 8, 1, 1, 1));
  CHECK(resharding(whole, divided, nullptr).moved() == Bytes(0));
  const Resharding back = resharding(divided, whole, nullptr);
  CHECK(back.within.parameters == Bytes(0));
  const std::int64_t all = whole.model.total_parameters();
  CHECK(back.within.optimizer == Bytes(7 * all * kOptimizerBytes));
}

TEST_CASE("ZeRO divides the blocks that it is for") {
  // dp 8; the first block of eight under ZeRO-3, the others whole: nothing moves from whole to that, and back an eighth
  // of what ZeRO-3 of all blocks and ends would take, were all blocks equal: parameters are lacking now as well.
  World world = make_world();
  const plan::LaunchPlan whole = on_one_node(world, strategy(1, 1, 8, 1, 1, 0));
  plan::LaunchPlan mixed = whole;
  mixed.stages[0].parts[0].strategy.policy.runs = {{1, {3}}, {7, {0}}};
  CHECK(resharding(mixed, mixed, nullptr).moved() == Bytes(0));
  CHECK(resharding(whole, mixed, nullptr).moved() == Bytes(0));
  const Resharding back = resharding(mixed, whole, nullptr);
  const std::int64_t first = model::parameters(whole.model.block(0)).total();
  CHECK(back.within.optimizer == Bytes(7 * first * kOptimizerBytes));
  CHECK(back.within.parameters == Bytes(7 * first * whole.model.job.parameter_bytes));
}

TEST_CASE("a layer that changes its stage crosses between the hosts") {
  // Cut at 3 -> cut at 4: block 3 (dense) goes from B's stage to A's, where all eight ranks (tp 1, dp 4 is 4 GPUs of
  // a0) hold it whole: 4 copies. B's ranks keep what they have.
  World world = make_world();
  const auto plan_of = [&](int cut) {
    return make_plan(
        world,
        make_composition(world, 1, 4, 8, {{cut, {{0, 4, 4, strategy(1, 1, 4)}}}, {8, {{1, 4, 4, strategy(1, 1, 4)}}}}));
  };
  const plan::LaunchPlan before = plan_of(3);
  const plan::LaunchPlan after = plan_of(4);
  const Resharding r = resharding(before, after, nullptr);
  CHECK(r.within == State{});
  CHECK(r.between == State{Bytes(4 * kDenseBlock * kParameterBytes), Bytes(4 * kDenseBlock * kOptimizerBytes)});
  REQUIRE(r.transfers.size() == 1);
  CHECK(r.transfers[0].from == "b0");
  CHECK(r.transfers[0].to == "a0");
  // 50 GB/s cards at both ends, at kNetworkShare of it.
  const double seconds = r.between.total().as_double() / (50e9 * cost::kNetworkShare);
  CHECK(resharding_time(r, world.fleet) == ceil_to_nanoseconds(seconds));
}

TEST_CASE("a host that joins gets its state from a replica; without one it is read from a checkpoint") {
  // One stage, dp 8 over b0 and b1; then b1 is replaced by b2. Every rank holds everything (ZeRO 0), so b0 can send
  // all that b2's four GPUs need. With ZeRO 1 b1 held half of the optimizer state, which is gone with it.
  World world = make_world();
  for (const int zero : {0, 1}) {
    const plan::LaunchPlan before =
        make_plan(world, make_composition(world, 1, 8, 4, {{8, {{1, 8, 8, strategy(1, 1, 8, 1, 1, zero)}}}}));
    plan::LaunchPlan after = before;
    rename_host(after, "b1", "b2");
    cluster::Fleet left = world.fleet;
    std::erase_if(left.nodes, [](const cluster::Node& node) { return node.name == "b1"; });
    const std::int64_t all = before.model.total_parameters();
    const Resharding r = resharding(before, after, &left);
    CHECK(r.between.parameters == Bytes(4 * all * kParameterBytes));
    CHECK(r.within == State{});
    CHECK(r.between.optimizer == Bytes(zero == 0 ? 4 * all * kOptimizerBytes : 0));
    CHECK(r.checkpoint.parameters == Bytes(0));
    const double lost = r.checkpoint.optimizer.as_double();
    CHECK(lost == (zero == 0 ? Approx(0) : Approx(static_cast<double>(all) / 2 * kOptimizerBytes)));
    // While b1 is still there it sends what it had: half of the state, or nothing where b0 has it all as well.
    const Resharding there = resharding(before, after, &world.fleet);
    CHECK(there.checkpoint == State{});
  }
}

TEST_CASE("a switch has what moves, and its time where the fleet is known; between models nothing moves") {
  World world = make_world();
  const plan::LaunchPlan before = on_one_node(world, strategy(8, 1, 1));
  const plan::LaunchPlan after = on_one_node(world, strategy(4, 1, 2));
  const Switch known = switch_between(before, after, &world.fleet);
  REQUIRE(known.resharding);
  CHECK(known.resharding->moved() == resharding(before, after, &world.fleet).moved());
  CHECK(known.time == resharding_time(*known.resharding, world.fleet));
  CHECK_FALSE(switch_between(before, after, nullptr).time);
  plan::LaunchPlan other = after;
  other.model.vocabulary *= 2;
  CHECK_FALSE(switch_between(before, other, &world.fleet).resharding);
}
