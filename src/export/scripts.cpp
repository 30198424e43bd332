#include "scripts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tangram/base/at.hpp"

namespace tangram::exporting {

namespace {

const plan::Rank& rank_at(const plan::LaunchPlan& plan, const plan::LaunchOrder& order, int rank) {
  return at(plan.ranks, at(order.plan_rank, rank));
}

/// "0-7" or "0 3 5".
std::string ranks_text(const std::vector<int>& ranks) {
  const bool run = ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size());
  if (run && ranks.size() > 1) return fmt::format("{}-{}", ranks.front(), ranks.back());
  return joined(ranks, " ");
}

std::string node_script(const plan::LaunchPlan& plan, const plan::LaunchOrder& order, std::size_t node,
                        const std::map<std::string, std::string>& environment, const Program& program) {
  const plan::HostRanks& host = order.hosts[node];
  const cluster::GpuType& device = device_of(plan, order, host);
  std::string text = fmt::format(
      "#!/usr/bin/env bash\n"
      "# Node {} of {}: ranks {} on {} ({}).\n"
      "# Usage: nodes/{}.sh {}\n"
      "set -euo pipefail\n"
      "here=$(cd -- \"$(dirname -- \"${{BASH_SOURCE[0]}}\")/..\" && pwd)\n",
      node, order.hosts.size(), ranks_text(host.ranks), host.host, device.name, host.host, program.usage);
  for (const auto& [name, value] : environment) text += fmt::format("export {}={}\n", name, shell_word(value));
  text += fmt::format("export {}={}\n", visible_devices_variable(device.vendor), joined(host.gpus));
  text += fmt::format("export NODE_RANK={}\n", node);
  text += fmt::format("export LOCAL_RANKS='{}'\n", joined(host.ranks, " "));
  return text + "exec \"$here/start.sh\" \"$@\"\n";
}

std::string script_head(const plan::LaunchOrder& order, const std::string& what, const Program& program) {
  return fmt::format(
      "#!/usr/bin/env bash\n"
      "# {}\n"
      "# Called by nodes/HOST.sh, which says what runs on a node. MASTER_ADDR and MASTER_PORT may be set by the "
      "caller.\n"
      "set -euo pipefail\n"
      "if [[ -z ${{LOCAL_RANKS:-}} ]]; then\n"
      "  echo 'start.sh is called by nodes/HOST.sh' >&2\n"
      "  exit 64\n"
      "fi\n"
      "export MASTER_ADDR=${{MASTER_ADDR:-{}}} MASTER_PORT=${{MASTER_PORT:-{}}}\n"
      "read -ra ranks <<<\"$LOCAL_RANKS\"\n"
      "{}",
      what, order.hosts.front().host, kMasterPort, program.prelude);
}

// With static rendezvous global ranks are sums over nodes in the order of --node_rank; c10d would sort nodes by
// address. PyTorch before 2.0 knows these options with underscores alone.
std::string torchrun_script(const plan::LaunchOrder& order, const Program& program) {
  return script_head(order, "One torchrun per node; static rendezvous, so that ranks follow the order of the nodes.",
                     program) +
         fmt::format(
             "exec torchrun --nnodes {} --node_rank \"$NODE_RANK\" --nproc_per_node \"${{#ranks[@]}}\" \\\n"
             "  --master_addr \"$MASTER_ADDR\" --master_port \"$MASTER_PORT\" {}\n",
             order.hosts.size(), program.arguments);
}

std::string process_script(const plan::LaunchOrder& order, const Program& program) {
  const std::string what =
      order.host_by_host()
          ? "One process per rank, each told its own."
          : "One process per rank: ranks do not follow the order of the nodes, so each is told its own.";
  return script_head(order, what, program) +
         fmt::format(
             "export WORLD_SIZE={} LOCAL_WORLD_SIZE=${{#ranks[@]}}\n"
             "processes=()\n"
             "trap 'kill \"${{processes[@]}}\" 2>/dev/null || true' EXIT\n"
             "for local_rank in \"${{!ranks[@]}}\"; do\n"
             "  RANK=${{ranks[local_rank]}} LOCAL_RANK=$local_rank python3 -u {} &\n"
             "  processes+=(\"$!\")\n"
             "done\n"
             "for _ in \"${{processes[@]}}\"; do\n"
             "  wait -n # the first failure ends this script, and with it the others\n"
             "done\n",
             order.plan_rank.size(), program.arguments);
}

}  // namespace

std::string joined(const std::vector<int>& numbers, const char* separator) {
  return fmt::format("{}", fmt::join(numbers, separator));
}

Program with_arguments(const std::string& array, const std::string& script) {
  return {"[ARGUMENT...]",
          "here=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" && pwd)\n" + array +
              "=()\n# shellcheck source=/dev/null\nsource \"$here/arguments.sh\"\n",
          script + " \"${" + array + "[@]}\" \"$@\""};
}

std::string shell_word(const std::string& word) {
  // What shlex of Python leaves alone, without the comma: in arrays shellcheck takes it for a mistake.
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%_+=:./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string visible_devices_variable(std::string_view vendor) {
  return vendor == "amd" ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
}

const cluster::GpuType& device_of(const plan::LaunchPlan& plan, const plan::LaunchOrder& order,
                                  const plan::HostRanks& host) {
  return plan.island(rank_at(plan, order, host.ranks.front()).island).device;
}

std::string hostfile(const plan::LaunchOrder& order, const std::map<std::string, std::string>& types) {
  std::string text;
  for (const plan::HostRanks& host : order.hosts) {
    text += fmt::format("{} slots={}", host.host, host.ranks.size());
    if (const auto type = types.find(host.host); type != types.end()) text += " type=" + type->second;
    text += '\n';
  }
  return text;
}

std::string rank_map(const plan::LaunchPlan& plan, const plan::LaunchOrder& order) {
  std::string text = "rank,host,local_rank,gpu,gpu_type,island,stage,part,pipeline,tp,cp,dp,ep,etp,edp\n";
  std::map<std::string, int> started;
  for (std::size_t r = 0; r < order.plan_rank.size(); ++r) {
    const plan::Rank& rank = rank_at(plan, order, static_cast<int>(r));
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", r, rank.host, started[rank.host]++, rank.gpu,
                        plan.island(rank.island).device.name, rank.island, rank.stage, rank.part, rank.replica, rank.tp,
                        rank.cp, rank.dp, rank.ep, rank.etp, rank.edp);
  }
  return text;
}

std::vector<File> plan_files(const plan::LaunchPlan& plan, const plan::LaunchOrder& order) {
  plan::LaunchPlan written = plan;
  return {
      {"plan.json", plan::write_plan(written)}, {"rankmap.csv", rank_map(plan, order)}, {"hostfile", hostfile(order)}};
}

std::vector<File> start_scripts(const plan::LaunchPlan& plan, const plan::LaunchOrder& order,
                                const std::map<std::string, std::string>& environment, const Program& program) {
  std::vector<File> files;
  const bool torchrun = program.launcher == Launcher::kTorchrunWhereItCan && order.host_by_host();
  files.push_back({"start.sh", torchrun ? torchrun_script(order, program) : process_script(order, program), true});
  for (std::size_t node = 0; node < order.hosts.size(); ++node) {
    files.push_back({fmt::format("nodes/{}.sh", order.hosts[node].host),
                     node_script(plan, order, node, environment, program), true});
  }
  return files;
}

}  // namespace tangram::exporting
