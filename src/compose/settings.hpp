// Settings: what one program of the search is about. Goes in: the lists of the space, and reaches of pipelines. Comes
// out: all settings in the order in which they are searched, or those one step from another.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/compose/links.hpp"
#include "tangram/compose/search_options.hpp"
#include "tangram/model/model.hpp"

namespace tangram::compose {

/// What one program is about.
struct Setting {
  int level = 0;  ///< of islands
  int replicas = 1;
  std::int64_t microbatch = 1;  ///< samples
  std::int64_t microbatches = 1;
  Reach reach;     ///< of a pipeline
  int chunks = 1;  ///< model chunks of a stage; more than one: interleaved

  /// Whether they differ in model chunks alone: stages have the same options then.
  [[nodiscard]] bool is_alike(const Setting& other) const {
    return level == other.level && replicas == other.replicas && microbatch == other.microbatch && reach == other.reach;
  }
};

/// Whether a pipeline with so many microbatches may have so many model chunks a stage.
[[nodiscard]] bool can_have_chunks(const model::Model& model, std::int64_t microbatches, int chunks);

/// Settings of one microbatch size; never without any.
struct SizeSettings {
  std::int64_t microbatch = 1;
  std::vector<Setting> settings;
};

/// All settings of the space, likely sizes first: an early incumbent spares the others. Where ends of an embedding are
/// tied, there is one of each reach; else of all classes, and of single members that are less than a pipeline's share.
/// In small fleets single members that hold all replicas come on top.
[[nodiscard]] std::vector<SizeSettings> settings_by_size(const model::Model& model,
                                                         const cluster::IslandHierarchy& hierarchy,
                                                         const SearchOptions& options);

/// Settings of the space one step away: of the next smaller or larger microbatch; or of the next number of pipelines
/// that divides the setting's or is a multiple of it, with as many samples a microbatch, or as many more as stages get
/// GPUs. Of the same level and model chunks, and within the same classes.
[[nodiscard]] std::vector<Setting> settings_beside(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                                   const SearchOptions& options, const Setting& setting);

}  // namespace tangram::compose
