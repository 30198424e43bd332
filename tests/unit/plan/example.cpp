#include "unit/plan/example.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "support/interleaved.hpp"
#include "tangram/compose/links.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::plan::example {

using namespace tangram::literals;

namespace {

cluster::GpuType make_gpu(const std::string& name, Bytes memory, double tflops, double memory_gb_s) {
  cluster::GpuType gpu;
  gpu.name = name;
  gpu.vendor = "nvidia";
  gpu.architecture = "test";
  gpu.memory = memory;
  gpu.reserved = 2_GiB;
  gpu.memory_bandwidth = BytesPerSecond(memory_gb_s * 1e9);
  gpu.peak.fill(FlopsPerSecond(tflops * 1e12));
  gpu.peer_link = {300_GBps, 3_us};
  gpu.pcie = {25_GBps, 5_us};
  gpu.compute.source = "made up";
  gpu.price_per_hour = Dollars(2.5);
  gpu.source = "made up";
  return gpu;
}

cluster::DeviceGroup make_group(const cluster::GpuType& gpu, int count, cluster::Link link) {
  return {gpu, count, count, link};
}

cluster::Node make_node(const std::string& name, std::vector<cluster::DeviceGroup> groups) {
  cluster::Node node;
  node.name = name;
  node.groups = std::move(groups);
  node.host_link = {20_GBps, 5_us};
  node.network = {50_GBps, 8_us};
  node.labels["rack"] = name.substr(0, 1);
  return node;
}

cluster::IslandClass make_class(int id, const std::string& alias, const cluster::GpuType& gpu, int per_member,
                                int members, std::vector<int> islands, cluster::Link inside) {
  cluster::IslandClass result;
  result.id = id;
  result.alias = alias;
  result.device = gpu;
  result.gpus_per_member = per_member;
  result.members_per_island = members;
  result.islands = std::move(islands);
  result.inside_member = inside;
  result.between_members = {50_GBps, 8_us};
  result.between_islands = {25_GBps, 20_us};
  result.price_per_gpu_hour = gpu.price_per_hour;
  return result;
}

model::BlockType make_block(const std::string& name, int experts) {
  model::BlockType block;
  block.name = name;
  block.hidden = 512;
  block.tokens = 1024;
  block.attention.heads = 8;
  block.attention.kv_heads = 8;
  block.attention.head_dim = 64;
  if (experts == 0) {
    block.feed_forward.hidden = 2048;
  } else {
    block.feed_forward.experts = experts;
    block.feed_forward.experts_per_token = 2;
    block.feed_forward.expert_hidden = 1024;
  }
  return block;
}

model::Model make_model() {
  model::Model model;
  model.name = "tiny";
  model.types = {make_block("dense", 0), make_block("moe", 8)};
  model.blocks = {0, 0, 0, 0, 1, 1, 1, 1};
  model.vocabulary = 32'000;
  model.hidden = 512;
  model.job.sequence_length = 1024;
  model.job.global_batch = 32;
  return model;
}

/// The written form is the identity: read what was written, so that digests and the like are those of a file.
model::Model canonical(const model::Model& model) {
  auto read = model::read_model(model::write_model(model), "tiny.json");
  if (!read) throw std::runtime_error(render(read.error()));
  return std::move(*read);
}

compose::PartChoice make_part(const World& world, const PartSpec& spec, const model::SliceSignature& slice) {
  compose::PartChoice part;
  part.island_class = spec.island_class;
  part.gpus = spec.gpus;
  part.samples = spec.samples;
  const auto shape = cluster::make_shape(world.level.classes[static_cast<std::size_t>(spec.island_class)], spec.gpus);
  const auto units = cost::unit_costs(world.model, shape, spec.strategy.degrees, spec.samples);
  if (!units) throw std::runtime_error(render(units.error()));
  part.plan.strategy = spec.strategy;
  part.plan.cost = cost::stage_cost(*units, slice, spec.strategy.policy);
  part.plan.n_max = cost::max_in_flight(part.plan.cost, shape.device.usable());
  part.plan.parallelizer = "enumerator";
  return part;
}

int members_of(const World& world, const compose::PartChoice& part) {
  const int per_member = world.level.classes[static_cast<std::size_t>(part.island_class)].gpus_per_member;
  return std::max(1, part.gpus / per_member);
}

cluster::Link shared_link(const World& world, const compose::PartChoice& a, const compose::PartChoice& b) {
  cluster::Link link = world.level.link(a.island_class, b.island_class);
  for (const auto* part : {&a, &b}) {
    const int per_member = world.level.classes[static_cast<std::size_t>(part->island_class)].gpus_per_member;
    const double share = std::min(1.0, static_cast<double>(part->gpus) / per_member);
    link.bandwidth = BytesPerSecond(
        std::min(link.bandwidth.value(), share * world.level.link(a.island_class, b.island_class).bandwidth.value()));
  }
  return link;
}

void price_boundary(const World& world, compose::StageChoice& from, const compose::StageChoice& to, Bytes bytes) {
  for (std::size_t i = 0; i < from.parts.size(); ++i) {
    for (std::size_t j = 0; j < to.parts.size(); ++j) {
      const auto link = shared_link(world, from.parts[i], to.parts[j]);
      const auto price = cost::boundary_cost(bytes, link, members_of(world, from.parts[i]), from.parts[i].gpus,
                                             members_of(world, to.parts[j]), to.parts[j].gpus);
      if (price <= from.to_next) continue;
      from.to_next = price;
      from.link_to_next = link;
      from.link_source = static_cast<int>(i);
      from.link_target = static_cast<int>(j);
    }
  }
}

// The closed form at the smallest period that stage times and occupancies allow.
void schedule(compose::Composition& composition) {
  std::int64_t period = 1;
  for (const auto& s : composition.stages) {
    period = std::max({period, s.T.value(), s.to_next.occupancy.value()});
  }
  std::int64_t latency = 0, a = 0, q = 0, n = 0, o = 0;
  for (std::size_t i = composition.stages.size(); i-- > 0;) {
    auto& s = composition.stages[i];
    const std::int64_t c = s.to_next.latency.value();
    const std::int64_t x = s.T.value() + 2 * c + q;
    n = std::max(n + 1, (x + period - 1) / period);
    q = std::max(period * (n - 1) + s.T.value(), x);
    s.in_flight = std::min(n, composition.microbatches);
    a = std::max(a + s.F.value() + c, s.A.value() + latency + 2 * c);
    latency += s.T.value() + 2 * c;
    o = std::max(o, s.o.value());
  }
  composition.period = Nanoseconds(period);
  composition.closed_form = Nanoseconds(std::max(latency, a) + (composition.microbatches - 1) * period + o);
}

}  // namespace

World make_world() {
  World world;
  const auto a = make_gpu("A-80GB", 80_GiB, 300, 2000);
  const auto b = make_gpu("B-40GB", 40_GiB, 120, 900);
  const auto c = make_gpu("C-24GB", 24_GiB, 60, 600);
  const cluster::Link fast{300_GBps, 3_us};
  const cluster::Link slow{20_GBps, 5_us};
  world.fleet.name = "example";
  world.fleet.nodes = {
      make_node("a0", {make_group(a, 8, fast)}), make_node("a1", {make_group(a, 8, fast)}),
      make_node("b0", {make_group(b, 4, slow)}), make_node("b1", {make_group(b, 4, slow)}),
      make_node("b2", {make_group(b, 4, slow)}), make_node("b3", {make_group(b, 4, slow), make_group(c, 2, slow)})};
  auto& level = world.level;
  level.name = "rack";
  level.islands = {{0, 0, {{0, 0, 0, 8}, {1, 0, 0, 8}}, ""},
                   {1, 1, {{2, 0, 0, 4}, {3, 0, 0, 4}}, ""},
                   {2, 1, {{4, 0, 0, 4}, {5, 0, 0, 4}}, ""},
                   {3, 2, {{5, 1, 4, 2}}, ""}};
  level.classes = {make_class(0, "A", a, 8, 2, {0}, fast), make_class(1, "B", b, 4, 2, {1, 2}, slow),
                   make_class(2, "C", c, 2, 1, {3}, slow)};
  level.links.assign(9, {10_GBps, 30_us});
  world.model = canonical(make_model());
  return world;
}

cost::Strategy strategy(int tp, int cp, int dp, int ep, int etp, int zero) {
  cost::Strategy result;
  result.degrees = {tp, cp, dp, ep, etp, tp > 1};
  result.policy.zero = zero;
  return result;
}

/// Replicas and parts meet over the level's links; ends of a tied embedding do not.
Nanoseconds crossing_of(const World& world, int replicas, const StageSpec& spec, const compose::StageChoice& stage) {
  std::vector<compose::Placement> placements;
  for (const PartSpec& part : spec.parts) placements.push_back({.island_class = part.island_class, .gpus = part.gpus});
  model::SliceSignature slice = model::signature(world.model, stage.first, stage.last);
  slice.tied_elsewhere = false;
  return compose::crossing_sync(world.model, world.level, replicas, compose::reaches_of(world.level).front(),
                                placements, slice, stage.parts.front().plan.cost.gradient_volume);
}

compose::Composition make_composition(World& world, int replicas, std::int64_t microbatch, std::int64_t microbatches,
                                      const std::vector<StageSpec>& stages) {
  world.model.job.global_batch = replicas * microbatch * microbatches;
  world.model = canonical(world.model);
  compose::Composition composition;
  composition.replicas = replicas;
  composition.microbatch = microbatch;
  composition.microbatches = microbatches;
  int first = 0;
  for (const auto& spec : stages) {
    compose::StageChoice stage;
    stage.first = first;
    stage.last = first = spec.last;
    for (const auto& part_spec : spec.parts) {
      stage.parts.push_back(make_part(world, part_spec, model::signature(world.model, stage.first, stage.last)));
      const auto& cost = stage.parts.back().plan.cost;
      const Nanoseconds time = cost.forward + cost.backward;
      stage.T = std::max(stage.T, time);
      stage.F = std::max(stage.F, cost.forward);
      stage.o = std::max(stage.o, cost.optimizer_step);
    }
    stage.crossing = crossing_of(world, replicas, spec, stage);
    for (const compose::PartChoice& part : stage.parts) {
      const auto& cost = part.plan.cost;
      stage.A = std::max(stage.A, cost.forward + cost.backward +
                                      cost::exposed_sync(cost.gradient_sync + stage.crossing, cost.backward));
    }
    if (!composition.stages.empty()) {
      price_boundary(world, composition.stages.back(), stage,
                     Bytes(model::cut_bytes(world.model, stage.first) * microbatch));
    }
    composition.stages.push_back(std::move(stage));
  }
  schedule(composition);
  return composition;
}

LaunchPlan make_plan(World& world, const compose::Composition& composition) {
  LaunchPlan plan = assemble(composition, world.fleet, world.level, world.model);
  plan.predicted.iteration = plan.predicted.closed_form;
  plan.targets = target_verdicts(plan);
  return plan;
}

LaunchPlan good_plan(World& world) {
  const auto composition = make_composition(world, 1, 4, 8,
                                            {{3, {{0, 8, 4, strategy(2, 1, 4)}}},
                                             {5, {{1, 8, 4, strategy(2, 2, 2, 2, 2, 1)}}},
                                             {8, {{0, 4, 3, strategy(4, 1, 1, 4)}, {2, 1, 1, strategy(1, 1, 1)}}}});
  return make_plan(world, composition);
}

LaunchPlan interleaved_plan() {
  World world = make_world();
  const auto alike = strategy(2, 1, 2, 1, 1, 1);
  std::vector<StageSpec> stages;
  for (const int last : {2, 4, 6, 8}) stages.push_back({last, {{0, 4, 4, alike}}});
  return test::interleaved(make_plan(world, make_composition(world, 1, 4, 8, stages)), 2, 4);
}

}  // namespace tangram::plan::example
