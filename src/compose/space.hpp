// The named space (README.md): which shapes, replica counts and microbatch sizes are searched. Goes in: island
// levels, the job and what the options forbid. Comes out: fixed lists, a function of the inputs alone. A search that
// leaves out GPU types has the space of a fleet without them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/compose/links.hpp"
#include "tangram/compose/search.hpp"

namespace tangram::compose {

using GpuTypes = std::vector<std::string>;  ///< that stages may use; empty: all

[[nodiscard]] int gpu_count(const cluster::IslandLevel& level);
[[nodiscard]] int gpu_count(const cluster::IslandLevel& level, const GpuTypes& types);
[[nodiscard]] bool may_use(const GpuTypes& types, const cluster::IslandClass& island_class);

/// Fleets of up to so many GPUs are offered every size of shape; larger ones fewer (Space::rules).
inline constexpr int kEverySize = 64;

/// In fleets of up to so many GPUs stages of a pipeline may share a member where others do not, all pipelines may be in
/// one, any two shapes may share a stage, and any small odd numbers of replicas and samples are offered. In larger ones
/// labels and programs would be several times as many.
inline constexpr int kSmallFleet = 16;

/// Shapes of one class, in GPUs, ascending: parts of a member, whole members of an island, whole islands. In a fleet of
/// more than kEverySize GPUs sizes are powers of two and all there are; of a member its divisors, too, and up to 256
/// GPUs three times powers of two of whole members and islands.
[[nodiscard]] std::vector<int> shapes_of(const cluster::IslandClass& island_class, int fleet_gpus);

/// What must hold, beside the sum of units, of the shapes that one replica uses: that all of them can be placed.
/// Weights of shapes add up to at most `most` (bin_packing.hpp).
struct PlacementLimit {
  int item = 1;                       ///< GPUs of what bins hold: 1, or those of a member
  int bin = 1;                        ///< GPUs of a bin: of a member, or of an island
  std::vector<std::int64_t> weights;  ///< by items, up to a bin
  std::int64_t most = 0;

  [[nodiscard]] std::int64_t weight_of(int gpus) const;
};

/// A class as one replica sees it.
struct ClassShare {
  std::vector<int> shapes;  ///< GPUs; all multiples of unit
  int unit = 1;             ///< GPUs of one unit: the smallest shape
  int units = 0;            ///< inventory of one replica; 0: the class is too small to be shared by that many
  std::vector<PlacementLimit> limits;
  /// GPUs of a member that consecutive stages may take together, ascending: over its inner link. Empty: stages of the
  /// class hand over as far apart as they may come to be.
  std::vector<int> runs;
  bool in_one_member = false;  ///< all stages of a replica on this class are in the same member
};

/// Shares of all classes of a level among R replicas. Fleets of more than 2,048 GPUs start at the smallest shape that
/// leaves a replica at most 32 units of the class, which keeps the composer's states few; fewer where a level has
/// dozens of classes, so that a state has a place for all of them (up to kMostClasses). Classes of other types have no
/// units.
[[nodiscard]] std::vector<ClassShare> share_classes(const cluster::IslandLevel& level, int replicas,
                                                    const GpuTypes& types = {});
/// The same for pipelines within a reach: no units of classes outside it, at most those of one member within one.
[[nodiscard]] std::vector<ClassShare> share_classes(const cluster::IslandLevel& level, int replicas, const Reach& reach,
                                                    const GpuTypes& types = {});

/// What share_classes() says of each level, number of replicas and reach, worked out once. Thread-safe.
class ShareTable {
 public:
  /// Both must outlive it.
  ShareTable(const cluster::IslandHierarchy& hierarchy, const GpuTypes& types) : hierarchy_(hierarchy), types_(types) {}

  [[nodiscard]] const std::vector<ClassShare>& at(int level, int replicas, const Reach& reach) const;

 private:
  const cluster::IslandHierarchy& hierarchy_;
  const GpuTypes& types_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<int, int>, std::vector<ClassShare>> anywhere_;  ///< of all reaches
  mutable std::map<std::tuple<int, int, Reach>, std::vector<ClassShare>> known_;
};

/// How batches may be split.
struct Splitting {
  bool equal = false;       ///< all pipelines, microbatches and replicas of a stage have equally many samples
  bool any = false;         ///< replicas of any listed number that get GPUs, not only of those that divide them
  std::vector<int> odd{1};  ///< microbatches are these times powers of two, to suit groups of 3, 5, 6 ... GPUs
  GpuTypes types = {};      ///< whose GPUs replicas are counted for
};

/// Odd parts are those of the GPUs of a member, and of all GPUs where they are of one class; only small ones.
[[nodiscard]] Splitting splitting_of(const cluster::IslandHierarchy& hierarchy, const SearchOptions& options);

/// Up to `most` and the global batch: powers of two that leave at least one class with a unit, and odd parts times
/// powers of two that divide the GPUs of all classes; 1 is always in it.
[[nodiscard]] std::vector<int> replica_counts(const model::Job& job, const cluster::IslandLevel& level, int most,
                                              const Splitting& splitting);

/// Samples of whole microbatches, ascending. Of the pipeline with the most samples, B, those that divide it: powers of
/// two, three times those, and B. Where equal is demanded no others, and none where R does not divide the batch. Else
/// powers of two that are not within a factor of 3/2 of any of these, and larger odd parts times powers of two; less
/// what they can all be smaller without a microbatch more.
[[nodiscard]] std::vector<std::int64_t> microbatch_sizes(const model::Job& job, int replicas,
                                                         const Splitting& splitting);

/// M: of the pipeline with the most samples, the last one possibly smaller.
[[nodiscard]] std::int64_t microbatches_of(const model::Job& job, int replicas, std::int64_t microbatch);

/// Pairs of shapes offered to mixed stages, the largest first; 0: there are none. They multiply the queries, and matter
/// less the more stages there are.
[[nodiscard]] std::size_t mixed_pairs(const model::Job& job, const cluster::IslandHierarchy& hierarchy,
                                      const SearchOptions& options);

/// The space as plans name it.
[[nodiscard]] Space name_space(const model::Job& job, const cluster::IslandHierarchy& hierarchy,
                               const SearchOptions& options);

}  // namespace tangram::compose
