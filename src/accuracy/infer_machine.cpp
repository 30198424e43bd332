#include <algorithm>
#include <regex>
#include <string>

#include "infer.hpp"
#include "tangram/cost/communication.hpp"

namespace tangram::accuracy {
namespace {

constexpr double kGigabitPerSecond = 1e9 / 8;
constexpr double kGigabytePerSecond = 1e9;
constexpr double kGibi = 1024.0 * 1024.0 * 1024.0;

/// Networks of cloud instances, Gbit/s (AWS, "Amazon EC2 accelerated computing instances").
struct Instance {
  const char* name;
  double gigabits;
};
constexpr Instance kInstances[] = {
    {"p3.8xlarge", 10},    {"p3.16xlarge", 25},   {"p3dn.24xlarge", 100}, {"p4d.24xlarge", 400}, {"p4de.24xlarge", 400},
    {"p5.48xlarge", 3200}, {"g4dn.12xlarge", 50}, {"g4dn.metal", 100},    {"g5.48xlarge", 100},  {"g6.48xlarge", 100}};

std::optional<double> first_number(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  std::smatch found;
  if (!std::regex_search(text, found, expression)) return std::nullopt;
  return std::stod(found[1]);
}

/// The library's regular expressions recurse once a character.
constexpr std::size_t kLongestText = 1000;

/// Bytes/s of a node as printed; 0: nothing that can be read.
double printed_network(const std::string& all, int per_node) {
  const std::string text = all.substr(0, kLongestText);
  static const std::regex product(R"((\d{1,6}) ?x ?(\d{1,6}(?:\.\d{1,6})?) ?Gb/s)");
  std::smatch found;
  if (std::regex_search(text, found, product)) {
    return std::stod(found[1]) * std::stod(found[2]) * kGigabitPerSecond;
  }
  // A measured rate is what collectives reach; the model takes its share of the raw rate itself.
  static const std::regex measured(R"((\d{1,6}(?:\.\d{1,6})?) ?(GB|GiB)/s)");
  double best = 0;
  if (text.find("measured") != std::string::npos) {
    for (std::sregex_iterator it(text.begin(), text.end(), measured), end; it != end; ++it) {
      const double unit = (*it)[2] == "GiB" ? kGibi : kGigabytePerSecond;
      best = std::max(best, std::stod((*it)[1]) * unit / cost::kNetworkShare);
    }
  }
  if (best > 0) return best;
  if (const auto each = first_number(text, R"((\d{1,6}(?:\.\d{1,6})?) ?Gb/s[^;,]*per GPU)")) {
    return *each * per_node * kGigabitPerSecond;
  }
  if (const auto links = first_number(text, R"((\d{1,6}) ?Omni-Path links)")) return *links * 100 * kGigabitPerSecond;
  if (const auto node = first_number(text, R"((\d{1,6}(?:\.\d{1,6})?) ?Gb/s)")) return *node * kGigabitPerSecond;
  return 0;
}

/// Network of the vendor's reference system, bytes/s a node. DGX-1 (4 x 100 Gbit/s), DGX A100 (8 x 200), DGX H100 and
/// B200 (8 x 400), GH200 on Slingshot-11 (200 a GPU), MI250X and MI300X (one 200 or 400 a device); servers of PCIe
/// cards: one card of 100.
double reference_network(const cluster::GpuType& device, int per_node) {
  const auto each = [&](double gigabits) { return gigabits * per_node * kGigabitPerSecond; };
  const bool module = device.peer_link.bandwidth.value() > 0 && device.peer_reach == 0;
  if (!module) return 100 * kGigabitPerSecond;
  if (device.name.starts_with("GH200")) return each(200);
  if (device.architecture == "volta" || device.architecture == "pascal") return each(50);
  if (device.architecture == "ampere" || device.architecture == "cdna2") return each(200);
  return each(400);
}

}  // namespace

int gpus_per_node(const GpuGroup& group, const cluster::GpuType& device) {
  // Grace Blackwell racks join 72 GPUs by NVLink: the fabric's reach, not the tray's four, decides.
  constexpr int kRack = 72;
  if (device.name.starts_with("GB") && group.count > 0) {
    int domain = std::min(group.count, kRack);
    while (group.count % domain != 0) --domain;
    return domain;
  }
  int per_node = group.per_node;
  if (per_node == 0) per_node = device.name.starts_with("GH200") ? 4 : 8;
  return std::min(per_node, group.count);
}

cluster::Link node_network(const Measurement& measurement, const GpuGroup& group, const cluster::GpuType& device,
                           int per_node) {
  constexpr Nanoseconds kFabricLatency{5'000};     // InfiniBand, RoCE, Slingshot: a few microseconds through NCCL
  constexpr Nanoseconds kEthernetLatency{30'000};  // TCP sockets
  double rate = 0;
  for (const Instance& instance : kInstances) {
    if (group.type.find(instance.name) != std::string::npos) rate = instance.gigabits * kGigabitPerSecond;
  }
  if (rate == 0) rate = printed_network(measurement.interconnect, per_node);
  if (rate == 0) rate = reference_network(device, per_node);
  return {BytesPerSecond(rate), rate <= 100 * kGigabitPerSecond ? kEthernetLatency : kFabricLatency};
}

cluster::Link node_fabric(const Measurement& measurement, const cluster::GpuType& device) {
  if (device.peer_link.bandwidth.value() <= 0 || device.peer_reach != 0) return device.pcie;
  cluster::Link fabric = device.peer_link;
  const std::string text = measurement.interconnect.substr(0, kLongestText);
  if (const auto links = first_number(text, R"(NVLink ?(\d{1,2})-way)")) {
    const double each = device.architecture == "pascal" ? 20 : 25;
    fabric.bandwidth = std::min(fabric.bandwidth, BytesPerSecond(*links * each * kGigabytePerSecond));
  }
  return fabric;
}

bool is_recent(const cluster::GpuType& device) {
  return device.architecture == "hopper" || device.architecture == "blackwell" || device.architecture == "cdna3" ||
         device.architecture == "cdna4";
}

}  // namespace tangram::accuracy
