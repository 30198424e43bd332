// Which parameters and which optimizer state every GPU of a plan holds. Goes in: a plan, and the cuts at which it and
// the plan it is compared with are taken apart. Comes out: for every tensor (all matrices of a run of layers that are
// divided alike) who holds which interval of it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tangram/evolve/difference.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::evolve {

enum class Sharing : std::uint8_t {
  kTensor,      ///< divided by tp
  kReplicated,  ///< on every rank of a tp group
  kExperts,     ///< divided by ep and etp
};

/// Blocks of one type in [first, last), or an end of the model (first = -1: token embedding, -2: the rest of the
/// embedding, -3: head). Both plans hold all of its blocks in the same stages, so that one interval speaks of all.
struct Tensor {
  int first = 0;
  int last = 0;
  int type = 0;
  Sharing sharing = Sharing::kTensor;
  bool optimizer = false;  ///< its optimizer state instead of its parameters
  auto operator<=>(const Tensor&) const = default;
};

struct Interval {
  std::int64_t begin = 0;  ///< parameters
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const { return end > begin ? end - begin : 0; }
  auto operator<=>(const Interval&) const = default;
};

struct Holding {
  Gpu gpu;
  Interval interval;
};

using Holdings = std::map<Tensor, std::vector<Holding>>;  ///< by rank

/// Where stages of the plan begin and end.
[[nodiscard]] std::set<int> cuts_of(const plan::LaunchPlan& plan);

/// `cuts` has at least those of the plan.
[[nodiscard]] Holdings holdings_of(const plan::LaunchPlan& plan, const std::set<int>& cuts);

}  // namespace tangram::evolve
