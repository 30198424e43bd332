#include "tangram/parallelizer/registry.hpp"

#include <algorithm>

namespace tangram::parallelizer {
namespace {

constexpr BuiltIn kBuiltIns[] = {
    {"enumerator",
     "every tp, sp, cp, ep, dp, ZeRO stage and recompute of one stage, as Megatron-LM's users choose them",
     make_enumerator},
    {"layerwise",
     "ZeRO-3 and recompute chosen layer by layer, as Galvatron does: for memory-tight fleets, beside the enumerator",
     make_layerwise},
};

}  // namespace

std::span<const BuiltIn> built_ins() { return kBuiltIns; }

const BuiltIn* find_built_in(std::string_view name) {
  const auto* found = std::ranges::find(kBuiltIns, name, &BuiltIn::name);
  return found == std::end(kBuiltIns) ? nullptr : found;
}

}  // namespace tangram::parallelizer
