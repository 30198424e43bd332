#include "jobset.hpp"

#include <algorithm>
#include <map>

namespace jobset {

namespace {

using tangram::io::Node;
using tangram::io::NodeKind;

struct Field {
  std::string type;  ///< "string", "integer", "boolean", "strings", an object type, or "[type]" for a list of objects
  bool required = false;
};
using Type = std::map<std::string, Field>;

// Objects of free keys ("limits") are "map".
const std::map<std::string, Type>& types() {
  static const std::map<std::string, Type> kTypes{
      {"JobSet",
       {{"apiVersion", {"string", true}},
        {"kind", {"string", true}},
        {"metadata", {"Meta", true}},
        {"spec", {"Spec", true}}}},
      {"Meta", {{"name", {"string", true}}, {"labels", {"map"}}}},
      {"Spec",
       {{"failurePolicy", {"FailurePolicy"}}, {"network", {"Network"}}, {"replicatedJobs", {"[ReplicatedJob]", true}}}},
      {"FailurePolicy", {{"maxRestarts", {"integer"}}}},
      {"Network", {{"enableDNSHostnames", {"boolean"}}, {"subdomain", {"string"}}}},
      {"ReplicatedJob", {{"name", {"string", true}}, {"replicas", {"integer"}}, {"template", {"JobTemplate", true}}}},
      {"JobTemplate", {{"spec", {"JobSpec", true}}}},
      {"JobSpec",
       {{"parallelism", {"integer"}},
        {"completions", {"integer"}},
        {"completionMode", {"string"}},
        {"backoffLimit", {"integer"}},
        {"template", {"PodTemplate", true}}}},
      {"PodTemplate", {{"spec", {"PodSpec", true}}}},
      {"PodSpec",
       {{"restartPolicy", {"string"}},
        {"affinity", {"Affinity"}},
        {"containers", {"[Container]", true}},
        {"volumes", {"[Volume]"}}}},
      {"Affinity", {{"nodeAffinity", {"NodeAffinity"}}}},
      {"NodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", {"NodeSelector"}}}},
      {"NodeSelector", {{"nodeSelectorTerms", {"[NodeTerm]", true}}}},
      {"NodeTerm", {{"matchExpressions", {"[Expression]"}}}},
      {"Expression", {{"key", {"string", true}}, {"operator", {"string", true}}, {"values", {"strings"}}}},
      {"Container",
       {{"name", {"string", true}},
        {"image", {"string"}},
        {"command", {"strings"}},
        {"args", {"strings"}},
        {"env", {"[Variable]"}},
        {"resources", {"Resources"}},
        {"volumeMounts", {"[Mount]"}}}},
      {"Variable", {{"name", {"string", true}}, {"value", {"string"}}}},
      {"Resources", {{"limits", {"map"}}}},
      {"Mount", {{"name", {"string", true}}, {"mountPath", {"string", true}}}},
      {"Volume", {{"name", {"string", true}}, {"persistentVolumeClaim", {"Claim"}}, {"emptyDir", {"EmptyDir"}}}},
      {"Claim", {{"claimName", {"string", true}}}},
      {"EmptyDir", {{"medium", {"string"}}}}};
  return kTypes;
}

void look(const Node& node, const std::string& type, const std::string& place, std::vector<std::string>& found);

bool is_scalar(const Node& node, const std::string& type) {
  return (type == "string" && node.kind == NodeKind::kString) ||
         (type == "integer" && node.kind == NodeKind::kInteger) ||
         (type == "boolean" && node.kind == NodeKind::kBoolean);
}

void look_at_list(const Node& node, const std::string& type, const std::string& place,
                  std::vector<std::string>& found) {
  if (node.kind != NodeKind::kArray) return found.push_back(place + ": no list");
  for (std::size_t i = 0; i < node.items.size(); ++i) look(node.items[i], type, place + "/" + std::to_string(i), found);
}

void look(const Node& node, const std::string& type, const std::string& place, std::vector<std::string>& found) {
  if (type.front() == '[') return look_at_list(node, type.substr(1, type.size() - 2), place, found);
  if (type == "strings") return look_at_list(node, "string", place, found);
  if (type == "map") {
    if (node.kind != NodeKind::kObject) found.push_back(place + ": no object");
    return;
  }
  const auto known = types().find(type);
  if (known == types().end()) {
    if (!is_scalar(node, type)) found.push_back(place + ": no " + type);
    return;
  }
  if (node.kind != NodeKind::kObject) return found.push_back(place + ": no object");
  for (const auto& member : node.members) {
    const auto field = known->second.find(member.key);
    if (field == known->second.end()) {
      found.push_back(place + ": unknown " + member.key);
    } else {
      look(member.value, field->second.type, place + "/" + member.key, found);
    }
  }
  for (const auto& [key, field] : known->second) {
    if (field.required && node.find(key) == nullptr) found.push_back(place + ": no " + key);
  }
}

}  // namespace

std::vector<std::string> mistakes(const Node& manifest) {
  std::vector<std::string> found;
  look(manifest, "JobSet", "", found);
  return found;
}

Node& member(Node& object, const std::string& key) {
  return std::ranges::find(object.members, key, &tangram::io::Member::key)->value;
}

}  // namespace jobset
