// Host files and rank maps. Goes in: all files of a request. Comes out: which of them is the job, and the GPUs in the
// order of ranks.
#pragma once

#include <optional>
#include <vector>

#include "tangram/import/job.hpp"

namespace tangram::importing {

struct SortedFiles {
  std::vector<const SourceFile*> job;
  std::vector<RankGpu> ranks;
  int pipelines = 0;  ///< of the rank map; 0: there is none
};

inline constexpr const char* kRanksUnknown =
    "no host file or rank map: ranks go to the GPUs of the cluster, hosts in the order of names";

/// A rank map tells more than a host file: where both are given it counts alone.
[[nodiscard]] SortedFiles sort_files(const std::vector<SourceFile>& files, Diagnostics& sink);

}  // namespace tangram::importing
