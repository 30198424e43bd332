// What holds of every importer of fleet reports: errors that can be shown, or a cluster.json that is read back.
#pragma once

#include "tangram/cluster/fleet.hpp"
#include "tangram/inventory/inventory.hpp"
#include "tree_checks.hpp"

namespace tangram::fuzz {

inline void require_report(Expected<inventory::Inventory> found) {
  if (!found) {  // some errors are of a whole file or of all files: not every one has a place
    require(!found.error().empty() && !render(found.error()).empty());
    for (const Diagnostic& error : found.error()) require(!error.code.empty() && !error.message.empty());
    return;
  }
  constexpr long kMostGpus = 10'000;  // beyond what cluster.json takes the reader refuses, rightly
  long gpus = 0;
  for (const inventory::FoundNode& node : found->nodes) {
    for (const inventory::FoundGpus& group : node.gpus) gpus += group.count;
  }
  if (gpus > kMostGpus) return;
  inventory::NetworkChoice choice;
  choice.network.kind = "infiniband";
  choice.network.per_card = BytesPerSecond(25e9);
  inventory::apply_network(*found, {choice});
  const auto text = inventory::write_cluster(*found);
  require(text.has_value());
  const auto fleet = cluster::read_fleet(*text, "cluster.json");
  require(fleet.has_value());
  require(fleet->nodes.size() == found->nodes.size());
  require(fleet->gpu_count() == gpus);
}

}  // namespace tangram::fuzz
