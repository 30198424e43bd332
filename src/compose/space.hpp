// The named space (README.md): which shapes, replica counts and microbatch sizes are searched. Goes in: island
// levels, the job and what the options forbid. Comes out: fixed lists, a function of the inputs alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/compose/search.hpp"

namespace tangram::compose {

/// Shapes of one class, in GPUs, ascending. Each size divides the next one or is made of whole members, so that
/// counting units decides whether a set of shapes can be placed.
[[nodiscard]] std::vector<int> shapes_of(const cluster::IslandClass& island_class);

/// A class as one replica sees it.
struct ClassShare {
  std::vector<int> shapes;  ///< GPUs; all multiples of unit
  int unit = 1;             ///< GPUs of one unit: the smallest shape
  int units = 0;            ///< inventory of one replica; 0: the class is too small to be shared by that many
};

/// Shares of all classes of a level among R replicas. Fleets of more than 2,048 GPUs start at the smallest shape that
/// leaves a replica at most 32 units of the class, which keeps the composer's states few; fewer where a level has
/// dozens of classes, so that a state has a place for all of them (up to kMostClasses).
[[nodiscard]] std::vector<ClassShare> share_classes(const cluster::IslandLevel& level, int replicas);

/// Powers of two that divide the global batch and leave at least one class with a unit; 1 is always in it.
[[nodiscard]] std::vector<int> replica_counts(const model::Job& job, const cluster::IslandLevel& level, int most);

/// Sizes b with M = batch / (R b) whole: powers of two and three times powers of two that divide batch / R.
[[nodiscard]] std::vector<std::int64_t> microbatch_sizes(const model::Job& job, int replicas);

/// What one program is about.
struct Setting {
  int level = 0;  ///< of islands
  int replicas = 1;
  std::int64_t microbatch = 1;  ///< samples
  std::int64_t microbatches = 1;
};

/// Settings of one microbatch size; never without any.
struct SizeSettings {
  std::int64_t microbatch = 1;
  std::vector<Setting> settings;
};

/// All settings of the space, likely sizes first: an early incumbent spares the others.
[[nodiscard]] std::vector<SizeSettings> settings_by_size(const model::Job& job,
                                                         const cluster::IslandHierarchy& hierarchy, int most_replicas);

/// Pairs of shapes offered to mixed stages; 0: there are none. They multiply the queries, and matter less the more
/// stages there are.
[[nodiscard]] std::size_t mixed_pairs(const model::Job& job, const cluster::IslandHierarchy& hierarchy,
                                      const SearchOptions& options);

/// The space as plans name it.
[[nodiscard]] Space name_space(const model::Job& job, const cluster::IslandHierarchy& hierarchy,
                               const SearchOptions& options);

}  // namespace tangram::compose
