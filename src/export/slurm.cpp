// A Slurm heterogeneous job (https://slurm.schedmd.com/heterogeneous_jobs.html): one component per island, one task per
// node, which runs that node's start script. The master is named by the plan: inside a step SLURM_JOB_NODELIST is
// sorted over components, so that its first host need not have rank 0.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "components.hpp"

namespace tangram::exporting {

namespace {

std::string request(const plan::LaunchOrder& order, const Component& component) {
  std::vector<std::string> hosts;
  hosts.reserve(component.hosts.size());
  for (const std::size_t h : component.hosts) hosts.push_back(order.hosts[h].host);
  return fmt::format("#SBATCH --nodes={} --ntasks-per-node=1 --gpus-per-node={} --exclusive\n#SBATCH --nodelist={}\n",
                     hosts.size(), component.gpus, fmt::join(hosts, ","));
}

std::string job_script(const plan::LaunchOrder& order, const std::vector<Component>& components) {
  std::string text =
      "#!/usr/bin/env bash\n"
      "# Submit in this folder: sbatch job.sbatch [ARGUMENT...]. Partition, account and time limit are yours to add.\n"
      "#SBATCH --job-name=tangram\n";
  std::vector<std::size_t> groups;
  for (std::size_t c = 0; c < components.size(); ++c) {
    if (c > 0) text += "#SBATCH hetjob\n";
    text += request(order, components[c]);
    groups.push_back(c);
  }
  const std::string groups_option = groups.size() > 1 ? fmt::format(" --het-group={}", fmt::join(groups, ",")) : "";
  return text + fmt::format(
                    "set -euo pipefail\n"
                    "srun --kill-on-bad-exit=1{} \"${{SLURM_SUBMIT_DIR:?}}/node.sh\" \"$@\"\n",
                    groups_option);
}

constexpr const char* kNodeScript =
    "#!/usr/bin/env bash\n"
    "# One task of the job: what the plan runs on this node.\n"
    "set -euo pipefail\n"
    "here=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" && pwd)\n"
    "exec \"$here/nodes/${SLURMD_NODENAME:?}.sh\" \"$@\"\n";

}  // namespace

Expected<Export> export_slurm(const plan::LaunchPlan& plan, const Options& options) {
  auto program = wrapped(plan, options.program);
  if (!program) return fail(std::move(program.error()));
  Export out = std::move(program->files);
  const plan::LaunchOrder& order = program->launch.order;
  out.files.push_back({"job.sbatch", job_script(order, components_of(plan, order)), true});
  out.files.push_back({"node.sh", kNodeScript, true});
  out.notes = {"submit it in that folder, on storage that all nodes see: sbatch job.sbatch " + program->arguments};
  return out;
}

}  // namespace tangram::exporting
