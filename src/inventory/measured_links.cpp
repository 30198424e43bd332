// Logs of nccl-tests as links. Of a collective over several nodes that run as rings, each byte of the bus bandwidth
// crosses every node's border once: bus bandwidth is what a node's cards carry together. Within one node it is what a
// GPU's link carries.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tangram/cost/collective_curves.hpp"
#include "tangram/inventory/inventory.hpp"

namespace tangram::inventory {
namespace {

struct Measured {
  double inside = 0;  ///< bytes/s of one GPU's link
  double across = 0;  ///< of a node's cards
  double step_s = 0;  ///< between nodes: the shortest time of a step; 0: not told
};

bool is_ring(cost::Exchange operation) {
  return operation == cost::Exchange::kAllReduce || operation == cost::Exchange::kAllGather ||
         operation == cost::Exchange::kReduceScatter || operation == cost::Exchange::kSendRecv;
}

/// Steps from node to node that follow each other: an all-reduce gathers and spreads.
double steps(const cost::CollectiveCurve& curve) {
  const double others = curve.group.nodes - 1;
  if (curve.operation == cost::Exchange::kSendRecv) return 1;
  return curve.operation == cost::Exchange::kAllReduce ? 2 * others : others;
}

void take(const cost::CollectiveCurve& curve, const cluster::GpuType& device, Measured& measured) {
  if (!is_ring(curve.operation) || curve.group.sharing != 1 || curve.points.empty()) return;
  double best = 0;
  for (const cost::CurvePoint& point : curve.points) best = std::max(best, cost::bus_bandwidth(curve, point));
  if (curve.group.nodes == 1) {
    // Switches that reduce on the way show more than the link itself carries.
    measured.inside = std::max(measured.inside, std::min(best, cost::fastest_link(device).value()));
    return;
  }
  measured.across = std::max(measured.across, best);
  const double step = to_seconds(curve.points.front().time) / steps(curve);
  if (measured.step_s == 0 || step < measured.step_s) measured.step_s = step;
}

void apply(const Measured& measured, const cluster::GpuType& device, FoundNode& node) {
  for (FoundGpus& gpus : node.gpus) {
    if (gpus.device->name != device.name) continue;
    if (measured.inside > 0) gpus.measured_link = BytesPerSecond(measured.inside);
    if (measured.across <= 0) continue;
    FoundNetwork network;
    network.cards = 1;
    network.per_card = BytesPerSecond(measured.across);
    network.latency = Nanoseconds(static_cast<std::int64_t>(measured.step_s * 1e9));
    node.network = std::move(network);
  }
}

}  // namespace

Expected<void> apply_measured_links(Inventory& inventory, const std::vector<profiles::SourceFile>& logs,
                                    std::span<const cluster::GpuType> devices) {
  profiles::Request request;
  request.tool = profiles::Tool::kNcclTests;
  request.files = logs;
  const auto imported = profiles::import_profiles(request, devices);
  if (!imported) return fail(imported.error());
  for (const profiles::Note& note : imported->notes) {
    inventory.notes.push_back(
        fmt::format("{}{}: {}", note.file.empty() ? "" : note.file + ": ", to_string(note.kind), note.message));
  }
  for (const cost::Profile& profile : imported->profiles) {
    Measured measured;
    for (const cost::CollectiveCurve& curve : profile.collectives) take(curve, profile.device, measured);
    for (FoundNode& node : inventory.nodes) apply(measured, profile.device, node);
  }
  return {};
}

}  // namespace tangram::inventory
