// The files commands read.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tangram/accuracy/measurement.hpp"
#include "tangram/cluster/edits.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/dispatch/document.hpp"
#include "tangram/kernels/kernel_graph.hpp"
#include "tangram/model/model.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::app {

/// Puts what was loaded into `target`, or what was wrong with it behind the mistakes of other files.
template <class Loaded, class Target>
void take(Loaded loaded, Target& target, Diagnostics& mistakes) {
  if (loaded) {
    target = std::move(*loaded);
  } else {
    mistakes.insert(mistakes.end(), loaded.error().begin(), loaded.error().end());
  }
}

/// `path` may also be the name of a shipped cluster or model (shipped.hpp). With what --drop, --add and --set change in
/// it.
[[nodiscard]] Expected<cluster::Fleet> load_fleet(const std::string& path, const cluster::Edits& edits = {});
[[nodiscard]] Expected<model::Model> load_model(const std::string& path, const model::JobOverrides& overrides = {});
/// GPU types of the catalogue and of the fleet.
[[nodiscard]] std::vector<cluster::GpuType> devices_of(const cluster::Fleet& fleet);
/// Profiles of these GPU types, with the mistakes of all files.
[[nodiscard]] Expected<cost::ProfileSet> load_profiles(const std::vector<std::string>& paths,
                                                       std::span<const cluster::GpuType> devices);
/// The catalogue, with the GPU types of the file (empty: none) in place of its own.
[[nodiscard]] Expected<std::vector<cluster::GpuType>> load_devices(const std::string& path);
[[nodiscard]] Expected<std::vector<accuracy::Measurement>> load_measurements(const std::string& path);
[[nodiscard]] Expected<plan::LaunchPlan> load_plan(const std::string& path);
[[nodiscard]] Expected<dispatch::ScheduleFile> load_schedule(const std::string& path);

struct KernelGraphFile {
  kernels::KernelGraph graph;
  std::string digest;  ///< of its text
};
[[nodiscard]] Expected<KernelGraphFile> load_kernel_graph(const std::string& path);

}  // namespace tangram::app
