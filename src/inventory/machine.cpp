#include "machine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "places.hpp"

#ifdef TANGRAM_HAVE_HWLOC
#include <hwloc.h>

#include <memory>
#include <type_traits>
#endif

namespace tangram::inventory {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// "200 Gb/sec (4X HDR)"
double rate_of(const std::string& text) {
  double rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  const bool gigabits = error == std::errc() && std::string_view(end, text.data() + text.size()).starts_with(" Gb/sec");
  return gigabits && rate > 0 ? rate : 0;
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> entries;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

std::vector<Port> active_ports(const std::string& sys) {
  std::vector<Port> ports;
  for (const auto& card : entries_of(std::filesystem::path(sys) / "class" / "infiniband")) {
    for (const auto& path : entries_of(card / "ports")) {
      Port port;
      port.name = fmt::format("{} port {}", printable(card.filename().string()), printable(path.filename().string()));
      port.gigabits = rate_of(first_line(path / "rate"));
      port.ethernet = first_line(path / "link_layer") == "Ethernet";
      const bool active = first_line(path / "state").ends_with("ACTIVE");
      if (active && port.gigabits > 0) ports.push_back(std::move(port));
    }
  }
  return ports;
}

std::string host_name() {
  std::array<char, 256> name{};
  const bool known = gethostname(name.data(), name.size() - 1) == 0;
  return known && is_host_name(name.data()) ? std::string(name.data()) : std::string("localhost");
}

#ifdef TANGRAM_HAVE_HWLOC

namespace {

constexpr unsigned kDisplayClass = 0x03;      // of PCI: VGA and 3D controllers
constexpr unsigned kAcceleratorClass = 0x12;  // processing accelerators, as AMD's Instinct
constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kAmd = 0x1002;

void take_pci_device(const hwloc_obj& object, Board& board) {
  const auto& pci = object.attr->pcidev;
  const unsigned kind = pci.class_id >> 8U;
  if (kind != kDisplayClass && kind != kAcceleratorClass) return;
  if (pci.vendor_id != kNvidia && pci.vendor_id != kAmd) return;
  board.gpus.push_back(
      fmt::format("{} {:04x}:{:04x}", pci.vendor_id == kNvidia ? "NVIDIA" : "AMD", pci.vendor_id, pci.device_id));
}

}  // namespace

Board look_at_board() {
  Board board;
  // Everything asked for is in sysfs. Plugins would open displays, OpenCL and CUDA, and leave their memory behind.
  ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 0);
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return board;
  const std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, void (*)(hwloc_topology_t)> topology(
      raw, &hwloc_topology_destroy);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(raw) != 0) return board;
  board.sockets = std::max(0, hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PACKAGE));
  board.numa_nodes = std::max(0, hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_NUMANODE));
  if (hwloc_obj_t package = hwloc_get_obj_by_type(raw, HWLOC_OBJ_PACKAGE, 0); package != nullptr) {
    const char* model = hwloc_obj_get_info_by_name(package, "CPUModel");
    if (model != nullptr) board.cpu = printable(trimmed(model));
  }
  for (hwloc_obj_t device = hwloc_get_next_pcidev(raw, nullptr); device != nullptr;
       device = hwloc_get_next_pcidev(raw, device)) {
    take_pci_device(*device, board);
  }
  return board;
}

#else

Board look_at_board() { return {}; }

#endif

}  // namespace tangram::inventory
