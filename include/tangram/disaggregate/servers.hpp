// An arm as a serving engine runs it: one server on each GPU that takes part. Goes in: a problem and an arm. Comes out:
// what the servers of each GPU type do, or why engines have no such thing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/disaggregate/compare.hpp"

namespace tangram::disaggregate {

enum class ServerRole : std::uint8_t {
  kWhole,    ///< requests from the prompt to the last token
  kPrefill,  ///< prompts alone
  kDecode,   ///< tokens behind prompts that others read
};

/// Servers of one class of GPUs, all alike.
struct Servers {
  int on = 0;  ///< the class
  int count = 0;
  ServerRole role = ServerRole::kWhole;
  double share = 0;  ///< of the requests, all of them together
  int requests = 1;  ///< in memory of one of them
};

/// Whole models, and prefill and decode on GPU types of their own: what engines have. Every other arm is an error of
/// kind kInfeasible that names it. The arm fits.
[[nodiscard]] Expected<std::vector<Servers>> servers_of(const Problem& problem, const Arm& arm);

}  // namespace tangram::disaggregate
