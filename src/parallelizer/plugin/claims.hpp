// One plan as a plugin wrote it. Goes in: JSON of unknown quality. Comes out: the strategy and the claims, or the first
// thing that is wrong with them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

/// What a plugin says a stage takes; each may be left out. Nanoseconds and bytes.
struct Claims {
  std::optional<double> forward;
  std::optional<double> backward;
  std::optional<double> static_memory;
  std::optional<double> transient;
  std::optional<double> activation;

  [[nodiscard]] std::optional<double> time() const {
    return forward && backward ? std::optional(*forward + *backward) : std::nullopt;
  }
};

struct ClaimedPlan {
  cost::Strategy strategy;
  Claims claims;
  std::string opaque;
};

template <class T>
using Judged = tl::expected<T, Rejection>;

/// Reads one entry of "plans". The blocks it names must be those of the slice.
[[nodiscard]] Judged<ClaimedPlan> read_claimed_plan(const nlohmann::json& plan, const model::Model& model,
                                                    const model::SliceSignature& slice);

}  // namespace tangram::parallelizer
