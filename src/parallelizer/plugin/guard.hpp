// The process between us and a worker. Goes in: open descriptors and a command, prepared before the fork. Comes out:
// the worker's end on the status pipe; nothing of the worker survives, neither processes nor files in a folder of its
// own, whatever kills us and whatever it forked.
//
// The guard is forked without exec from a program with threads: it only makes async-signal-safe calls and allocates
// nothing. It is the subreaper (prctl(2), PR_SET_CHILD_SUBREAPER) of all the worker starts, daemons in sessions of
// their own included, and reads the end of our life as the end of a pipe.
#pragma once

#include <cstdint>

namespace tangram::parallelizer {

struct GuardJob {
  int life = -1;     ///< read end: closed when the worker is to die
  int status = -1;   ///< write end: one GuardReport when the program could not be run, one when the worker has ended
  int channel = -1;  ///< becomes descriptor 3 of the worker
  int output = -1;   ///< becomes its stdout and stderr
  const char* program = nullptr;
  const char* folder = nullptr;  ///< becomes its working directory
  bool takes_folder = false;     ///< the folder is the worker's own, and goes with it
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  std::int64_t memory_limit = 0;  ///< bytes; 0: none
  int grace = 0;  ///< milliseconds from SIGTERM to SIGKILL, and then for what it started; 0: SIGKILL at once
};

struct GuardReport {
  enum Kind : std::int32_t { kNotRun, kEnded };
  std::int32_t kind = kEnded;
  std::int32_t value = 0;  ///< errno of execve, or the status of waitpid
};

[[noreturn]] void run_guard(const GuardJob& job);

}  // namespace tangram::parallelizer
