#include "support/topology.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tangram::testing {

namespace {

using cluster::DeviceGroup;
using cluster::Fleet;
using cluster::GpuType;
using cluster::Link;
using cluster::LinkRule;
using cluster::Node;

using namespace tangram::literals;

[[noreturn]] void reject(const std::string& what, std::string_view where) {
  throw std::invalid_argument("topology: " + what + ": '" + std::string(where) + "'");
}

double number(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0') reject("not a number", text);
  return value;
}

BytesPerSecond gbit(double gbit_per_second) { return BytesPerSecond(gbit_per_second * 1e9 / 8); }

/// A link as drawn: "==ib200==".
struct Drawn {
  bool same_rack = false;
  Link link;
};

/// A node as drawn, before its links are known.
struct Sketch {
  Node node;
  int copies = 1;
  bool numbered = false;
  std::optional<double> network_gbit;
  std::size_t rack = 0;
};

class Pen {
 public:
  explicit Pen(std::string_view text) : text_(text) {}

  [[nodiscard]] bool done() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_.front())) != 0) text_.remove_prefix(1);
    return text_.empty();
  }

  std::string_view bracket() {
    const std::size_t end = text_.find(']');
    if (text_.front() != '[' || end == std::string_view::npos) reject("expected [node]", text_);
    const std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }

  Drawn link() {
    const std::string_view bar = text_.substr(0, 2);
    const std::size_t end = text_.find(bar, 2);
    if ((bar != "==" && bar != "--") || end == std::string_view::npos) reject("expected ==link== or --link--", text_);
    const std::string_view name = text_.substr(2, end - 2);
    const std::size_t digits = name.find_first_of("0123456789");
    const std::string_view kind = name.substr(0, digits);
    if ((kind != "ib" && kind != "eth") || digits == std::string_view::npos) reject("unknown link class", name);
    text_.remove_prefix(end + 2);
    return {bar == "==", {gbit(number(name.substr(digits))), kind == "ib" ? 2_us : 20_us}};
  }

 private:
  std::string_view text_;
};

DeviceGroup device_group(std::string_view text) {
  const std::size_t x = text.rfind('x');
  if (x == std::string_view::npos) reject("expected TYPExCOUNT", text);
  DeviceGroup group;
  group.device = gpu_type(text.substr(0, x));
  group.count = static_cast<int>(number(text.substr(x + 1)));
  group.clique = group.count;
  const bool has_fabric = group.device.peer_link.bandwidth.value() > 0;
  group.link = has_fabric ? group.device.peer_link : group.device.pcie;
  return group;
}

void apply_option(Sketch& sketch, std::string_view key, std::string_view value) {
  const auto each = [&](auto change) { std::for_each(sketch.node.groups.begin(), sketch.node.groups.end(), change); };
  if (key == "net") {
    sketch.network_gbit = number(value);
  } else if (key == "compute") {
    each([&](DeviceGroup& g) { g.device.compute.gemm_efficiency *= number(value); });
  } else if (key == "memory") {
    each([&](DeviceGroup& g) { g.device.memory = ceil_to_bytes(g.device.memory.as_double() * number(value)); });
  } else if (key == "membw") {
    each([&](DeviceGroup& g) { g.device.memory_bandwidth = g.device.memory_bandwidth * number(value); });
  } else if (key == "clique") {
    each([&](DeviceGroup& g) { g.clique = static_cast<int>(number(value)); });
  } else if (key == "bus") {
    sketch.node.host_link.bandwidth = BytesPerSecond(number(value) * 1e9);
  } else if (key == "price") {
    sketch.node.price_per_hour = Dollars(number(value));
  } else {
    sketch.node.labels[std::string(key)] = std::string(value);
  }
}

Sketch sketch_node(std::string_view inside) {
  std::istringstream words{std::string(inside)};
  std::string devices;
  std::string name;
  if (!(words >> devices >> name)) reject("expected devices and a name", inside);

  Sketch sketch;
  std::istringstream groups(devices);
  for (std::string group; std::getline(groups, group, '+');) sketch.node.groups.push_back(device_group(group));
  sketch.node.host_link = sketch.node.groups.front().device.pcie;
  const std::size_t star = name.find('*');
  sketch.node.name = name.substr(0, star);
  if (star != std::string::npos) {
    sketch.copies = static_cast<int>(number(std::string_view(name).substr(star + 1)));
    sketch.numbered = true;
  }
  for (std::string option; words >> option;) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) reject("expected key=value", option);
    apply_option(sketch, std::string_view(option).substr(0, equals), std::string_view(option).substr(equals + 1));
  }
  return sketch;
}

Link slower(const Link& a, const Link& b) {
  return {std::min(a.bandwidth, b.bandwidth), std::max(a.latency, b.latency)};
}

/// links[i] joins sketch i and i + 1; counted sketches are joined among themselves by the network they get here.
void connect(std::vector<Sketch>& sketches, const std::vector<Drawn>& links) {
  for (std::size_t i = 0; i < sketches.size(); ++i) {
    std::optional<Link> inside;
    std::optional<Link> outside;
    for (std::size_t k = 0; k < links.size(); ++k) {
      if (links[k].same_rack && sketches[k].rack == sketches[i].rack) inside = links[k].link;
      const bool adjacent = k == i || k + 1 == i;
      if (adjacent && (!outside || links[k].link.bandwidth > outside->bandwidth)) outside = links[k].link;
    }
    Node& node = sketches[i].node;
    node.network = inside.value_or(outside.value_or(Link{gbit(100), 2_us}));
    if (sketches[i].network_gbit) node.network.bandwidth = gbit(*sketches[i].network_gbit);
  }
}

std::string rack_name(std::size_t rack) { return "r" + std::to_string(rack + 1); }

std::vector<LinkRule> rack_rules(const std::vector<Drawn>& links) {
  std::vector<Link> thin;  // thin[i] joins rack i and i + 1
  for (const Drawn& drawn : links) {
    if (!drawn.same_rack) thin.push_back(drawn.link);
  }
  if (thin.empty()) return {};
  if (std::all_of(thin.begin(), thin.end(), [&](const Link& link) { return link == thin.front(); })) {
    return {{"rack", false, "", "", thin.front()}};
  }
  std::vector<LinkRule> rules;
  for (std::size_t a = 0; a < thin.size(); ++a) {
    Link path = thin[a];
    for (std::size_t b = a + 1; b <= thin.size(); ++b) {
      path = slower(path, thin[b - 1]);
      rules.push_back({"rack", false, rack_name(a), rack_name(b), path});
    }
  }
  return rules;
}

bool natural_less(const std::string& a, const std::string& b) {
  const auto split = [](const std::string& name) {
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    const std::string tail = name.substr(digits);
    return std::make_tuple(name.substr(0, digits), tail.size(), tail);
  };
  return split(a) < split(b);
}

}  // namespace

// Dense 16-bit TFLOP/s, GB, GB/s of memory, GB/s to peers (one direction), from the NVIDIA datasheets: A100 (2021,
// PCIe/SXM), H100 SXM (2022), V100 SXM2 (2020), T4 (2019), and the GA102 and Ada whitepapers for the GeForce cards.
GpuType gpu_type(std::string_view name) {
  struct Row {
    std::string_view name;
    const char* architecture;
    double tflops;
    bool bf16;
    bool fp8;
    double gigabytes;
    double memory_gbps;
    double peer_gbps;
    double pcie_gbps;
  };
  static constexpr Row kRows[] = {
      {"A100-40", "ampere", 312, true, false, 40, 1555, 300, 32},
      {"A100-80", "ampere", 312, true, false, 80, 2039, 300, 32},
      {"H100-80", "hopper", 989.4, true, true, 80, 3350, 450, 64},
      {"V100-32", "volta", 125, false, false, 32, 900, 150, 16},
      {"T4", "turing", 65, false, false, 16, 320, 0, 16},
      {"RTX3080", "ampere", 59.5, true, false, 10, 760, 0, 32},
      {"RTX4090", "ada", 165.2, true, true, 24, 1008, 0, 32},
  };
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    GpuType type;
    type.name = name;
    type.vendor = "nvidia";
    type.architecture = row.architecture;
    type.memory = ceil_to_bytes(row.gigabytes * 1e9);
    type.reserved = 1_GiB;
    type.memory_bandwidth = BytesPerSecond(row.memory_gbps * 1e9);
    type.peak[static_cast<std::size_t>(DType::kFp32)] = FlopsPerSecond(row.tflops * 1e12 / 16);
    type.peak[static_cast<std::size_t>(DType::kFp16)] = FlopsPerSecond(row.tflops * 1e12);
    if (row.bf16) type.peak[static_cast<std::size_t>(DType::kBf16)] = FlopsPerSecond(row.tflops * 1e12);
    if (row.fp8) type.peak[static_cast<std::size_t>(DType::kFp8)] = FlopsPerSecond(row.tflops * 2e12);
    if (row.peer_gbps > 0) type.peer_link = {BytesPerSecond(row.peer_gbps * 1e9), 3_us};
    type.pcie = {BytesPerSecond(row.pcie_gbps * 1e9), 5_us};
    return type;
  }
  reject("unknown GPU type", name);
}

Fleet topology(std::string_view text) {
  std::vector<Sketch> sketches;
  std::vector<Drawn> links;
  std::size_t racks = 0;
  for (Pen pen(text); !pen.done();) {
    if (!sketches.empty()) {
      links.push_back(pen.link());
      if (!links.back().same_rack) ++racks;
      if (pen.done()) reject("a link leads nowhere", text);
    }
    sketches.push_back(sketch_node(pen.bracket()));
    sketches.back().rack = racks;
  }
  if (sketches.empty()) reject("no nodes", text);
  connect(sketches, links);

  Fleet fleet;
  fleet.name = "drawn";
  fleet.rules = rack_rules(links);
  for (const Sketch& sketch : sketches) {
    for (int copy = 0; copy < sketch.copies; ++copy) {
      fleet.nodes.push_back(sketch.node);
      Node& node = fleet.nodes.back();
      if (sketch.numbered) node.name += "-" + std::to_string(copy);
      if (racks > 0) node.labels["rack"] = rack_name(sketch.rack);
    }
  }
  std::sort(fleet.nodes.begin(), fleet.nodes.end(),
            [](const Node& a, const Node& b) { return natural_less(a.name, b.name); });
  return fleet;
}

}  // namespace tangram::testing
