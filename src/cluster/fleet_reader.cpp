// cluster.json, schema tangram.cluster/1: JSON with // comments. The order of nodes never matters; that of links does.
//
//   {
//     "schema": "tangram.cluster/1",
//     "name": "two-racks",
//     "gpus": { ... },                   // own GPU types, see gpu_records.hpp; they win over the catalogue's
//     "nodes": [
//       {
//         "name": "a100-[01-16]",        // a range of names; or "a100-{}" with "count": 16; or one plain name
//         "gpus": [                      // a node may hold several types
//           {
//             "type": "A100-80GB-SXM", "count": 8,
//             "link": "nvlink",          // or "nvlink-pairs", "pcie", for AMD "xgmi"; or numbers per GPU, one
//             direction:
//                                        //   { "bandwidth_gb_s": 300, "latency_us": 3, "clique": 2 }; "ramp_us",
//                                        //   default: that of the type's peer_link
//                                        // default: the type's fabric where it spans the node, else "pcie"
//             "measured": {              // what was measured here, in place of the datasheet
//               "gemm_tflops": 240,      // sustained by a large matrix product in 16 bit
//               "memory_bandwidth_gb_s": 1700, "usable_memory_gib": 72, "link_bandwidth_gb_s": 230
//             }
//           }
//         ],
//         "network": { "cards": 8, "bandwidth_gbit_s": 200,   // of each card, one direction
//                      "kind": "infiniband" },                // gives a usual latency; or "latency_us": 5
//         "host_link": { "bandwidth_gb_s": 32, "latency_us": 5 },  // between cliques; default: slowest PCIe of the
//         types "labels": { "rack": "r1", "zone": "east" }, "price_per_hour_usd": 32.77,                        // of
//         the node; default: sum of its GPUs "overrides": {                 // for some nodes of the group, by name or
//         range
//           "a100-07": { "measured": { "A100-80GB-SXM": { "gemm_tflops": 180 } },
//                        "labels": { "rack": "r2" }, "network": { ... } }
//         }
//       }
//     ],
//     "links": [                         // what two nodes see of each other at most; the last that matches wins
//       { "between": "rack", "bandwidth_gbit_s": 100, "latency_us": 10 },
//       { "within": { "zone": "east" }, "bandwidth_gbit_s": 400, "latency_us": 5 },
//       { "between": { "zone": ["east", "west"] }, "bandwidth_gbit_s": 10, "latency_us": 30000 }
//     ],
//     "measured_links": {                // of pairs of nodes; they win over everything else; null: not measured
//       "nodes": ["a100-[01-02]"],
//       "bandwidth_gbit_s": [[0, 190], [185, 0]],             // the slower direction counts
//       "latency_us": [[0, 6], [6, 0]]
//     }
//   }
//
// Bandwidths count one direction. A node without "network" is only possible in a fleet of one node.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fleet_links.hpp"
#include "fleet_names.hpp"
#include "fleet_nodes.hpp"
#include "gpu_records.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/io/schema.hpp"

namespace tangram::cluster {

namespace {

GpuTable catalogue_table() {
  GpuTable table;
  for (const GpuType& type : catalogue()) table.emplace(type.name, type);
  return table;
}

void read_nodes(io::ObjectReader& root, const GpuTable& types, Fleet& fleet) {
  std::set<std::string> names;
  std::vector<io::ObjectReader> groups = root.objects("nodes");
  long long gpus = 0;
  for (io::ObjectReader& group : groups) {
    const std::size_t before = fleet.nodes.size();
    read_node_group(group, types, names, fleet.nodes);
    for (std::size_t i = before; i < fleet.nodes.size(); ++i) {
      for (const DeviceGroup& devices : fleet.nodes[i].groups) gpus += devices.count;
    }
    if (gpus > kMaxGpus) {
      group.error_at("name", "out-of-range", fmt::format("the fleet has {} GPUs, more than {}", gpus, kMaxGpus));
      return;
    }
  }
  if (fleet.nodes.size() < 2) return;
  for (io::ObjectReader& group : groups) {
    if (group.valid() && !group.has("network")) {
      group.error_at("network", "missing-key", "missing key \"network\"",
                     "each of several nodes needs it: \"network\": { \"bandwidth_gbit_s\": 100, \"kind\": \"roce\" }");
    }
  }
}

}  // namespace

Expected<Fleet> read_fleet(std::string text, std::string file) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));

  Diagnostics mistakes;
  io::ObjectReader root(*document, document->root, "", mistakes);
  if (!io::has_schema(root, "tangram.cluster/1")) return fail(std::move(mistakes));
  Fleet fleet;
  fleet.name = root.string_or("name", "fleet");
  GpuTable types = catalogue_table();
  read_gpu_records(root, types);
  read_nodes(root, types, fleet);
  std::sort(fleet.nodes.begin(), fleet.nodes.end(),
            [](const Node& a, const Node& b) { return natural_less(a.name, b.name); });
  // Labels and names of a node that could not be read would be missed: one mistake, one error.
  const bool nodes_are_whole = mistakes.empty();
  if (nodes_are_whole) {
    fleet.rules = read_link_rules(root, fleet.nodes);
    read_measured_links(root, fleet);
  } else {
    root.ignore("links");
    root.ignore("measured_links");
  }
  root.finish();
  if (!mistakes.empty()) return fail(std::move(mistakes));
  fleet.digest = digest(write_fleet(fleet));
  return fleet;
}

}  // namespace tangram::cluster
