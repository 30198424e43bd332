#include "inputs.hpp"

#include <utility>

#include "shipped.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/file.hpp"
#include "tangram/kernels/document.hpp"

namespace tangram::app {

namespace {

/// Reads a file and hands its text and the name shown in errors to `reader`.
template <class Reader>
auto load(const std::string& path, Reader reader) -> decltype(reader(std::string(), std::string())) {
  auto text = io::read_file(path);
  if (!text) return fail(std::move(text.error()));
  return reader(std::move(*text), path);
}

/// The same, of a file or the shipped one of that name.
template <class Reader>
auto load_shipped(Shipped kind, const std::string& path, Reader reader) {
  auto loaded = load(shipped_or(kind, path), reader);
  if (!loaded && loaded.error().front().code == "cannot-read") loaded.error().front().hint = shipped_hint(kind, path);
  return loaded;
}

}  // namespace

Expected<cluster::Fleet> load_fleet(const std::string& path, const cluster::Edits& edits) {
  auto fleet = load_shipped(Shipped::kCluster, path, [](std::string text, std::string file) {
    return cluster::read_fleet(std::move(text), std::move(file));
  });
  return fleet ? cluster::edited(std::move(*fleet), edits) : fleet;
}

Expected<model::Model> load_model(const std::string& path, const model::JobOverrides& overrides) {
  return load_shipped(Shipped::kModel, path, [&](std::string text, std::string file) {
    return model::read_any_model(std::move(text), std::move(file), overrides);
  });
}

std::vector<cluster::GpuType> devices_of(const cluster::Fleet& fleet) {
  std::vector<cluster::GpuType> devices = cluster::catalogue();
  for (const cluster::Node& node : fleet.nodes) {
    for (const cluster::DeviceGroup& group : node.groups) devices.push_back(group.device);
  }
  return devices;
}

Expected<cost::ProfileSet> load_profiles(const std::vector<std::string>& paths,
                                         std::span<const cluster::GpuType> devices) {
  cost::ProfileSet profiles;
  Diagnostics mistakes;
  for (const std::string& path : paths) {
    auto profile = load(path, [&](std::string text, std::string file) {
      return cost::read_profile(std::move(text), std::move(file), devices);
    });
    if (profile) {
      profiles.add(std::move(*profile));
    } else {
      mistakes.insert(mistakes.end(), profile.error().begin(), profile.error().end());
    }
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return profiles;
}

Expected<std::vector<cluster::GpuType>> load_devices(const std::string& path) {
  if (path.empty()) return cluster::catalogue();
  return load(path, [](std::string text, std::string file) {
    return cluster::read_catalogue(std::move(text), std::move(file));
  });
}

Expected<std::vector<accuracy::Measurement>> load_measurements(const std::string& path) {
  return load(path, [](std::string text, std::string file) {
    return accuracy::read_measurements(std::move(text), std::move(file));
  });
}

Expected<plan::LaunchPlan> load_plan(const std::string& path) {
  return load(path,
              [](std::string text, std::string file) { return plan::read_plan(std::move(text), std::move(file)); });
}

Expected<dispatch::ScheduleFile> load_schedule(const std::string& path) {
  return load(path, [](std::string text, std::string file) {
    return dispatch::read_schedule(std::move(text), std::move(file));
  });
}

Expected<KernelGraphFile> load_kernel_graph(const std::string& path) {
  return load(path, [](std::string text, std::string file) -> Expected<KernelGraphFile> {
    KernelGraphFile result;
    result.digest = digest(text);
    auto graph = kernels::read_kernel_graph(std::move(text), std::move(file));
    if (!graph) return fail(std::move(graph.error()));
    result.graph = *std::move(graph);
    return result;
  });
}

}  // namespace tangram::app
