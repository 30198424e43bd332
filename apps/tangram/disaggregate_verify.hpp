// tangram disaggregate verify: a schedule on emulated devices.
#pragma once

#include <cstdint>
#include <string>

#include "command.hpp"
#include "exit_codes.hpp"

namespace tangram::app {

struct VerifySchedule {
  std::string schedule;
  std::string graph;
  std::string ptx;       ///< empty: kernels are functions of which nothing is known but what they touch
  std::string launches;  ///< of the PTX
  std::int64_t seed = 1;
  std::int64_t timings = 50;
  std::int64_t passes = 2;
};

[[nodiscard]] ExitCode verify_schedule(const VerifySchedule& what, const Context& context);

}  // namespace tangram::app
