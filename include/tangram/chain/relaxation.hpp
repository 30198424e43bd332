// What a program's relaxation says without a search. Goes in: a program and the time that is of interest. Comes out: a
// bound, and the same program with fewer relaxed frontiers, without what no chain of interest can use.
//
//   the longest period P of interest: at longer ones, (M - 1) P and the bound of the rest come to the time, or more
//   a slice on an option is out where it takes longer than P, or where the units that the option leaves can not hold
//   the other blocks in whole stages within P (capacity.hpp)
//
// A large shape with few blocks wastes units that are needed elsewhere: it need not even be asked for.
#pragma once

#include <cstdint>
#include <memory>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

class FastestPlans;

/// Of one program: the lists that a bound and presolve look at are made once.
class Relaxation {
 public:
  /// Both must outlive it.
  Relaxation(const Program& program, const SolverTuning& tuning);
  ~Relaxation();
  Relaxation(const Relaxation&) = delete;
  Relaxation& operator=(const Relaxation&) = delete;

  /// As the free function.
  [[nodiscard]] std::int64_t root_bound(std::int64_t interest);

  /// Of its program, which is asked for nothing after that, or of a copy: empties the frontiers of what is in no chain
  /// faster than `interest`, and drops plans slower than any period of such a chain. Returns how many frontiers are
  /// empty now that were not. O(windows x signatures x options).
  std::int64_t presolve(std::int64_t interest, Program& reduced);

 private:
  [[nodiscard]] const FastestPlans& plans();

  const Program& program_;
  const SolverTuning& tuning_;
  std::unique_ptr<const FastestPlans> plans_;  // of the program as it was, once they were looked at
};

}  // namespace tangram::chain
