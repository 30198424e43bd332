#include "tangram/disaggregate/servers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::disaggregate {

namespace {

int each_of(int requests, int servers) { return std::max(1, (requests + servers - 1) / servers); }

std::vector<Servers> whole(const Problem& problem, const Arm& arm) {
  std::vector<Servers> servers;
  for (std::size_t i = 0; i < arm.placements.size(); ++i) {
    const int on = arm.placements[i].placement.front();
    const int count = arm.kind == ArmKind::kOneGpu ? 1 : at(problem.classes, on).count;
    servers.push_back({on, count, ServerRole::kWhole, arm.placements[i].share, arm.replica_requests[i]});
  }
  return servers;
}

// Where all kernels of a phase are; nothing where they are on several classes.
std::optional<int> class_of_phase(const Problem& problem, const Placement& placement, int phase) {
  std::optional<int> found;
  for (std::size_t k = 0; k < problem.kernels.size(); ++k) {
    if (problem.kernels[k].phase != phase) continue;
    if (found && *found != placement[k]) return std::nullopt;
    found = placement[k];
  }
  return found;
}

// Both phases on one class: whole models there.
std::optional<std::vector<Servers>> by_phase(const Problem& problem, const Arm& arm) {
  const Placement& placement = arm.placements.front().placement;
  const int last = static_cast<int>(problem.phases.size()) - 1;
  const auto first_on = class_of_phase(problem, placement, 0);
  const auto last_on = class_of_phase(problem, placement, last);
  if (!first_on || !last_on) return std::nullopt;
  const int count = at(problem.classes, *last_on).count;
  const int requests = each_of(arm.requests_in_memory, count);
  if (*first_on == *last_on) return {{{*last_on, count, ServerRole::kWhole, 1, requests}}};
  const int readers = at(problem.classes, *first_on).count;
  return {{{*first_on, readers, ServerRole::kPrefill, 1, each_of(arm.requests_in_memory, readers)},
           {*last_on, count, ServerRole::kDecode, 1, requests}}};
}

}  // namespace

Expected<std::vector<Servers>> servers_of(const Problem& problem, const Arm& arm) {
  if (arm.kind == ArmKind::kOneGpu || arm.kind == ArmKind::kReplicas) return whole(problem, arm);
  if (arm.kind == ArmKind::kPhases) {
    if (auto servers = by_phase(problem, arm)) return *std::move(servers);
  }
  return fail(tangram::problem(ErrorKind::kInfeasible, "unsupported-arm",
                               fmt::format("no serving engine runs the arm \"{}\"", to_string(arm.kind)),
                               "--arm replicas, or prefill/decode of a graph with both phases"));
}

}  // namespace tangram::disaggregate
