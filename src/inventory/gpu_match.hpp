// Which GPU type of the catalogue a report means.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "places.hpp"
#include "tangram/cluster/gpu.hpp"

namespace tangram::inventory {

struct GpuMatch {
  const cluster::GpuType* device = nullptr;
  std::vector<std::string> candidates;      ///< where there is no device: catalogue names it may mean
  const cluster::GpuType* other = nullptr;  ///< where there is neither: its name is known, with another memory
};

/// By catalogue name, by the driver's, or as the beginning of a catalogue name ("a100-80gb"), where letters' case,
/// spaces, dashes and underscores, vendor and brand do not count. `memory` (0: not told) rules out types that differ
/// from it by more than an eighth: reports count what the driver keeps in different ways, editions differ by more.
[[nodiscard]] GpuMatch match_gpu(std::string_view name, Bytes memory, std::span<const cluster::GpuType> devices);

/// The same for all names of a request, with what the user said about names. What is not known is reported once.
class GpuNames {
 public:
  GpuNames(std::span<const cluster::GpuType> devices, const std::map<std::string, std::string, std::less<>>& given,
           Diagnostics& mistakes);

  /// Null after a report.
  const cluster::GpuType* find(const io::Document& document, const Text& name, Bytes memory = Bytes(0));

 private:
  void report(const io::Document& document, const Text& name, Bytes memory, const GpuMatch& match);

  std::span<const cluster::GpuType> devices_;
  std::map<std::string, const cluster::GpuType*, std::less<>> given_;
  std::set<std::string, std::less<>> reported_;
  Diagnostics* mistakes_;
};

}  // namespace tangram::inventory
