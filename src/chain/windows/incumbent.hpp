// The best chains that a search has found so far, and the times that are still of interest because of them.
#pragma once

#include <cstdint>
#include <vector>

#include "../periods.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

/// The canonical order of chains: by time, then by what is simpler.
[[nodiscard]] bool earlier(const Chain& a, const Chain& b);

class Incumbent {
 public:
  Incumbent(const Program& program, const ProgramLimits& limits)
      : program_(program), limits_(limits), best_(limits.incumbent) {}

  /// Only times below it are of interest; kNever: any.
  [[nodiscard]] std::int64_t best() const { return best_; }
  [[nodiscard]] bool exists() const { return best_ != kNever; }
  /// On A + max o of chains whose periods take at least `base` altogether.
  [[nodiscard]] std::int64_t cutoff_at(std::int64_t base) const { return exists() ? best_ - 1 - base : kAnyTime; }
  /// Periods beyond it take too long by themselves. Only with an incumbent and more than one microbatch.
  [[nodiscard]] std::int64_t longest_period() const { return (best_ - 1) / (program_.microbatches - 1); }
  /// The same of any program. kNever: none is too long.
  [[nodiscard]] std::int64_t last_period_of_interest() const {
    return !exists() || program_.microbatches == 1 ? kNever : longest_period();
  }

  /// Evaluates a chain and keeps it among the best; returns its period.
  std::int64_t keep(Chain chain);
  [[nodiscard]] std::vector<Chain>& chains() { return chains_; }

 private:
  const Program& program_;
  const ProgramLimits& limits_;
  std::int64_t best_;
  std::vector<Chain> chains_;  // as earlier() orders them
};

}  // namespace tangram::chain
