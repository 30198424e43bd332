#include "collector.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tangram/base/problem.hpp"

namespace tangram::inventory {

Collector::Collector(const Request& request, std::span<const cluster::GpuType> devices, std::string name)
    : gpus_(devices, request.gpu_names, mistakes_) {
  inventory_.name = std::move(name);
}

bool Collector::claim(const io::Document& document, const Text& name) {
  if (!is_host_name(name.value)) {
    add_error(error_at(document, name, "bad-name", fmt::format("\"{}\" is no name of a host", printable(name.value)),
                       "letters, digits, \"-\", \"_\" and \".\" make a name"));
    return false;
  }
  if (names_.insert(name.value).second) return true;
  add_error(error_at(document, name, "duplicate-node", fmt::format("node \"{}\" is reported twice", name.value),
                     "give each report once"));
  return false;
}

void Collector::leave_out(std::string node, std::string reason) {
  inventory_.left_out.push_back({std::move(node), std::move(reason)});
}

void Collector::add(FoundNode node) {
  if (node.gpus.empty()) return leave_out(std::move(node.name), "it has no GPUs");
  inventory_.nodes.push_back(std::move(node));
}

void Collector::add_gpus(FoundNode& node, const cluster::GpuType& device, int count) {
  const auto same = std::ranges::find_if(node.gpus, [&](const FoundGpus& gpus) { return gpus.device == &device; });
  if (same != node.gpus.end()) {
    same->count += count;
  } else {
    node.gpus.push_back({&device, count, 0, std::nullopt});
  }
}

void Collector::note(std::string text) { inventory_.notes.push_back(std::move(text)); }

void Collector::add_error(const Diagnostics& diagnostics) {
  mistakes_.insert(mistakes_.end(), diagnostics.begin(), diagnostics.end());
}

Expected<Inventory> Collector::finish() {
  if (mistakes_.empty() && inventory_.nodes.empty()) {
    constexpr std::size_t kShown = 3;
    std::string reasons;
    for (std::size_t i = 0; i < std::min(kShown, inventory_.left_out.size()); ++i) {
      const LeftOut& left = inventory_.left_out[i];
      reasons += fmt::format("{}{}: {}", i > 0 ? "; " : "", left.node, left.reason);
    }
    if (inventory_.left_out.size() > kShown) {
      reasons += fmt::format("; and {} more", inventory_.left_out.size() - kShown);
    }
    add_error(problem(ErrorKind::kInput, "no-gpus", "no node with GPUs that can be used", std::move(reasons)));
  }
  if (!mistakes_.empty()) return fail(std::move(mistakes_));
  return std::move(inventory_);
}

}  // namespace tangram::inventory
