#include "space.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "radices.hpp"

namespace tangram::compose {

namespace {

// Up to this size every shape is offered; beyond it small shapes are left out so that a replica has at most so many
// units of a class: the states of the composer grow with the product of the units.
constexpr int kLargeFleet = 2048;
constexpr int kUnitsOfLargeFleet = 32;

constexpr double kUsualMicrobatches = 64;  // sizes that give about so many are tried first

int gpu_count(const cluster::IslandLevel& level) {
  int gpus = 0;
  for (const cluster::IslandClass& c : level.classes) gpus += c.gpu_count();
  return gpus;
}

int most_units(const cluster::IslandLevel& level) {
  return gpu_count(level) > kLargeFleet ? kUnitsOfLargeFleet : kLargeFleet;
}

}  // namespace

std::vector<int> shapes_of(const cluster::IslandClass& island_class) {
  std::vector<int> shapes;
  const int member = island_class.gpus_per_member;
  for (int gpus = 1; gpus < member && member % gpus == 0; gpus *= 2) shapes.push_back(gpus);
  const int members = island_class.members_per_island;
  const int islands = static_cast<int>(island_class.islands.size());
  for (int k = 1; k < members; k *= 2) {
    if (islands == 1 || members % k == 0) shapes.push_back(k * member);
  }
  for (int k = 1; k < islands; k *= 2) shapes.push_back(k * members * member);
  shapes.push_back(islands * members * member);
  std::sort(shapes.begin(), shapes.end());
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  return shapes;
}

namespace {

std::vector<ClassShare> share_within(const cluster::IslandLevel& level, int replicas, int limit) {
  std::vector<ClassShare> shares;
  for (const cluster::IslandClass& island_class : level.classes) {
    const int share = island_class.gpu_count() / replicas;
    ClassShare result;
    for (const int gpus : shapes_of(island_class)) {
      if (gpus > share) break;
      if (share / gpus > limit) continue;
      // A shape that is no multiple of the unit would leave part of a unit unused.
      if (!result.shapes.empty() && gpus % result.shapes.front() != 0) continue;
      result.shapes.push_back(gpus);
    }
    if (!result.shapes.empty()) {
      result.unit = result.shapes.front();
      result.units = share / result.unit;
    }
    shares.push_back(std::move(result));
  }
  return shares;
}

// Whether a state of the composer has a place for the units of every class.
bool can_be_counted(const std::vector<ClassShare>& shares) {
  std::vector<int> units;
  units.reserve(shares.size());
  for (const ClassShare& share : shares) units.push_back(share.units);
  return radices_of(units).has_value();
}

}  // namespace

std::vector<ClassShare> share_classes(const cluster::IslandLevel& level, int replicas) {
  int limit = most_units(level);
  std::vector<ClassShare> shares = share_within(level, replicas, limit);
  while (limit > 1 && !can_be_counted(shares)) {
    limit /= 2;
    shares = share_within(level, replicas, limit);
  }
  return shares;
}

std::vector<int> replica_counts(const model::Job& job, const cluster::IslandLevel& level, int most) {
  std::vector<int> counts{1};
  if (!job.allow.replicas) return counts;
  for (int r = 2; r <= most && job.global_batch % r == 0; r *= 2) {
    const bool useful = std::any_of(level.classes.begin(), level.classes.end(),
                                    [&](const cluster::IslandClass& c) { return c.gpu_count() >= r; });
    if (!useful) break;
    counts.push_back(r);
  }
  return counts;
}

std::vector<std::int64_t> microbatch_sizes(const model::Job& job, int replicas) {
  const std::int64_t batch = job.global_batch / replicas;
  if (job.microbatch > 0) {
    if (batch % job.microbatch != 0) return {};
    return {job.microbatch};
  }
  std::vector<std::int64_t> sizes;
  for (const std::int64_t odd : {1, 3}) {
    for (std::int64_t b = odd; b <= batch; b *= 2) {
      if (batch % b == 0) sizes.push_back(b);
    }
  }
  if (std::find(sizes.begin(), sizes.end(), batch) == sizes.end()) sizes.push_back(batch);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

namespace {

std::set<int> all_replica_counts(const model::Job& job, const cluster::IslandHierarchy& hierarchy, int most) {
  std::set<int> counts;
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    for (const int replicas : replica_counts(job, level, most)) counts.insert(replicas);
  }
  return counts;
}

std::set<std::int64_t> all_microbatch_sizes(const model::Job& job, const std::set<int>& replica_counts) {
  std::set<std::int64_t> sizes;
  for (const int replicas : replica_counts) {
    for (const std::int64_t b : microbatch_sizes(job, replicas)) sizes.insert(b);
  }
  return sizes;
}

std::vector<Setting> settings_of(const model::Job& job, const cluster::IslandHierarchy& hierarchy, int most_replicas,
                                 std::int64_t b) {
  std::vector<Setting> settings;
  for (std::size_t level = 0; level < hierarchy.levels.size(); ++level) {
    for (const int replicas : replica_counts(job, hierarchy.levels[level], most_replicas)) {
      const std::vector<std::int64_t> sizes = microbatch_sizes(job, replicas);
      if (std::ranges::find(sizes, b) == sizes.end()) continue;
      settings.push_back({static_cast<int>(level), replicas, b, job.global_batch / replicas / b});
    }
  }
  return settings;
}

}  // namespace

std::vector<SizeSettings> settings_by_size(const model::Job& job, const cluster::IslandHierarchy& hierarchy,
                                           int most_replicas) {
  std::vector<SizeSettings> sizes;
  for (const std::int64_t b : all_microbatch_sizes(job, all_replica_counts(job, hierarchy, most_replicas))) {
    sizes.push_back({b, settings_of(job, hierarchy, most_replicas, b)});
  }
  const auto oddity = [&](const SizeSettings& size) {
    const double microbatches = static_cast<double>(job.global_batch) / static_cast<double>(size.microbatch);
    return std::abs(std::log2(microbatches / kUsualMicrobatches));
  };
  std::ranges::stable_sort(sizes, {}, oddity);
  return sizes;
}

std::size_t mixed_pairs(const model::Job& job, const cluster::IslandHierarchy& hierarchy,
                        const SearchOptions& options) {
  if (!job.allow.mixed_stages || options.max_parts < 2) return 0;
  const int gpus = gpu_count(hierarchy.levels.front());
  if (gpus <= 32) return 24;
  if (gpus <= 128) return 12;
  return 4;
}

Space name_space(const model::Job& job, const cluster::IslandHierarchy& hierarchy, const SearchOptions& options) {
  Space space;
  const std::set<int> counts = all_replica_counts(job, hierarchy, options.max_replicas);
  const std::set<std::int64_t> sizes = all_microbatch_sizes(job, counts);
  space.replicas.assign(counts.begin(), counts.end());
  space.microbatches.assign(sizes.begin(), sizes.end());
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    space.levels.push_back(level.name);
    for (const cluster::IslandClass& c : level.classes) space.shapes.emplace_back(c.alias, shapes_of(c));
  }
  if (const std::size_t pairs = mixed_pairs(job, hierarchy, options); pairs > 0) {
    space.rules.push_back("mixed stages: two classes, the " + std::to_string(pairs) +
                          " largest pairs of shapes, samples in eighths");
  }
  return space;
}

}  // namespace tangram::compose
