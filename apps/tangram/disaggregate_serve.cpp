#include "disaggregate_serve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "command.hpp"
#include "inputs.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/disaggregate/servers.hpp"
#include "tangram/export/vllm.hpp"

namespace tangram::app {

namespace {

using disaggregate::Arm;
using disaggregate::Servers;

exporting::VllmRole role_of(disaggregate::ServerRole role) {
  switch (role) {
    case disaggregate::ServerRole::kWhole: return exporting::VllmRole::kWhole;
    case disaggregate::ServerRole::kPrefill: return exporting::VllmRole::kPrefill;
    case disaggregate::ServerRole::kDecode: return exporting::VllmRole::kDecode;
  }
  return exporting::VllmRole::kWhole;
}

/// One on each of the first GPUs of the class.
void add_servers(const cluster::Fleet& fleet, const std::string& gpu_type, const Servers& servers,
                 std::vector<exporting::VllmServer>& added) {
  int left = servers.count;
  for (const cluster::Node& node : fleet.nodes) {
    int first = 0;
    for (const cluster::DeviceGroup& group : node.groups) {
      const int here = group.device.name == gpu_type ? std::min(left, group.count) : 0;
      for (int i = 0; i < here; ++i) {
        added.push_back({node.name, first + i, gpu_type, group.device.vendor, role_of(servers.role),
                         servers.share / servers.count, servers.requests});
      }
      left -= here;
      first += group.count;
    }
  }
}

Expected<Arm> chosen(const disaggregate::Comparison& comparison, const std::string& name) {
  if (name.empty()) return comparison.arm(comparison.decision.arm);
  std::vector<std::string> known;
  for (const Arm& arm : comparison.arms) {
    known.emplace_back(to_string(arm.kind));
    if (known.back() == name) return arm;
  }
  return fail(usage_mistake("unknown-value", fmt::format("--arm {}: no such arm", name),
                            suggestion(name, known, listing("arms", known))));
}

}  // namespace

Expected<exporting::Export> serving_files(const cluster::Fleet& fleet, const disaggregate::Problem& problem,
                                          const disaggregate::Comparison& comparison, const std::string& arm) {
  const auto wanted = chosen(comparison, arm);
  if (!wanted) return fail(wanted.error());
  if (!wanted->fits) {
    return fail(tangram::problem(ErrorKind::kInfeasible, "memory",
                                 fmt::format("the arm \"{}\" does not fit", to_string(wanted->kind)),
                                 "fewer requests, or more GPUs (--add)"));
  }
  const auto servers = disaggregate::servers_of(problem, *wanted);
  if (!servers) return fail(servers.error());
  std::vector<exporting::VllmServer> all;
  for (const Servers& each : *servers) add_servers(fleet, at(problem.classes, each.on).name, each, all);
  return exporting::export_vllm(all);
}

}  // namespace tangram::app
