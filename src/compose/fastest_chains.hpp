// The fastest chains of a search by timetable. Goes in: programs that are solved, one after the other. Comes out: a few
// of their chains that take unlike times, each with its program, the fastest first.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "batch.hpp"

namespace tangram::compose {

class FastestChains {
 public:
  explicit FastestChains(std::size_t most) : most_(most) {}

  /// Takes the program where one of its chains is among the fastest.
  void note(CandidateProgram candidate, const std::shared_ptr<FrontierStore>& store);

  [[nodiscard]] std::vector<PlacedChain> take() { return std::move(chains_); }

 private:
  void insert(PlacedChain chain);

  std::size_t most_;
  std::vector<PlacedChain> chains_;
};

}  // namespace tangram::compose
