// Measurements that cannot be true of their GPU. Goes in: a row and what it is of. Comes out: what is wrong with it, if
// anything is.
#pragma once

#include <optional>
#include <string>

#include "tangram/cost/profile.hpp"

namespace tangram::cost {

/// Cards that boost exceed the datasheet's clock by up to this.
inline constexpr double kBoost = 1.25;
/// Backward does two products for each of forward, so where products decide a block's takes at least this much longer.
inline constexpr double kLeastBackwardRatio = 1.3;
/// Share of the peak from which on products, not launches, decide.
inline constexpr double kProductsDecide = 0.1;

/// What one GPU does in one forward pass: FLOPs of blocks and heads (backward does twice as much), bytes of embeddings
/// (backward does as much).
struct Work {
  double amount = 0;
  double peak = 0;  ///< of it per second; 0: the device has none
};
[[nodiscard]] Work forward_work(const cluster::GpuType& device, const ProfileUnit& unit, const ProfileRow& row);

struct ProfileAnomaly {
  std::string key;  ///< "forward_ms" or "backward_ms"
  std::string code;
  std::string message;
  std::string hint;
};
[[nodiscard]] std::optional<ProfileAnomaly> find_anomaly(const Profile& profile, const ProfileUnit& unit,
                                                         const ProfileRow& row);

}  // namespace tangram::cost
