// Why a device does not have what a kernel reads.
#pragma once

#include <span>

#include "setting.hpp"

namespace tangram::dispatch {

/// What is known when a piece turns out wrong.
struct Scene {
  const Setting& setting;
  std::span<const char> has_run;   ///< by run
  std::span<const char> has_come;  ///< by copy: unpacked in this pass
};

struct Wrong {
  RunNumber reader = kNothing;  ///< kNothing: at the end of all passes
  int device = 0;               ///< where it is wrong
  PieceRange range;             ///< all alike
  RunNumber wanted = kFirst;
  RunNumber held = kFirst;
};

[[nodiscard]] Finding blame(const Scene& scene, const Wrong& wrong);

}  // namespace tangram::dispatch
