#include "backward_floor.hpp"

#include <algorithm>

namespace tangram::compose {

namespace {

constexpr std::int64_t kNone = INT64_MAX;

// Outlines say the least T - F of all their plans; whole frontiers show it.
std::int64_t least_backward(const Program& program, int option, int signature) {
  if (!program.least_backward.empty()) {
    return program.least_backward[static_cast<std::size_t>(option) * static_cast<std::size_t>(program.signatures) +
                                  static_cast<std::size_t>(signature)];
  }
  std::int64_t least = kNone;
  for (const Candidate& plan : program.frontier(option, signature)) least = std::min(least, plan.T - plan.F);
  return least;
}

}  // namespace

BackwardFloor::BackwardFloor(const Program& program) : program_(program) {
  const auto signatures = static_cast<std::size_t>(program.signatures);
  fastest_.assign(signatures, kNone);
  backward_.assign(signatures, kNone);
  for (int option = 0; option < static_cast<int>(program.options.size()); ++option) {
    for (int s = 0; s < program.signatures; ++s) {
      const std::vector<Candidate>& frontier = program.frontier(option, s);
      if (frontier.empty()) continue;
      const auto at = static_cast<std::size_t>(s);
      fastest_[at] = std::min(fastest_[at], frontier.front().T);
      backward_[at] = std::min(backward_[at], least_backward(program, option, s));
    }
  }
}

std::vector<std::int64_t> BackwardFloor::at(std::int64_t period) const {
  std::vector<std::int64_t> floor(static_cast<std::size_t>(program_.blocks) + 1, 0);
  for (int left = 1; left <= program_.blocks; ++left) {
    std::int64_t least = kNone;
    for (int first = 0; first < left; ++first) {
      const auto s = static_cast<std::size_t>(program_.signature_of(first, left));
      if (fastest_[s] > period) continue;
      least = std::min(least, floor[static_cast<std::size_t>(first)] + backward_[s]);
    }
    floor[static_cast<std::size_t>(left)] = least == kNone ? 0 : least;
  }
  return floor;
}

}  // namespace tangram::compose
