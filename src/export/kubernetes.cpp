// A JobSet (jobset.x-k8s.io/v1alpha2, https://jobset.sigs.k8s.io): one replicated job per island, its pods indexed.
// Pods of a job are alike, so that each takes the part of the host at its index. Inside a container GPUs are numbered
// anew.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "components.hpp"
#include "scripts.hpp"
#include "yaml_text.hpp"

namespace tangram::exporting {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kName = "tangram";
constexpr const char* kFolder = "/tangram";  // where pods find the exported files

std::string job_name(std::size_t component) { return fmt::format("island-{}", component); }

Json environment_json(std::size_t component) {
  Json out = Json::array();
  const auto put = [&](const char* name, std::string value) { out.push_back({{"name", name}, {"value", value}}); };
  put("TANGRAM_JOB", job_name(component));
  put("MASTER_ADDR", fmt::format("{0}-{1}-0-0.{0}", kName, job_name(0)));  // JOBSET-JOB-REPLICA-POD.SUBDOMAIN
  put("MASTER_PORT", std::to_string(kMasterPort));
  return out;
}

/// Pods go where the plan's hosts are.
Json affinity_json(const plan::LaunchOrder& order, const Component& component) {
  Json hosts = Json::array();
  for (const std::size_t h : component.hosts) hosts.push_back(order.hosts[h].host);
  const Json term = {
      {"matchExpressions",
       Json::array({{{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", std::move(hosts)}}})}};
  return {{"nodeAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", Json::array({term})}}}}}};
}

Json pod_json(const plan::LaunchPlan& plan, const plan::LaunchOrder& order, std::size_t index,
              const Component& component, const std::string& image) {
  const bool amd = plan.island(component.island).device.vendor == "amd";
  Json container;
  container["name"] = "train";
  container["image"] = image.empty() ? "REPLACE/WITH-YOUR-IMAGE" : image;
  container["command"] = {"bash", fmt::format("{}/pod.sh", kFolder)};
  container["args"] = Json::array();
  container["env"] = environment_json(index);
  container["resources"]["limits"][amd ? "amd.com/gpu" : "nvidia.com/gpu"] = component.gpus;
  container["volumeMounts"] = Json::array({{{"name", "plan"}, {"mountPath", kFolder}},  //
                                           {{"name", "shm"}, {"mountPath", "/dev/shm"}}});
  Json pod;
  pod["restartPolicy"] = "Never";
  pod["affinity"] = affinity_json(order, component);
  pod["containers"] = Json::array({std::move(container)});
  pod["volumes"] = Json::array({{{"name", "plan"}, {"persistentVolumeClaim", {{"claimName", kName}}}},
                                {{"name", "shm"}, {"emptyDir", {{"medium", "Memory"}}}}});
  return pod;
}

std::string manifest(const plan::LaunchPlan& plan, const plan::LaunchOrder& order,
                     const std::vector<Component>& components, const std::string& image) {
  Json set;
  set["apiVersion"] = "jobset.x-k8s.io/v1alpha2";
  set["kind"] = "JobSet";
  set["metadata"]["name"] = kName;
  Json& spec = set["spec"];
  spec["failurePolicy"]["maxRestarts"] = 3;
  spec["network"] = {{"enableDNSHostnames", true}, {"subdomain", kName}};
  for (std::size_t c = 0; c < components.size(); ++c) {
    Json job;
    job["parallelism"] = components[c].hosts.size();
    job["completions"] = components[c].hosts.size();
    job["completionMode"] = "Indexed";
    job["backoffLimit"] = 0;
    job["template"]["spec"] = pod_json(plan, order, c, components[c], image);
    spec["replicatedJobs"].push_back(
        {{"name", job_name(c)}, {"replicas", 1}, {"template", {{"spec", std::move(job)}}}});
  }
  return "# The folder of this file has to be the volume \"tangram\". Arguments of the program go into args.\n" +
         yaml_text(set);
}

std::string pod_script(const Launch& launch, const std::vector<Component>& components) {
  std::string text =
      "#!/usr/bin/env bash\n"
      "# What a pod runs: the part of the host at its index.\n"
      "set -euo pipefail\n"
      "here=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" && pwd)\n";
  for (const auto& [name, value] : launch.environment) text += fmt::format("export {}={}\n", name, shell_word(value));
  text += "case ${TANGRAM_JOB:?}-${JOB_COMPLETION_INDEX:?} in\n";
  for (std::size_t c = 0; c < components.size(); ++c) {
    for (std::size_t i = 0; i < components[c].hosts.size(); ++i) {
      const std::size_t node = components[c].hosts[i];
      text += fmt::format("  {}-{}) export NODE_RANK={} LOCAL_RANKS='{}' ;;\n", job_name(c), i, node,
                          joined(launch.order.hosts[node].ranks, " "));
    }
  }
  return text +
         "  *)\n"
         "    echo \"no part of the plan is for $TANGRAM_JOB-$JOB_COMPLETION_INDEX\" >&2\n"
         "    exit 64\n"
         "    ;;\n"
         "esac\n"
         "exec \"$here/start.sh\" \"$@\"\n";
}

}  // namespace

Expected<Export> export_kubernetes(const plan::LaunchPlan& plan, const Options& options) {
  auto program = wrapped(plan, options.program);
  if (!program) return fail(std::move(program.error()));
  Export out = std::move(program->files);
  // Scripts for hosts set GPU numbers that a container does not have.
  std::erase_if(out.files, [](const File& file) { return file.path.starts_with("nodes/"); });
  const auto components = components_of(plan, program->launch.order);
  out.files.push_back({"jobset.yaml", manifest(plan, program->launch.order, components, options.image), false});
  out.files.push_back({"pod.sh", pod_script(program->launch, components), true});
  out.notes = {"put the folder on a volume claimed as \"tangram\", then kubectl apply -f jobset.yaml"};
  if (options.image.empty()) out.notes.emplace_back("no --image was given: replace REPLACE/WITH-YOUR-IMAGE");
  return out;
}

}  // namespace tangram::exporting
