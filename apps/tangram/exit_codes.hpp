// What the process tells its caller. One table, also printed by `tangram --help`.
#pragma once

#include <cstdint>
#include <string_view>

#include "tangram/base/diagnostic.hpp"

namespace tangram::app {

enum class ExitCode : std::uint8_t {
  kOk = 0,
  kInternal = 1,    ///< a bug
  kDifferent = 2,   ///< the plan differs, where a difference was asked for
  kInfeasible = 3,  ///< no feasible plan; a checked plan with violations
  kInput = 4,       ///< an input that is invalid, or an output that cannot be written
  kPlugin = 5,
  kStoppedEarly = 6,  ///< the best plan so far was written, if one was found
  kUsage = 64,        ///< EX_USAGE of sysexits.h
  kInterrupted = 130,
  kPipe = 141,  ///< nobody reads standard output any more: as a process ends that SIGPIPE ends
  kTerminated = 143,
};

/// The "status" of JSON output.
[[nodiscard]] constexpr std::string_view status_of(ExitCode code) {
  switch (code) {
    case ExitCode::kOk: return "ok";
    case ExitCode::kInternal: return "internal";
    case ExitCode::kDifferent: return "different";
    case ExitCode::kInfeasible: return "infeasible";
    case ExitCode::kInput: return "input";
    case ExitCode::kPlugin: return "plugin";
    case ExitCode::kStoppedEarly: return "incomplete";
    case ExitCode::kUsage: return "usage";
    case ExitCode::kInterrupted:
    case ExitCode::kPipe:
    case ExitCode::kTerminated: return "interrupted";
  }
  return "internal";
}

[[nodiscard]] constexpr ExitCode exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput: return ExitCode::kInput;
    case ErrorKind::kInfeasible: return ExitCode::kInfeasible;
    case ErrorKind::kIncomplete: return ExitCode::kStoppedEarly;
    case ErrorKind::kPlugin: return ExitCode::kPlugin;
    case ErrorKind::kUsage: return ExitCode::kUsage;
    case ErrorKind::kInternal: return ExitCode::kInternal;
  }
  return ExitCode::kInternal;
}

/// The exit table as help shows it.
inline constexpr std::string_view kExitTable =
    "Exit codes:\n"
    "  0    done\n"
    "  1    internal error: a bug, please report it\n"
    "  2    diff --exit-code: the plans differ; plan --detailed-exitcode: the plan\n"
    "       changes\n"
    "  3    no feasible plan (the message says what is missing); check, verify and\n"
    "       import: the plan is wrong; export: refused\n"
    "  4    invalid input file, or an output that cannot be written\n"
    "  5    a requested parallelizer failed; the best plan of the others, if any, was\n"
    "       written\n"
    "  6    stopped early: --time-budget or --time-limit ran out, --objective cost or\n"
    "       gpus is not proven, or a parallelizer ran out of time; the best plan\n"
    "       found, if any, was written\n"
    "  64   wrong usage\n"
    "  130  interrupted (143: terminated, 128 + N: ended by signal N); no file is\n"
    "       left incomplete\n";

}  // namespace tangram::app
