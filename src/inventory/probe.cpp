// This machine as a fleet of one node.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collector.hpp"
#include "host_bus.hpp"
#include "machine.hpp"
#include "nvml.hpp"
#include "topology_matrix.hpp"

namespace tangram::inventory {
namespace {

constexpr double kGigabitPerSecond = 1e9 / 8;

/// The fastest ports, which are those that GPUs talk through.
std::optional<FoundNetwork> network_of(const std::vector<Port>& ports) {
  if (ports.empty()) return std::nullopt;
  const auto best = std::ranges::max_element(ports, {}, &Port::gigabits);
  FoundNetwork network;
  network.cards = static_cast<int>(std::ranges::count(ports, best->gigabits, &Port::gigabits));
  network.per_card = BytesPerSecond(best->gigabits * kGigabitPerSecond);
  network.kind = best->ethernet ? "roce" : "infiniband";
  return network;
}

Diagnostic no_gpus(const std::string& why, const Board& board, const std::string& library) {
  Diagnostic diagnostic;
  diagnostic.code = "no-gpus";
  if (board.gpus.empty()) {
    diagnostic.message = fmt::format("no GPU found on this machine: {}", why);
    diagnostic.hint = "run it on a node with GPUs, or give reports of the nodes to from-nvidia-smi";
  } else {
    diagnostic.message = fmt::format("{} on the PCIe bus, but no driver answers: {}", board.gpus.front(), why);
    diagnostic.hint = fmt::format("{} comes with NVIDIA's driver; other vendors' GPUs are not asked", library);
  }
  return diagnostic;
}

void take_gpus(const DriverGpus& driver, const std::string& library, FoundNode& node, Collector& collector) {
  io::Document report;  // where a name that is not known stands
  report.file = library;
  TopologyMatrix matrix;
  matrix.nvlink = driver.nvlink;
  std::map<const cluster::GpuType*, std::vector<int>> indices;
  double slot = 0;
  for (std::size_t i = 0; i < driver.gpus.size(); ++i) {
    const DriverGpu& gpu = driver.gpus[i];
    if (!gpu.failure.empty() || gpu.sliced) {
      collector.leave_out(fmt::format("{}, GPU {}", node.name, i),
                          gpu.sliced ? "it is cut into slices (MIG)" : gpu.failure);
      continue;
    }
    const cluster::GpuType* device = collector.gpus().find(report, Text{gpu.name, 0, 0}, gpu.memory);
    if (device == nullptr) continue;
    Collector::add_gpus(node, *device, 1);
    indices[device].push_back(static_cast<int>(i));
    const double rate = pcie_gigabytes(gpu.pcie_generation, gpu.pcie_lanes);
    if (rate > 0 && (slot == 0 || rate < slot)) slot = rate;
  }
  for (FoundGpus& gpus : node.gpus) {
    const int joined = matrix.joined(indices[gpus.device]);
    gpus.joined = gpus.count % joined == 0 ? joined : 1;
  }
  node.host_bus = slower_bus(node.gpus, slot);
}

}  // namespace

Expected<Inventory> probe(const Request& request, std::span<const cluster::GpuType> devices,
                          const ProbePlaces& places) {
  const Board board = look_at_board();
  const auto driver = ask_driver(places.nvml);
  if (!driver) return fail(no_gpus(driver.error(), board, places.nvml));
  if (driver->gpus.empty()) return fail(no_gpus("the driver has none", board, places.nvml));

  FoundNode node;
  node.name = host_name();
  Collector collector(request, devices, node.name);
  take_gpus(*driver, places.nvml, node, collector);
  node.network = network_of(active_ports(places.sys));
  if (!board.cpu.empty()) node.labels["cpu"] = board.cpu;
  if (board.numa_nodes > 0) {
    collector.note(fmt::format("{} sockets, {} NUMA nodes", board.sockets, board.numa_nodes));
  }
  collector.add(std::move(node));
  return collector.finish();
}

}  // namespace tangram::inventory
