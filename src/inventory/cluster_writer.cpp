// An inventory as tangram.cluster/1: what a person would have written, nodes alike once.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "name_ranges.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/cluster/usual_link.hpp"
#include "tangram/inventory/inventory.hpp"
#include "tangram/io/json_writer.hpp"
#include "tool_units.hpp"

namespace tangram::inventory {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGigabyte = 1e9;
Json link_to_json(const cluster::Link& link) {
  return {{"bandwidth_gb_s", link.bandwidth.value() / kGigabyte}, {"latency_us", link.latency.as_double() / 1e3}};
}

/// What joins the GPUs, in the words of the format; null where its default says the same.
Json joined_to_json(const FoundGpus& gpus) {
  const cluster::GpuType& device = *gpus.device;
  const bool fabric = device.peer_link.bandwidth.value() > 0;
  const bool spans = cluster::fabric_spans(device, gpus.count);
  if (gpus.joined == 0 || gpus.count == 1) return nullptr;
  if (gpus.joined == 1 || !fabric) return spans || fabric ? Json("pcie") : Json(nullptr);
  if (gpus.joined == gpus.count && spans) return nullptr;
  if (gpus.joined == 2 && gpus.count > 2) return device.vendor == "amd" ? "xgmi-pairs" : "nvlink-pairs";
  Json link = link_to_json(device.peer_link);
  link["clique"] = gpus.joined;
  return link;
}

Json gpus_to_json(const FoundGpus& gpus) {
  Json entry{{"type", gpus.device->name}, {"count", gpus.count}};
  if (Json link = joined_to_json(gpus); !link.is_null()) entry["link"] = std::move(link);
  if (gpus.measured_link) entry["measured"] = {{"link_bandwidth_gb_s", gpus.measured_link->value() / kGigabyte}};
  return entry;
}

Json network_to_json(const FoundNetwork& network) {
  Json result;
  if (network.cards > 1) result["cards"] = network.cards;
  result["bandwidth_gbit_s"] = network.per_card.value() / kGigabit;
  if (!network.kind.empty()) result["kind"] = network.kind;
  if (network.latency) result["latency_us"] = network.latency->as_double() / 1e3;
  return result;
}

/// Everything but the name.
Json node_to_json(const FoundNode& node) {
  Json result;
  for (const FoundGpus& gpus : node.gpus) result["gpus"].push_back(gpus_to_json(gpus));
  if (node.network) result["network"] = network_to_json(*node.network);
  if (node.host_bus) result["host_link"] = link_to_json(*node.host_bus);
  for (const auto& [key, value] : node.labels) result["labels"][key] = value;
  return result;
}

std::optional<Diagnostic> missing_network(const Inventory& inventory) {
  if (inventory.nodes.size() < 2) return std::nullopt;
  std::vector<std::string> names;
  for (const FoundNode& node : inventory.nodes) {
    if (!node.network) names.push_back(node.name);
  }
  if (names.empty()) return std::nullopt;
  return problem(ErrorKind::kInput, "missing-network",
                 fmt::format("nothing tells how fast the network of {}{} is", names.front(),
                             names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : ""),
                 "give cards, rate of each and kind: --network 8x400Gbit,infiniband; or logs of nccl-tests: --links");
}

}  // namespace

Expected<std::string> write_cluster(const Inventory& inventory) {
  if (auto missing = missing_network(inventory)) return fail(*std::move(missing));
  std::map<std::string, std::pair<Json, std::vector<std::string>>> alike;  // by everything but the name
  for (const FoundNode& node : inventory.nodes) {
    Json body = node_to_json(node);
    auto& group = alike[io::write_compact(body)];
    group.first = std::move(body);
    group.second.push_back(node.name);
  }
  std::map<std::string, const Json*> records;
  for (const auto& [text, group] : alike) {
    for (const std::string& pattern : name_ranges(group.second)) records[pattern] = &group.first;
  }
  Json nodes = Json::array();
  for (const auto& [pattern, body] : records) {
    Json record{{"name", pattern}};
    record.update(*body);
    nodes.push_back(std::move(record));
  }
  return io::write_canonical(
      Json{{"schema", "tangram.cluster/1"}, {"name", inventory.name}, {"nodes", std::move(nodes)}});
}

}  // namespace tangram::inventory
