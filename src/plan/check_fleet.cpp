// The plan against the fleet and the model it claims to be for: nothing in it may be better than it is.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "findings.hpp"
#include "tangram/base/at.hpp"

namespace tangram::plan {

namespace {

class FleetJudge {
 public:
  FleetJudge(const LaunchPlan& plan, const cluster::Fleet& fleet, Findings& findings)
      : plan_(plan), fleet_(fleet), findings_(findings), nodes_(fleet) {}

  void judge() {
    if (plan_.fleet_gpus != fleet_.gpu_count()) {
      findings_.add("fleet-size", "plan",
                    "was made for " + std::to_string(plan_.fleet_gpus) + " GPUs, the fleet has " +
                        std::to_string(fleet_.gpu_count()));
    }
    for (const auto& island : plan_.islands) devices(island);
    for (const auto& stage : plan_.stages) {
      for (std::size_t p = 0; p < stage.parts.size(); ++p) inner_links(stage, p);
    }
    for (const auto& boundary : plan_.boundaries) boundary_link(boundary);
  }

 private:
  /// The group that GPU `number` of a node belongs to, and its position there; groups count on.
  static std::optional<std::pair<std::size_t, int>> group_of(const cluster::Node& node, int number) {
    if (number < 0) return std::nullopt;
    for (std::size_t g = 0; g < node.groups.size(); ++g) {
      if (number < node.groups[g].count) return std::pair(g, number);
      number -= node.groups[g].count;
    }
    return std::nullopt;
  }

  void devices(const PlanIsland& island) {
    for (const auto& entry : island.nodes) {
      const auto node = nodes_.find(entry.host);
      if (!node) {
        findings_.add("host-unknown", at_island(island.id), "the fleet has no host " + entry.host);
        continue;
      }
      for (const int number : entry.gpus) {
        const auto group = group_of(fleet_.nodes[*node], number);
        const std::string gpu = "GPU " + std::to_string(number) + " of " + entry.host;
        if (!group) {
          findings_.add("gpu-unknown", at_island(island.id), "the fleet has no " + gpu);
        } else {
          compare_device(island, fleet_.nodes[*node].groups[group->first].device, gpu);
          compare_price(island, price_of(fleet_.nodes[*node], group->first), gpu);
        }
      }
    }
  }

  /// An hour of one GPU: its share of the node's price where the node has one; 0: unknown.
  static double price_of(const cluster::Node& node, std::size_t group) {
    int gpus = 0;
    for (const cluster::DeviceGroup& each : node.groups) gpus += each.count;
    const double share = node.price_per_hour.value() / gpus;
    return share > 0 ? share : node.groups[group].device.price_per_hour.value();
  }

  // An island's price is the highest of its GPUs'.
  void compare_price(const PlanIsland& island, double real, const std::string& gpu) {
    if (island.price_per_gpu_hour.value() >= real * (1 - kRounding)) return;
    findings_.add("price-below-fleet", at_island(island.id),
                  "says " + std::to_string(island.price_per_gpu_hour.value()) + " $ an hour of a GPU, " + gpu +
                      " costs " + std::to_string(real));
  }

  // An island's record is the least of its GPUs in everything. Types of different names may share an island.
  void compare_device(const PlanIsland& island, const cluster::GpuType& real, const std::string& gpu) {
    const auto& said = island.device;
    bool better =
        said.memory > real.memory || said.usable() > real.usable() || said.memory_bandwidth > real.memory_bandwidth;
    for (std::size_t i = 0; i < said.peak.size(); ++i) better |= said.peak[i] > real.peak[i];
    if (!better) return;
    if (said.name != real.name) {
      findings_.add("gpu-type-differs", at_island(island.id), gpu + " is " + real.name + ", not " + said.name);
    } else {
      findings_.add("gpu-better-than-fleet", at_island(island.id), "the record promises more than " + gpu + " has");
    }
  }

  /// The fleet's link between two GPUs; between nodes, of the whole node.
  std::optional<cluster::Link> real_link(const Rank& a, const Rank& b) const {
    const auto node_a = nodes_.find(a.host);
    const auto node_b = nodes_.find(b.host);
    if (!node_a || !node_b) return std::nullopt;
    if (*node_a != *node_b) return fleet_.between(*node_a, *node_b);
    const auto& node = fleet_.nodes[*node_a];
    const auto group_a = group_of(node, a.gpu);
    const auto group_b = group_of(node, b.gpu);
    if (!group_a || !group_b) return std::nullopt;
    const auto& group = node.groups[group_a->first];
    const bool together =
        group_a->first == group_b->first && group_a->second / group.clique == group_b->second / group.clique;
    return together ? group.link : node.host_link;
  }

  void compare_link(const cluster::Link& said, const Rank& a, const Rank& b, const std::string& where, const char* what,
                    int sharers) {
    const auto real = real_link(a, b);
    if (!real) return;  // an unknown host or GPU is reported already
    // Between nodes all members of a node together have its network; inside, every GPU has its own link.
    const double most = real->bandwidth.value() * (a.host == b.host ? sharers : 1);
    const double rate = said.bandwidth.value();
    const bool ramps_sooner = said.ramp < real->ramp && rate > most * (1 - kRounding);  // a slow link may have no ramp
    if (rate > most * (1 + kRounding) || said.latency < real->latency || ramps_sooner) {
      findings_.add("link-better-than-fleet", where,
                    std::string(what) + " is better than the fleet's between " + a.host + " and " + b.host);
    }
  }

  void inner_links(const Stage& stage, std::size_t index) {
    const Part& part = stage.parts[index];
    const PlanIsland& island = plan_.island(part.island);
    const int gpus = part.strategy.degrees.gpus();
    const int per_member = std::max(1, gpus / part.members);
    const std::string where = at_part(stage.id, index);
    const auto rank = [&](int i) -> const Rank& { return plan_.rank(part, i); };
    for (int i = 0; i < gpus; i += per_member) {
      // Members of plans from outside may be unequal: the last is then shorter.
      if (per_member > 1 && i + 1 < gpus)
        compare_link(island.inside_member, rank(i), rank(i + 1), where, "the link inside a member", 1);
      for (int j = 0; j < i; j += per_member) {
        const bool same = rank(i).island == rank(j).island;
        compare_link(same ? island.between_members : island.between_islands, rank(j), rank(i), where,
                     "the link between members", per_member);
      }
    }
  }

  void boundary_link(const Boundary& boundary) {
    const auto part_of = [&](int stage, int part) { return at(plan_.stage(stage).parts, part); };
    const Part source = part_of(boundary.from, boundary.source_part);
    const Part target = part_of(boundary.to, boundary.target_part);
    const int sharers =
        std::max(source.strategy.degrees.gpus() / source.members, target.strategy.degrees.gpus() / target.members);
    std::set<std::pair<std::string, std::string>> seen;
    for (const auto& transfer : boundary.transfers) {
      const Rank& a = at(plan_.ranks, transfer.src);
      const Rank& b = at(plan_.ranks, transfer.dst);
      if (a.part != boundary.source_part || b.part != boundary.target_part) continue;
      if (!seen.emplace(a.host, b.host).second) continue;
      compare_link(boundary.link, a, b, at_boundary(boundary), "its link", sharers);
    }
  }

  static constexpr double kRounding = 1e-9;  // shares are quotients of bandwidths
  const LaunchPlan& plan_;
  const cluster::Fleet& fleet_;
  Findings& findings_;
  NodesByHost nodes_;
};

/// The model with what planning chose: execution options that it leaves free, and the loss of the plan's runtime, which
/// plans of before may not have.
model::Model as_planned(const model::Model& model, const LaunchPlan& plan) {
  model::Model planned = model::settled(model, plan.model.job);
  if (runtime::runtime_of(plan.runtime).in_place_loss) planned.job.in_place_loss = plan.model.job.in_place_loss;
  return planned;
}

}  // namespace

void check_against(const LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model* model, Findings& findings) {
  Findings references;
  if (!check_references(plan, references)) return;  // already reported
  FleetJudge(plan, fleet, findings).judge();
  if (model != nullptr && model::write_model(as_planned(*model, plan)) != model::write_model(plan.model)) {
    findings.add("model-differs", "model", "the plan was made for another model or another job");
  }
}

}  // namespace tangram::plan
