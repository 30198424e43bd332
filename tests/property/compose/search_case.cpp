#include "search_case.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "support/random.hpp"

namespace tangram::tests {

namespace {

using cluster::IslandClass;
using cluster::IslandLevel;
using cluster::Link;
using testing::pick;

bool chance(std::mt19937_64& random, int percent) { return pick(random, 1, 100) <= percent; }

// The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
  h += value + 0x9E3779B97F4A7C15U;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9U;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBU;
  return h ^ (h >> 31);
}

// Draws from a hash, one after the other.
class Draws {
 public:
  explicit Draws(std::uint64_t hash) : hash_(hash) {}
  int operator()(int low, int high) {
    hash_ = mix(hash_, 1);
    return low + static_cast<int>(hash_ % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t hash_;
};

std::uint64_t hash_of(const model::SliceSignature& slice) {
  std::uint64_t h = 0;
  for (const auto& [type, count] : slice.runs) {
    h = mix(mix(h, static_cast<std::uint64_t>(type)), static_cast<std::uint64_t>(count));
  }
  h = mix(h, slice.embedding ? 1 : 0);
  return mix(h, slice.head ? 1 : 0);
}

std::uint64_t hash_of(const cluster::DeviceShape& shape) {
  std::uint64_t h = 0;
  for (const char c : shape.device.name) h = mix(h, static_cast<std::uint64_t>(c));
  return mix(mix(h, static_cast<std::uint64_t>(shape.nodes)), static_cast<std::uint64_t>(shape.per_node));
}

model::BlockType block_type(const std::string& name, int feed_forward) {
  model::BlockType block;
  block.name = name;
  block.hidden = 8;
  block.tokens = 4;
  block.attention.heads = block.attention.kv_heads = 2;
  block.attention.head_dim = 4;
  block.feed_forward.hidden = feed_forward;
  return block;
}

model::Model random_model(std::mt19937_64& random, const SearchFlavour& flavour) {
  model::Model model;
  model.name = "random";
  model.types.push_back(block_type("small", 16));
  const bool two_types = chance(random, 40);
  if (two_types) model.types.push_back(block_type("large", 40));
  const int blocks = pick(random, flavour.least_blocks, flavour.most_blocks);
  for (int i = 0; i < blocks; ++i) model.blocks.push_back(two_types ? pick(random, 0, 1) : 0);
  model.vocabulary = 8;
  model.hidden = 8;
  model.tied_embeddings = chance(random, 40);
  model.job.sequence_length = 4;
  model.job.global_batch = pick(random, 1, flavour.most_batch);
  model.job.gradient_bytes = 1;
  model.job.allow.mixed_stages = chance(random, 80);
  model.job.allow.replicas = chance(random, 80);
  model.job.allow.pipeline = chance(random, 90);
  if (chance(random, 10)) model.job.microbatch = pick(random, 1, 4);
  model.job.overlap_gather = model.job.global_batch % 3 == 0;  // no draw of its own: later cases stay as they are
  return model;
}

// A peak at which a small block of one sample takes `nanoseconds` at least.
cluster::GpuType device(const model::Model& model, int index, int nanoseconds) {
  cluster::GpuType gpu;
  gpu.name = "gpu-" + std::to_string(index);
  gpu.memory = Bytes(std::int64_t{1} << 30);
  gpu.memory_bandwidth = BytesPerSecond(1e12);
  gpu.peak.fill(FlopsPerSecond(1));
  const double seconds = cost::least_gpu_seconds(model, model.types.front(), gpu);
  gpu.peak.fill(FlopsPerSecond(seconds / (nanoseconds * 1e-9)));
  return gpu;
}

// A cut carries 64 bytes a sample: 64 GB/s take one nanosecond, 2 GB/s 32.
Link random_link(std::mt19937_64& random, const SearchFlavour& flavour) {
  const int slowest = flavour.slow_links && chance(random, 40) ? 40 : 4;
  return {BytesPerSecond(64e9 / pick(random, 1, slowest)), Nanoseconds(pick(random, 0, slowest / 4))};
}

IslandClass random_class(std::mt19937_64& random, const SearchFlavour& flavour, const model::Model& model, int id,
                         int most_gpus) {
  IslandClass result;
  result.id = id;
  result.alias = "class-" + std::to_string(id);
  result.device = device(model, id, pick(random, 8, 40));
  result.gpus_per_member = pick(random, 1, most_gpus);
  result.members_per_island = pick(random, 1, most_gpus / result.gpus_per_member);
  const int islands = pick(random, 1, most_gpus / (result.gpus_per_member * result.members_per_island));
  for (int i = 0; i < islands; ++i) result.islands.push_back(i);
  result.inside_member = random_link(random, flavour);
  result.between_members = random_link(random, flavour);
  result.between_islands = islands > 1 ? random_link(random, flavour) : result.between_members;
  return result;
}

// The same fleet with the islands of each class made one.
IslandLevel coarser(IslandLevel level) {
  level.name = "fleet";
  for (IslandClass& c : level.classes) {
    c.members_per_island = c.member_count();
    c.islands.resize(1);
    c.between_members = c.between_islands;
  }
  return level;
}

cluster::IslandHierarchy random_hierarchy(std::mt19937_64& random, const SearchFlavour& flavour,
                                          const model::Model& model) {
  IslandLevel level;
  level.name = "host";
  const int classes = pick(random, 1, flavour.most_classes);
  int gpus = flavour.most_gpus;
  for (int k = 0; k < classes; ++k) {
    level.classes.push_back(random_class(random, flavour, model, k, std::min(4, gpus - (classes - 1 - k))));
    gpus -= level.classes.back().gpu_count();
  }
  level.links.resize(level.classes.size() * level.classes.size());
  for (std::size_t a = 0; a < level.classes.size(); ++a) {
    for (std::size_t b = a; b < level.classes.size(); ++b) {
      const Link link = random_link(random, flavour);
      level.links[a * level.classes.size() + b] = link;
      level.links[b * level.classes.size() + a] = link;
    }
  }
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels.push_back(level);
  const bool cut = std::any_of(level.classes.begin(), level.classes.end(),
                               [](const IslandClass& c) { return c.islands.size() > 1; });
  if (cut && chance(random, 50)) hierarchy.levels.push_back(coarser(level));
  return hierarchy;
}

}  // namespace

double RandomParallelizer::least_nanoseconds(const model::SliceSignature& slice, const cluster::DeviceShape& shape,
                                             int samples) const {
  double seconds = slice.head ? cost::least_gpu_seconds_head(*model_, shape.device) : 0;
  for (const auto& [type, count] : slice.runs) {
    const model::BlockType& block = model_->types[static_cast<std::size_t>(type)];
    seconds += count * cost::least_gpu_seconds(*model_, block, shape.device);
  }
  return seconds * 1e9 * samples / shape.gpus();
}

std::int64_t RandomParallelizer::in_flight(const model::SliceSignature& slice, const cluster::DeviceShape& shape,
                                           int samples, std::uint64_t hash) const {
  Draws draw(mix(hash, 7));
  if (!flavour_.tight_memory) return 1000;
  if (!flavour_.additive) return draw(1, 6) - 2 * (slice.block_count() - 1);
  // Memory of the shape, less the state of the blocks, over the activations of one microbatch.
  const int blocks = slice.block_count();
  const int memory = draw(4, 60) * shape.gpus() - blocks;
  return std::max(0, memory / (blocks * samples));
}

std::vector<parallelizer::PartialPlan> RandomParallelizer::plans(const model::SliceSignature& slice,
                                                                 const cluster::DeviceShape& shape, int samples) const {
  const std::uint64_t place = mix(mix(seed_, hash_of(shape)), static_cast<std::uint64_t>(samples));
  const std::uint64_t key = flavour_.additive ? place : mix(place, hash_of(slice));
  const double least = least_nanoseconds(slice, shape, samples);
  const int variants = Draws(mix(key, 3))(1, 3);
  std::vector<parallelizer::PartialPlan> result;
  for (int v = 0; v < variants; ++v) {
    const std::uint64_t hash = mix(key, 100 + static_cast<std::uint64_t>(v));
    Draws draw(hash);
    parallelizer::PartialPlan plan;
    // Large shapes tend to scale badly, or no pipeline would ever be worth its bubble.
    const double factor = draw(0, 3) == 0 ? 1.0 : 1.0 + draw(0, 100) * (2 * shape.gpus() - 1) / 100.0;
    const auto time = static_cast<std::int64_t>(std::max(1.0, std::ceil(least * factor)));
    plan.cost.forward = Nanoseconds(time * draw(10, 60) / 100);
    plan.cost.backward = Nanoseconds(time) - plan.cost.forward;
    plan.cost.gradient_sync = Nanoseconds(draw(0, 1) == 0 ? 0 : draw(0, 120));
    plan.cost.optimizer_step = Nanoseconds(draw(0, 30));
    // The same for every plan of a slice, as the gradients are.
    plan.cost.gradient_volume = Bytes(Draws(hash_of(slice))(0, 200) * slice.block_count());
    plan.n_max = in_flight(slice, shape, samples, hash);
    plan.parallelizer = info_.name;
    plan.opaque = std::to_string(v);
    if (plan.n_max < 1) continue;
    plan.n_max += extra_in_flight_;
    result.push_back(std::move(plan));
  }
  return result;
}

std::vector<parallelizer::Outcome> RandomParallelizer::solve(std::span<const parallelizer::Query> queries) const {
  std::vector<parallelizer::Outcome> outcomes;
  for (const parallelizer::Query& query : queries) {
    parallelizer::Outcome outcome;
    outcome.plans = plans(query.slice, query.shape, query.samples);
    if (outcome.plans.empty()) {
      outcome.status = parallelizer::OutcomeStatus::kInfeasible;
      outcome.shortage = Bytes(1);
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

SearchCase random_search_case(std::mt19937_64& random, const SearchFlavour& flavour) {
  auto model = std::make_unique<model::Model>(random_model(random, flavour));
  cluster::IslandHierarchy hierarchy = random_hierarchy(random, flavour, *model);
  RandomParallelizer parallelizer(*model, flavour, random());
  return {std::move(model), std::move(hierarchy), std::move(parallelizer)};
}

}  // namespace tangram::tests
