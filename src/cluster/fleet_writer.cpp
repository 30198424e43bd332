// The canonical form of a fleet: every node by itself, every number given, GPU types that differ in anything apart.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "gpu_records.hpp"
#include "link_values.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::cluster {

namespace {

using Json = nlohmann::ordered_json;

// Keys for the distinct GPU types: the name, and "name#2" ... for what was measured differently, in order of the nodes.
class TypeKeys {
 public:
  std::string key_of(const GpuType& type) {
    std::vector<const GpuType*>& variants = variants_[type.name];
    std::size_t i = 0;
    while (i < variants.size() && !(*variants[i] == type)) ++i;
    if (i == variants.size()) variants.push_back(&type);
    return i == 0 ? type.name : fmt::format("{}#{}", type.name, i + 1);
  }

  [[nodiscard]] Json records() {
    Json result = Json::object();
    for (const auto& [name, variants] : variants_) {
      for (const GpuType* type : variants) result[key_of(*type)] = gpu_to_json(*type, key_of(*type));
    }
    return result;
  }

 private:
  std::map<std::string, std::vector<const GpuType*>> variants_;
};

Json network_to_json(const Link& link) { return link_to_json(link, "bandwidth_gbit_s", kGigabit); }

Json bus_to_json(const Link& link, Nanoseconds usual_ramp = Nanoseconds(0)) {
  return link_to_json(link, "bandwidth_gb_s", kGigabyte, usual_ramp);
}

Json node_to_json(const Node& node, TypeKeys& keys) {
  Json result;
  result["name"] = node.name;
  for (const DeviceGroup& group : node.groups) {
    Json entry{{"type", keys.key_of(group.device)},
               {"count", group.count},
               {"link", bus_to_json(group.link, group.device.peer_link.ramp)}};
    entry["link"]["clique"] = group.clique;
    result["gpus"].push_back(std::move(entry));
  }
  if (node.network.bandwidth.value() > 0) result["network"] = network_to_json(node.network);
  result["host_link"] = bus_to_json(node.host_link);
  for (const auto& [key, value] : node.labels) result["labels"][key] = value;
  if (node.price_per_hour.value() > 0) result["price_per_hour_usd"] = node.price_per_hour.value();
  return result;
}

Json rule_to_json(const LinkRule& rule) {
  Json result;
  Json& scope = result[rule.same ? "within" : "between"];
  if (rule.a.empty()) {
    scope = rule.key;
  } else if (rule.same) {
    scope[rule.key] = rule.a;
  } else {
    scope[rule.key] = Json::array({rule.a, rule.b});
  }
  result.update(network_to_json(rule.link));
  return result;
}

Json measured_to_json(const Fleet& fleet) {
  const std::size_t all = fleet.nodes.size();
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < all; ++i) {
    for (std::size_t j = 0; j < all; ++j) {
      if (fleet.measured[i * all + j].bandwidth.value() <= 0) continue;
      chosen.push_back(i);
      break;
    }
  }
  Json result;
  for (const std::size_t i : chosen) {
    Json rates;
    Json latencies;
    for (const std::size_t j : chosen) {
      const Link& link = fleet.measured[i * all + j];
      const bool known = link.bandwidth.value() > 0;
      rates.push_back(known ? Json(in_units(link.bandwidth.value(), kGigabit)) : Json());
      latencies.push_back(known ? Json(to_us(link.latency)) : Json());
    }
    result["nodes"].push_back(fleet.nodes[i].name);
    result["bandwidth_gbit_s"].push_back(std::move(rates));
    result["latency_us"].push_back(std::move(latencies));
  }
  return result;
}

}  // namespace

std::string write_fleet(const Fleet& fleet) {
  TypeKeys keys;
  Json nodes = Json::array();
  for (const Node& node : fleet.nodes) nodes.push_back(node_to_json(node, keys));
  Json root;
  root["schema"] = "tangram.cluster/1";
  root["name"] = fleet.name;
  root["gpus"] = keys.records();
  root["nodes"] = std::move(nodes);
  for (const LinkRule& rule : fleet.rules) root["links"].push_back(rule_to_json(rule));
  if (!fleet.measured.empty()) {
    Json measured = measured_to_json(fleet);
    if (!measured.empty()) root["measured_links"] = std::move(measured);
  }
  return io::write_canonical(root);
}

}  // namespace tangram::cluster
