#include "space.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "bin_packing.hpp"
#include "tangram/chain/radices.hpp"
#include "tangram/parallelizer/degrees.hpp"

namespace tangram::compose {

namespace {

// Beyond this size small shapes are left out so that a replica has at most so many units of a class: the states of the
// composer grow with the product of the units.
constexpr int kLargeFleet = 2048;
constexpr int kUnitsOfLargeFleet = 32;

// Up to here three times powers of two of members are offered, too. They make labels of larger fleets ten times as
// many.
constexpr int kThreeTimes = 256;

constexpr std::size_t kAllPairs = SIZE_MAX;

int most_units(int fleet_gpus) { return fleet_gpus > kLargeFleet ? kUnitsOfLargeFleet : kLargeFleet; }

bool is_power_of_two(int number) { return std::has_single_bit(static_cast<unsigned>(number)); }

// What sizes are made of: parts of members of GPUs, shapes of members and of islands.
enum class Pieces { kGpus, kMembers };

bool is_offered(int size, int all, Pieces pieces, int fleet_gpus) {
  if (fleet_gpus <= kEverySize || is_power_of_two(size)) return true;
  if (pieces == Pieces::kGpus) return all % size == 0;
  return fleet_gpus <= kThreeTimes && size % 3 == 0 && is_power_of_two(size / 3);
}

// Sizes of parts of a member, members of an island or islands of a class: of `all` that lie in equal bins, and all of
// them. Any sizes fit into a single bin, and into small ones as far as the placement limits say; others must divide
// each other, and the bin where the fleet is so large that only large ones count.
std::vector<int> sizes_of(int all, int bins, Pieces pieces, int fleet_gpus) {
  const bool divide = bins > 1 && all > kAnySizes;
  std::vector<int> sizes;
  for (int size = 1; size < all; ++size) {
    const bool divides = is_power_of_two(size) && (fleet_gpus <= kLargeFleet || all % size == 0);
    if (divide ? divides : is_offered(size, all, pieces, fleet_gpus)) sizes.push_back(size);
  }
  sizes.push_back(all);
  return sizes;
}

}  // namespace

bool may_use(const GpuTypes& types, const cluster::IslandClass& island_class) {
  return types.empty() || std::ranges::find(types, island_class.device.name) != types.end();
}

int gpu_count(const cluster::IslandLevel& level) { return gpu_count(level, {}); }

int gpu_count(const cluster::IslandLevel& level, const GpuTypes& types) {
  int gpus = 0;
  for (const cluster::IslandClass& c : level.classes) gpus += may_use(types, c) ? c.gpu_count() : 0;
  return gpus;
}

std::vector<int> shapes_of(const cluster::IslandClass& island_class, int fleet_gpus) {
  const int member = island_class.gpus_per_member;
  const int island = member * island_class.members_per_island;
  const auto islands = static_cast<int>(island_class.islands.size());
  std::set<int> shapes;
  for (const int gpus : sizes_of(member, island_class.member_count(), Pieces::kGpus, fleet_gpus)) shapes.insert(gpus);
  for (const int members : sizes_of(island_class.members_per_island, islands, Pieces::kMembers, fleet_gpus))
    shapes.insert(members * member);
  for (const int count : sizes_of(islands, 1, Pieces::kMembers, fleet_gpus)) shapes.insert(count * island);
  return {shapes.begin(), shapes.end()};
}

std::int64_t PlacementLimit::weight_of(int gpus) const {
  if (gpus < item) return 0;
  if (gpus > bin) return gpus / bin * weights.back();
  return weights[static_cast<std::size_t>(gpus / item)];
}

namespace {

// Of items in bins: those among `sizes` (GPUs) that are no larger than a bin.
void add_limits(int item, int bin, std::int64_t bins, int replicas, std::span<const int> sizes,
                std::vector<PlacementLimit>& limits) {
  std::vector<int> items;
  for (const int gpus : sizes) {
    if (gpus >= item && gpus <= bin) items.push_back(gpus / item);
  }
  if (items.empty() || (items.size() == 1 && items.front() == bin / item)) return;
  if (items.back() != bin / item) items.push_back(bin / item);
  for (PackingInequality& inequality : packing_inequalities(bin / item, items)) {
    limits.push_back({item, bin, std::move(inequality.weight), inequality.capacity * bins / replicas});
  }
}

// Of the sizes that stages and runs of stages in one member have.
std::vector<PlacementLimit> limits_of(const cluster::IslandClass& island_class, const ClassShare& share, int replicas) {
  std::set<int> sizes(share.shapes.begin(), share.shapes.end());
  sizes.insert(share.runs.begin(), share.runs.end());
  const std::vector<int> all(sizes.begin(), sizes.end());
  const int member = island_class.gpus_per_member;
  const auto islands = static_cast<int>(island_class.islands.size());
  std::vector<PlacementLimit> limits;
  if (island_class.member_count() > 1) add_limits(1, member, island_class.member_count(), replicas, all, limits);
  if (islands > 1 && island_class.members_per_island > 1) {
    add_limits(member, member * island_class.members_per_island, islands, replicas, all, limits);
  }
  return limits;
}

// Whether every replica's GPUs can be of one member.
bool fits_in_members(const cluster::IslandClass& island_class, int share, int replicas) {
  return share <= island_class.gpus_per_member &&
         island_class.gpus_per_member / share * island_class.member_count() >= replicas;
}

// Sums of shapes that a member holds, where that it is one member can matter.
std::vector<int> runs_of(const cluster::IslandClass& island_class, const ClassShare& share, int fleet_gpus) {
  const int member = island_class.gpus_per_member;
  if (fleet_gpus > kSmallFleet || member > kAnySizes || island_class.member_count() == 1 || share.in_one_member)
    return {};
  std::set<int> runs;
  for (int gpus = 1; gpus <= member; ++gpus) {
    const auto ends_in = [&](int shape) { return shape == gpus || (shape < gpus && runs.contains(gpus - shape)); };
    if (std::ranges::any_of(share.shapes, ends_in)) runs.insert(gpus);
  }
  return {runs.begin(), runs.end()};
}

ClassShare share_of_class(const cluster::IslandClass& island_class, int fleet_gpus, int replicas, int limit) {
  const int share = island_class.gpu_count() / replicas;
  ClassShare result;
  for (const int gpus : shapes_of(island_class, fleet_gpus)) {
    if (gpus > share) break;
    if (share / gpus > limit) continue;
    // A shape that is no multiple of the unit would leave part of a unit unused.
    if (!result.shapes.empty() && gpus % result.shapes.front() != 0) continue;
    result.shapes.push_back(gpus);
  }
  if (result.shapes.empty()) return result;
  result.unit = result.shapes.front();
  result.units = share / result.unit;
  result.in_one_member = fits_in_members(island_class, share, replicas);
  result.runs = runs_of(island_class, result, fleet_gpus);
  if (!result.in_one_member) result.limits = limits_of(island_class, result, replicas);
  return result;
}

// GPUs of a member for each replica, all of the same one.
void keep_in_one_member(const cluster::IslandClass& island_class, int replicas, bool with_replicas, ClassShare& share) {
  const int members = with_replicas ? 1 : island_class.member_count();
  const int on_each = (replicas + members - 1) / members;
  const int gpus = island_class.gpus_per_member / on_each;
  std::erase_if(share.shapes, [&](int shape) { return shape > gpus; });
  share.units = share.shapes.empty() ? 0 : gpus / share.unit;
  share.limits.clear();
  share.runs.clear();
  share.in_one_member = true;
}

std::vector<ClassShare> share_within(const cluster::IslandLevel& level, int replicas, const GpuTypes& types,
                                     int limit) {
  const int gpus = gpu_count(level, types);
  std::vector<ClassShare> shares;
  for (const cluster::IslandClass& c : level.classes) {
    shares.push_back(may_use(types, c) ? share_of_class(c, gpus, replicas, limit) : ClassShare{});
  }
  return shares;
}

// Whether a state of the composer has a place for the units of every class.
bool can_be_counted(const std::vector<ClassShare>& shares) {
  std::vector<int> units;
  units.reserve(shares.size());
  for (const ClassShare& share : shares) units.push_back(share.units);
  return chain::radices_of(units).has_value();
}

}  // namespace

std::vector<ClassShare> share_classes(const cluster::IslandLevel& level, int replicas, const GpuTypes& types) {
  int limit = most_units(gpu_count(level, types));
  std::vector<ClassShare> shares = share_within(level, replicas, types, limit);
  while (limit > 1 && !can_be_counted(shares)) {
    limit /= 2;
    shares = share_within(level, replicas, types, limit);
  }
  return shares;
}

namespace {

// No units of classes outside it, at most those of one member within one.
void keep_within(const Reach& reach, const cluster::IslandLevel& level, int replicas, std::vector<ClassShare>& shares) {
  for (std::size_t k = 0; k < shares.size(); ++k) {
    if (!std::ranges::binary_search(reach.classes, static_cast<int>(k))) shares[k] = {};
    const bool with_replicas = std::ranges::binary_search(reach.with_replicas, static_cast<int>(k));
    if (reach.in_one_member || with_replicas) keep_in_one_member(level.classes[k], replicas, with_replicas, shares[k]);
  }
}

}  // namespace

std::vector<ClassShare> share_classes(const cluster::IslandLevel& level, int replicas, const Reach& reach,
                                      const GpuTypes& types) {
  std::vector<ClassShare> shares = share_classes(level, replicas, types);
  keep_within(reach, level, replicas, shares);
  return shares;
}

const std::vector<ClassShare>& ShareTable::at(int level, int replicas, const Reach& reach) const {
  const std::scoped_lock lock(mutex_);
  const auto [known, is_new] = known_.try_emplace({level, replicas, reach});
  if (!is_new) return known->second;
  const cluster::IslandLevel& of = tangram::at(hierarchy_.levels, level);
  const auto [anywhere, is_first] = anywhere_.try_emplace({level, replicas});
  if (is_first) anywhere->second = share_classes(of, replicas, types_);
  known->second = anywhere->second;
  keep_within(reach, of, replicas, known->second);
  return known->second;
}

namespace {

constexpr int kLargestOdd = 7;  // larger odd numbers of GPUs waste little of a power of two

std::vector<const cluster::IslandClass*> classes_of(const cluster::IslandLevel& level, const GpuTypes& types) {
  std::vector<const cluster::IslandClass*> classes;
  for (const cluster::IslandClass& c : level.classes) {
    if (may_use(types, c)) classes.push_back(&c);
  }
  return classes;
}

int odd_part(int number) {
  while (number % 2 == 0) number /= 2;
  return number;
}

std::int64_t rounded_up(std::int64_t number, std::int64_t divisor) { return (number + divisor - 1) / divisor; }

}  // namespace

Splitting splitting_of(const cluster::IslandHierarchy& hierarchy, const SearchOptions& options) {
  const GpuTypes& types = options.constraints.gpu_types;
  std::set<int> odd{1};
  if (gpu_count(hierarchy.levels.front(), types) <= kSmallFleet) {
    int most = 0;  // of types that are left out, too: with others beside them these may be split as finely
    for (const cluster::IslandClass& c : hierarchy.levels.back().classes) most = std::max(most, c.gpu_count());
    for (int o = 3; o <= std::min(most, kLargestOdd); o += 2) odd.insert(o);
    return {options.constraints.demands.equal_samples, /*any=*/true, {odd.begin(), odd.end()}, types};
  }
  const auto add = [&](int gpus) {
    if (odd_part(gpus) <= kLargestOdd) odd.insert(odd_part(gpus));
  };
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    const auto classes = classes_of(level, types);
    for (const cluster::IslandClass* c : classes) add(c->gpus_per_member);
    if (classes.size() == 1) add(classes.front()->gpu_count());
  }
  return {options.constraints.demands.equal_samples, /*any=*/false, {odd.begin(), odd.end()}, types};
}

std::vector<int> replica_counts(const model::Job& job, const cluster::IslandLevel& level, int most,
                                const Splitting& splitting) {
  if (!job.allow.replicas) return {1};
  const auto classes = classes_of(level, splitting.types);
  const auto is_useful = [&](int odd, std::int64_t r) {
    const auto gets = [&](const cluster::IslandClass* c) {
      return odd == 1 || splitting.any ? c->gpu_count() >= r : c->gpu_count() % r == 0;
    };
    return odd == 1 || splitting.any ? std::ranges::any_of(classes, gets) : std::ranges::all_of(classes, gets);
  };
  std::vector<int> counts{1};
  const std::int64_t limit = std::min<std::int64_t>(most, job.global_batch);
  for (const int odd : splitting.odd) {
    for (std::int64_t r = odd == 1 ? 2 : odd; r <= limit && is_useful(odd, r); r *= 2) {
      if (!splitting.equal || job.global_batch % r == 0) counts.push_back(static_cast<int>(r));
    }
  }
  std::ranges::sort(counts);
  return counts;
}

std::vector<std::int64_t> microbatch_sizes(const model::Job& job, int replicas, const Splitting& splitting) {
  if (splitting.equal && job.global_batch % replicas != 0) return {};
  const std::int64_t batch = rounded_up(job.global_batch, replicas);
  const auto divides = [&](std::int64_t b) { return batch % b == 0; };
  if (job.microbatch > 0) {
    if (job.microbatch > batch || (splitting.equal && !divides(job.microbatch))) return {};
    return {job.microbatch};
  }
  std::set<std::int64_t> even{batch};
  for (const std::int64_t odd : {1, 3}) {
    for (std::int64_t b = odd; b <= batch; b *= 2) {
      if (divides(b)) even.insert(b);
    }
  }
  if (splitting.equal) return {even.begin(), even.end()};
  const auto is_spared = [&](std::int64_t b) {
    return std::ranges::any_of(even, [&](std::int64_t e) { return 3 * e >= 2 * b && 2 * e <= 3 * b; });
  };
  std::set<std::int64_t> sizes = even;
  for (const int odd : splitting.odd) {
    for (std::int64_t b = odd; b <= batch; b *= 2) {
      if (odd > 1 || !is_spared(b)) sizes.insert(rounded_up(batch, rounded_up(batch, b)));
    }
  }
  return {sizes.begin(), sizes.end()};
}

std::int64_t microbatches_of(const model::Job& job, int replicas, std::int64_t microbatch) {
  return rounded_up(rounded_up(job.global_batch, replicas), microbatch);
}

namespace {

std::set<int> all_replica_counts(const model::Job& job, const cluster::IslandHierarchy& hierarchy, int most,
                                 const Splitting& splitting) {
  std::set<int> counts;
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    for (const int replicas : replica_counts(job, level, most, splitting)) counts.insert(replicas);
  }
  return counts;
}

std::set<std::int64_t> all_microbatch_sizes(const model::Job& job, const std::set<int>& replica_counts,
                                            const Splitting& splitting) {
  std::set<std::int64_t> sizes;
  for (const int replicas : replica_counts) {
    for (const std::int64_t b : microbatch_sizes(job, replicas, splitting)) sizes.insert(b);
  }
  return sizes;
}

}  // namespace

std::size_t mixed_pairs(const model::Job& job, const cluster::IslandHierarchy& hierarchy,
                        const SearchOptions& options) {
  if (!job.allow.mixed_stages || options.max_parts < 2) return 0;
  const int gpus = gpu_count(hierarchy.levels.front(), options.constraints.gpu_types);
  if (gpus <= kSmallFleet) return kAllPairs;
  if (gpus <= 32) return 24;
  if (gpus <= 128) return 12;
  return 4;
}

namespace {

// What is left out of the sizes that the GPUs of a level would allow.
void add_size_rules(const cluster::IslandHierarchy& hierarchy, const GpuTypes& types, std::vector<std::string>& rules) {
  const int gpus = gpu_count(hierarchy.levels.front(), types);
  const auto classes = classes_of(hierarchy.levels.front(), types);
  const auto is_large = [](const cluster::IslandClass& c) { return c.gpus_per_member > kAnySizes; };
  const auto has_several = [](const cluster::IslandClass& c) { return c.member_count() > 1; };
  if (gpus > kEverySize) {
    rules.emplace_back("shapes of a part of a member: powers of two of GPUs, and divisors of its GPUs");
    rules.push_back(std::string("shapes of members and of islands: powers of two") +
                    (gpus > kThreeTimes ? "" : ", three times those") + ", and all of them");
  }
  if (gpus > kLargeFleet) {
    rules.push_back("shapes: at least " + std::to_string(kUnitsOfLargeFleet) +
                    "th parts of a pipeline's share of a class");
  }
  if (std::ranges::any_of(classes, [&](const auto* c) { return is_large(*c) && has_several(*c); })) {
    rules.push_back("parts of members of more than " + std::to_string(kAnySizes) + " GPUs: powers of two");
  }
  if (std::ranges::any_of(classes,
                          [&](const auto* c) { return (gpus > kSmallFleet || is_large(*c)) && has_several(*c); })) {
    rules.push_back("pipelines on several members of a class: stages hand over as far apart as these may be");
  }
  if (gpus > kSmallFleet) {
    rules.push_back("replicas: powers of two, and small odd numbers times those that divide the GPUs of every class");
    rules.push_back("replicas reduce their gradients as far apart as members of their classes may be");
  }
}

/// Of what the job wants; empty: it leaves the groups free.
std::string sharding_rule(const model::ShardingGroup& wanted) {
  const std::string text = "ZeRO shards over ";
  switch (wanted.kind) {
    case model::ShardingGroup::Kind::kAny: return "";
    case model::ShardingGroup::Kind::kAll: return text + "all data-parallel ranks of a stage";
    case model::ShardingGroup::Kind::kNode: return text + "the data-parallel ranks of a node";
    case model::ShardingGroup::Kind::kRanks: break;
  }
  return text + std::to_string(wanted.ranks) + " data-parallel ranks of a stage, or all where it has fewer";
}

}  // namespace

Space name_space(const model::Job& job, const cluster::IslandHierarchy& hierarchy, const SearchOptions& options) {
  Space space;
  const Splitting splitting = splitting_of(hierarchy, options);
  const std::set<int> counts = all_replica_counts(job, hierarchy, options.max_replicas, splitting);
  const std::set<std::int64_t> sizes = all_microbatch_sizes(job, counts, splitting);
  space.replicas.assign(counts.begin(), counts.end());
  space.microbatches.assign(sizes.begin(), sizes.end());
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    space.levels.push_back(level.name);
    const int gpus = gpu_count(level, splitting.types);
    for (const cluster::IslandClass* c : classes_of(level, splitting.types)) {
      space.shapes.emplace_back(c->alias, shapes_of(*c, gpus));
    }
  }
  add_size_rules(hierarchy, splitting.types, space.rules);
  if (job.allow.cp) {
    space.rules.push_back("context parallelism in chunks of fewer than " +
                          std::to_string(parallelizer::kMinChunkTokens) +
                          " tokens: where every replica of a stage works on one sample");
  }
  if (const std::string rule = sharding_rule(job.sharding_group); !rule.empty()) space.rules.push_back(rule);
  if (const std::size_t pairs = mixed_pairs(job, hierarchy, options); pairs > 0) {
    const std::string which = pairs == kAllPairs ? "any pair" : "the " + std::to_string(pairs) + " largest pairs";
    space.rules.push_back("mixed stages: two classes, " + which + " of shapes, samples in eighths");
  }
  return space;
}

}  // namespace tangram::compose
