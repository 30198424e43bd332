// Where plugins run. Goes in: settings. Comes out: what starts their workers (here, through srun or through mpirun),
// how many there may be, and where what they print is kept.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "settings.hpp"
#include "tangram/parallelizer/plugin.hpp"

namespace tangram::app {

using Progress = std::function<void(const std::string&)>;

/// Threads that planning may use: --jobs, or one per core.
[[nodiscard]] int planning_slots(const Settings& settings);

/// Threads that the workers of a plugin may use together: --worker-cores, or with --workers slurm the cores of the
/// tasks of the allocation that we are in, or those of planning.
[[nodiscard]] int worker_slots(const Settings& settings);

/// The folder of --plugin-log-dir is made, and tried: that it cannot be written is told before the work.
[[nodiscard]] Expected<parallelizer::PluginOptions> plugin_options(const Settings& settings, int slots,
                                                                   const Progress& progress);

/// One for each plugin, which the plugin's pools share. srun or mpirun not being there is told at once.
[[nodiscard]] Expected<std::unique_ptr<parallelizer::Launcher>> make_launcher(const Settings& settings, int workers,
                                                                              int threads, const Progress& progress);

}  // namespace tangram::app
