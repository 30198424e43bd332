#include "shipped/fleets_and_models.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tangram::shipped {
namespace {

const std::string kClusters = TANGRAM_SOURCE_DIR "/configs/clusters/";
const std::string kModels = TANGRAM_SOURCE_DIR "/configs/models/";

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::string> names_in(const std::string& folder, const std::string& ending) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ending) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

template <class T>
T valid(Expected<T> value) {
  if (!value) throw std::runtime_error(render(value.error()));
  return *std::move(value);
}

}  // namespace

cluster::Fleet fleet_named(const std::string& name) {
  const std::string path = kClusters + name + ".json";
  return valid(cluster::read_fleet(content(path), path));
}

model::Model model_named(const std::string& name) {
  const std::string path = kModels + name + ".yaml";
  return valid(model::read_model(content(path), path));
}

std::vector<std::string> fleet_names() { return names_in(kClusters, ".json"); }

std::vector<std::string> model_names() { return names_in(kModels, ".yaml"); }

std::vector<cluster::Fleet> fleets() {
  std::vector<cluster::Fleet> all;
  for (const std::string& name : fleet_names()) all.push_back(fleet_named(name));
  return all;
}

std::vector<model::Model> models() {
  std::vector<model::Model> all;
  for (const std::string& name : model_names()) all.push_back(model_named(name));
  return all;
}

cluster::Fleet part_of(const cluster::Fleet& whole, const std::string& gpu_type, std::size_t count) {
  cluster::Fleet part = whole;
  part.nodes.clear();
  part.measured.clear();
  for (const cluster::Node& node : whole.nodes) {
    if (node.groups.front().device.name == gpu_type && part.nodes.size() < count) part.nodes.push_back(node);
  }
  if (part.nodes.size() != count) throw std::runtime_error(whole.name + " has too few nodes of " + gpu_type);
  return part;
}

}  // namespace tangram::shipped
