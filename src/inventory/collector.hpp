// What importers share while they read: the nodes so far, names seen, mistakes.
#pragma once

#include <set>
#include <string>

#include "gpu_match.hpp"
#include "tangram/inventory/inventory.hpp"

namespace tangram::inventory {

class Collector {
 public:
  Collector(const Request& request, std::span<const cluster::GpuType> devices, std::string name);
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// False after a report: no name of a host, or a second node of this name.
  bool claim(const io::Document& document, const Text& name);

  void leave_out(std::string node, std::string reason);
  /// A node without GPUs is left out.
  void add(FoundNode node);
  /// GPUs of a type that the node already has count together.
  static void add_gpus(FoundNode& node, const cluster::GpuType& device, int count);
  void note(std::string text);
  void add_error(Diagnostic diagnostic) { mistakes_.push_back(std::move(diagnostic)); }
  void add_error(const Diagnostics& diagnostics);
  [[nodiscard]] bool has_errors() const { return !mistakes_.empty(); }
  [[nodiscard]] GpuNames& gpus() { return gpus_; }

  /// The mistakes, if there are any or no node is left.
  [[nodiscard]] Expected<Inventory> finish();

 private:
  Inventory inventory_;
  std::set<std::string, std::less<>> names_;
  Diagnostics mistakes_;
  GpuNames gpus_;
};

}  // namespace tangram::inventory
