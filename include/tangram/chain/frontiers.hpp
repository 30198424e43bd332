// Whole frontiers of a program, made when they are first needed. Goes in: a program whose frontiers may be relaxed
// ones, and the function that makes them whole. Most (option, signature) pairs are cut by the bound and never asked
// for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tangram/base/grid.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

class Frontiers {
 public:
  Frontiers(const Program& program, const Refine& refine) : program_(program), refine_(refine) {
    if (!refine_) return;
    whole_ = {program.frontiers.rows(), program.frontiers.columns()};
  }

  [[nodiscard]] const std::vector<Candidate>& whole(int option, int signature) {
    if (!refine_) return program_.frontier(option, signature);
    std::optional<std::vector<Candidate>>& whole = whole_(option, signature);
    if (!whole) {
      whole = refine_(option, signature);
      made_ += static_cast<std::int64_t>(whole->size());
    }
    return *whole;
  }
  [[nodiscard]] std::int64_t made() const { return made_; }

 private:
  const Program& program_;
  const Refine& refine_;
  Grid<std::optional<std::vector<Candidate>>> whole_;
  std::int64_t made_ = 0;
};

}  // namespace tangram::chain
