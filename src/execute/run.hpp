// One iteration of a job. Goes in: the job, and what to do wrong. Comes out: what the ranks ended with.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "rank.hpp"

namespace tangram::execute {

struct Run {
  std::optional<Finding> stopped;  ///< what ended it early; the rest is then unfinished
  double loss = 0;
  std::int64_t messages = 0;
  std::int64_t collectives = 0;
  std::unique_ptr<Communicator> communicator;  ///< groups live here
  std::vector<std::unique_ptr<RankProgram>> ranks;
};

/// `job` must outlive the run.
[[nodiscard]] Run run(const Job& job, const Misbehaviour& misbehaviour = {});

}  // namespace tangram::execute
