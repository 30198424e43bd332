#include "skyline.hpp"

#include <algorithm>
#include <tuple>

namespace tangram::parallelizer {
namespace {

using prune::Candidate;

constexpr std::size_t kBlock = 8;  // candidates compared between two branches

bool precedes(const Candidate& a, const Candidate& b) {
  return std::tuple(a.T, a.F, a.A, a.o, -a.n_max) < std::tuple(b.T, b.F, b.A, b.o, -b.n_max);
}

/// Negative when `a` is worse than `b` in F, A or o, or has fewer than `needed` in flight. The sign of a difference
/// tells, and there is no branch: which component decides cannot be foretold, and a wrong guess costs more than all
/// differences. No difference overflows, as times and counts are never negative.
std::int64_t shortfall(const Candidate& a, const Candidate& b, std::int64_t needed) {
  return (b.F - a.F) | (b.A - a.A) | (b.o - a.o) | (a.n_max - needed);
}

}  // namespace

/// Binary search without branches, for the same reason.
std::size_t Skyline::no_slower(std::int64_t T) const {
  std::size_t before = 0;
  for (std::size_t left = held_.size(); left > 0;) {
    const std::size_t half = (left + 1) / 2;
    before += held_[before + half - 1].T <= T ? half : 0;
    left -= half;
  }
  return before;
}

std::int64_t Skyline::cover(const Candidate& candidate, std::int64_t least, std::int64_t enough, std::int64_t after) {
  if (last_winner_ < held_.size()) {
    const Candidate& winner = held_[last_winner_];
    if (winner.T <= candidate.T && shortfall(winner, candidate, enough) >= 0) return winner.n_max;
  }
  std::int64_t most = least;
  // Slower ones hold more: of those no slower than the candidate, the slowest are the likeliest to hold enough.
  for (std::size_t end = no_slower(candidate.T); end > 0 && most < enough && held_[end - 1].T > after;) {
    const std::size_t begin = end - std::min(kBlock, end);
    std::int64_t all_short = -1;
    for (std::size_t i = begin; i != end; ++i) all_short &= shortfall(held_[i], candidate, most + 1);
    for (std::size_t i = begin; all_short >= 0 && i != end; ++i) {
      if (shortfall(held_[i], candidate, most + 1) < 0) continue;
      most = held_[i].n_max;
      last_winner_ = i;
    }
    end = begin;
  }
  return most;
}

void Skyline::insert(const Candidate& candidate) {
  const auto place = std::lower_bound(held_.begin(), held_.end(), candidate, precedes);
  // What the candidate dominates is not equal to it, hence comes after it.
  const auto beaten = [&candidate](const Candidate& other) { return shortfall(candidate, other, other.n_max) >= 0; };
  const auto first = std::find_if(place, held_.end(), beaten);
  if (first == held_.end()) {
    held_.insert(place, candidate);
    return;
  }
  std::move_backward(place, first, first + 1);  // into the place of the first that goes
  *place = candidate;
  held_.erase(std::remove_if(first + 1, held_.end(), beaten), held_.end());
}

}  // namespace tangram::parallelizer
