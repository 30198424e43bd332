#include <algorithm>
#include <string>

#include "infer.hpp"
#include "number_scanner.hpp"
#include "tangram/cost/communication.hpp"

namespace tangram::accuracy {
namespace {

constexpr double kGigabitPerSecond = 1e9 / 8;
constexpr double kGigabytePerSecond = 1e9;
constexpr double kGibibytePerSecond = 1024.0 * 1024.0 * 1024.0;

/// Networks of cloud instances, Gbit/s (AWS, "Amazon EC2 accelerated computing instances").
struct Instance {
  const char* name;
  double gigabits;
};
constexpr Instance kInstances[] = {
    {"p3.8xlarge", 10},    {"p3.16xlarge", 25},   {"p3dn.24xlarge", 100}, {"p4d.24xlarge", 400}, {"p4de.24xlarge", 400},
    {"p5.48xlarge", 3200}, {"g4dn.12xlarge", 50}, {"g4dn.metal", 100},    {"g5.48xlarge", 100},  {"g6.48xlarge", 100}};

/// A network is printed in a line; what comes after so many characters is none.
constexpr std::size_t kLongestText = 1000;

/// "8x200 Gb/s": so many cards of so much.
std::optional<double> cards_times_rate(std::string_view text, std::span<const TextNumber> numbers) {
  const auto skip = [](std::string_view& rest, char c) {
    const bool there = rest.starts_with(c);
    if (there) rest.remove_prefix(1);
    return there;
  };
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    std::string_view rest = numbers[i - 1].after;
    skip(rest, ' ');
    const bool times = skip(rest, 'x');
    skip(rest, ' ');
    const bool next = rest.size() + numbers[i].before.size() == text.size();
    if (times && next && numbers[i - 1].whole && numbers[i].in("Gb/s")) return numbers[i - 1].value * numbers[i].value;
  }
  return std::nullopt;
}

/// The largest rate that is said to be measured, bytes/s; 0: none.
double measured_rate(std::string_view text, std::span<const TextNumber> numbers) {
  double best = 0;
  if (text.find("measured") == std::string_view::npos) return best;
  for (const TextNumber& number : numbers) {
    if (number.in("GB/s")) best = std::max(best, number.value * kGigabytePerSecond);
    if (number.in("GiB/s")) best = std::max(best, number.value * kGibibytePerSecond);
  }
  return best;
}

/// "400 Gb/s RDMA per GPU"
bool is_rate_of_a_gpu(const TextNumber& number) {
  const std::string_view phrase = number.after.substr(0, number.after.find_first_of(";,"));
  return number.in("Gb/s") && phrase.find("per GPU") != std::string_view::npos;
}

/// Bytes/s of a node as printed; 0: nothing that can be read.
double printed_network(const std::string& all, int per_node) {
  const std::string_view text = std::string_view(all).substr(0, kLongestText);
  const std::vector<TextNumber> numbers = numbers_in(text);
  const auto first = [&](const auto& matches) {
    const auto found = std::ranges::find_if(numbers, matches);
    return found != numbers.end() ? std::optional(found->value) : std::nullopt;
  };
  if (const auto product = cards_times_rate(text, numbers)) return *product * kGigabitPerSecond;
  // A measured rate is what collectives reach; the model takes its share of the raw rate itself.
  if (const double measured = measured_rate(text, numbers); measured > 0) return measured / cost::kNetworkShare;
  if (const auto each = first(is_rate_of_a_gpu)) return *each * per_node * kGigabitPerSecond;
  const auto counts_links = [](const TextNumber& number) { return number.whole && number.in("Omni-Path links"); };
  if (const auto links = first(counts_links)) return *links * 100 * kGigabitPerSecond;
  const auto node = first([](const TextNumber& number) { return number.in("Gb/s"); });
  return node.value_or(0) * kGigabitPerSecond;
}

/// "NVLink4-way": the NVLinks of a GPU.
std::optional<double> printed_nvlinks(const std::string& all) {
  for (const TextNumber& number : numbers_in(std::string_view(all).substr(0, kLongestText))) {
    const bool named = number.before.ends_with("NVLink") || number.before.ends_with("NVLink ");
    if (named && number.whole && number.after.starts_with("-way")) return number.value;
  }
  return std::nullopt;
}

/// Network of the vendor's reference system, bytes/s a node. DGX-1 (4 x 100 Gbit/s), DGX A100 (8 x 200), DGX H100 and
/// B200 (8 x 400), DGX B300 and GB300 NVL72 (ConnectX-8, 800 a GPU), GH200 on Slingshot-11 (200 a GPU), MI250X and
/// MI300X (one 200 or 400 a device); servers of PCIe cards: one card of 100.
double reference_network(const cluster::GpuType& device, int per_node) {
  const auto each = [&](double gigabits) { return gigabits * per_node * kGigabitPerSecond; };
  const bool module = device.peer_link.bandwidth.value() > 0 && device.peer_reach == 0;
  if (!module) return 100 * kGigabitPerSecond;
  if (device.name.starts_with("GH200")) return each(200);
  if (device.name.starts_with("B300") || device.name.starts_with("GB300")) return each(800);
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
  // What is printed is of a node as printed: a rack of Grace Blackwell has that of all its trays.
  const int printed = group.per_node > 0 ? std::min(group.per_node, per_node) : per_node;
  if (rate == 0) rate = printed_network(measurement.interconnect, printed) * per_node / printed;
  if (rate == 0) rate = reference_network(device, per_node);
  return {BytesPerSecond(rate), rate <= 100 * kGigabitPerSecond ? kEthernetLatency : kFabricLatency};
}

cluster::Link node_fabric(const Measurement& measurement, const cluster::GpuType& device) {
  if (device.peer_link.bandwidth.value() <= 0 || device.peer_reach != 0) return device.pcie;
  cluster::Link fabric = device.peer_link;
  if (const auto links = printed_nvlinks(measurement.interconnect)) {
    const double each = device.architecture == "pascal" ? 20 : 25;
    fabric.bandwidth = std::min(fabric.bandwidth, BytesPerSecond(*links * each * kGigabytePerSecond));
  }
  return fabric;
}

int communicators_counted(const Measurement& m, const Experiment& experiment) {
  if (!m.of_driver) return 0;
  const cost::Degrees& degrees = experiment.stages.front().parts.front().degrees;
  const bool pipeline = experiment.stages.size() > 1;
  int kinds = pipeline ? 1 : 0;
  for (const int degree : {degrees.tp, degrees.cp, degrees.dp, degrees.ep}) kinds += degree > 1 ? 1 : 0;
  const int makers = m.framework == kMegatronDeepSpeed ? 2 : 1;
  constexpr int kEveryRank = 1;
  constexpr int kNeighbours = 2;
  return kEveryRank + makers * kinds + (pipeline ? kNeighbours : 0);
}

bool is_recent(const cluster::GpuType& device) {
  return device.architecture == "hopper" || device.architecture == "blackwell" || device.architecture == "cdna3" ||
         device.architecture == "cdna4";
}

}  // namespace tangram::accuracy
