// Runs of one's own, which correct what is predicted. Goes in: files of measurements, rows of which may name a launch
// plan that ran. Comes out: the runs, with what is predicted of each today, and why others are left out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "command.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/discrepancy/discrepancy.hpp"

namespace tangram::app {

struct OwnRuns {
  std::vector<discrepancy::Run> runs;
  std::vector<std::string> left_out;  ///< "monday: tensor degree is not printed"
};

/// Paths of plans are relative to the file that names them. Mistakes of all files; and that none of the runs has a time
/// and can be expressed, or that there are too many.
[[nodiscard]] Expected<OwnRuns> load_own_runs(const std::vector<std::string>& paths,
                                              std::span<const cluster::GpuType> devices,
                                              const cost::ProfileSet& profiles);

/// On standard error: runs that say nothing.
void report_left_out(const Context& context, const OwnRuns& runs);

}  // namespace tangram::app
