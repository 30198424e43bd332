#include "tangram/kernels/kernel_graph.hpp"

#include <map>

#include "names.hpp"
#include "tangram/base/at.hpp"

namespace tangram::kernels {

std::string_view to_string(BufferKind kind) { return at(kBufferKindNames, kind); }
std::string_view to_string(Growth growth) { return at(kGrowthNames, growth); }
std::string_view to_string(Evidence evidence) { return at(kEvidenceNames, evidence); }
std::string_view to_string(Pin pin) { return at(kPinNames, pin); }
std::string_view to_string(Part part) { return at(kPartNames, part); }
std::string_view to_string(TimeSource source) { return at(kTimeSourceNames, source); }

std::int64_t Phase::passes_of(int kernel) const {
  for (const Repeat& repeat : repeats) {
    if (repeat.first <= kernel && kernel < repeat.first + repeat.kernels) return repeat.times;
  }
  return 1;
}

Storages storages_of(const KernelGraph& graph) {
  Storages storages;
  std::map<std::string, int> named;
  for (const Buffer& buffer : graph.buffers) {
    const int next = storages.count;
    const int storage = buffer.storage.empty() ? next : named.emplace(buffer.storage, next).first->second;
    if (storage == next) ++storages.count;
    storages.of.push_back(storage);
  }
  return storages;
}

}  // namespace tangram::kernels
