// What Megatron-LM prints of its timers (megatron/core/timers.py, and training_log in megatron/training/training.py).
// Goes in: a log. Comes out: for each time that it logged, the milliseconds of an iteration that ranks spent in the
// passes.
//
//    [2026-01-31 10:00:00] iteration       20/     500 | consumed samples: ... | global batch size:    64 | ...
//   times across ranks (ms):                     with --timing-log-option all
//     forward-compute:
//        rank  0: 412.25
//   (min, max) time across ranks (ms):           with minmax
//       forward-compute ................................: (401.10, 412.25)
//
// Launchers may put their own words in front of a line ("[default0]:", "INFO:megatron.core.timers:").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/profiles/import.hpp"

namespace tangram::calibrate {

/// Of an iteration, milliseconds by rank.
using RankTimes = std::map<int, double>;

struct TimerEntry {
  int line = 0;                   ///< of the file, from 1, where the times begin
  std::int64_t iteration = 0;     ///< the last of those that the entry is the mean of
  std::int64_t first = 0;         ///< the first of them
  std::int64_t global_batch = 0;  ///< samples; 0: not printed
  std::string date;               ///< YYYY-MM-DD; empty: not printed
  bool by_rank = false;           ///< else the least and the most of all ranks, as ranks 0 and 1
  RankTimes forward;
  RankTimes backward;
  RankTimes batch;  ///< fetching the microbatches, which is inside forward
};

/// Fails where the log has no times of passes.
[[nodiscard]] Expected<std::vector<TimerEntry>> read_timers(const profiles::SourceFile& file);

}  // namespace tangram::calibrate
