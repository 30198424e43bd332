// The arithmetic of labels at one fixed period. Goes in: a program and a period P. Comes out: what a stage in front
// makes of a label, and when one label is no worse than another whatever comes in front of both.
//
// A label is a run of last stages of a pipeline: (Lat, A, o, n, Q), all smaller is better; prepending stage p over a
// boundary of latency c:
//
//   Lat' = T - W + 2c + Lat     A' = max(A + F + c, A_p + Lat + 2c)     o' = max(o, o_p)
//   x = T + 2c + Q              n' = max(n + 1, ceil(x / P))            Q' = max(P (n' - 1) + T, x)
//
// W is what zero bubble puts off, else 0: no stage in front waits for it.
//
// Once n reaches M all microbatches are in flight: it can not get worse, and n and Q no longer matter.
//
// Where transfers block, Q is what the head keeps of a period so far, T and the transfer behind it; the transfer in
// front comes on top once a stage is there:
//
//   Q + c <= P              n' = n + 1                           Q' = T + c <= P
//
// Interleaved, all of it counts passes of one chunk, and the last stage sends to the first:
//
//   x = T + 2c + Q <= P n'  n' = n + 2 (the last stage: 1)       Q' = max(P (n' - 1) + T, x)
//
// Where sends block, T + c <= P, and Q' counts the c behind. What is left for the way around is known once the first
// stage is: a label remembers its last stage, the slack min (P n - Lat) of all its stages, which the way around has to
// fit into where sends block, and the largest group that all of them hold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

/// Stands for a Q that no longer matters.
inline constexpr std::int64_t kFar = INT64_MAX / 8;

struct Label {
  std::int64_t latency = 0;
  std::int64_t a = 0;
  std::int64_t o = 0;
  std::int64_t q = 0;
  std::int64_t n = 0;
  // Interleaved:
  std::int64_t slack = kFar;
  std::int64_t most_in_group = INT64_MAX;
  int tail = -1;  ///< price key of the last stage
};

/// A label with the price key of its head stage, as dominance compares it.
struct DominanceKey {
  std::int64_t latency = 0;
  std::int64_t a = 0;
  std::int64_t o = 0;
  std::int64_t q = 0;
  std::int64_t reach = 0;  ///< Q plus the longest round trip that may follow
  std::int64_t room = 0;   ///< n P: any Q plus round trip up to here gives the next stage n + 1; of blocking ones P
  int head = -1;           ///< price key; -1: no stage yet
  std::int64_t slack = 0;  ///< as in Label; larger is better
  std::int64_t most_in_group = 0;
};

/// What the boundary prices of a program mean for comparing labels at a period.
class BoundaryPrices {
 public:
  /// Stages in front that count: those that the period allows. kAny compares fewer labels whose heads differ, and a
  /// narrow beam keeps a greater variety of them.
  enum class Fronts : std::uint8_t { kAllowed, kAny };
  BoundaryPrices(const Program& program, std::int64_t period, Fronts fronts = Fronts::kAllowed);
  BoundaryPrices(const BoundaryPrices&) = delete;  // gaps refer to their prices
  BoundaryPrices& operator=(const BoundaryPrices&) = delete;

  /// How much longer the hop over a cut to a head x can be than that to a head y, for any stage that the period allows
  /// in front of y. kFar: it does not allow all of these in front of x. Worked out where it is first asked for, as few
  /// pairs of heads meet where there are many; not to be asked by two threads.
  class LatencyGap {
   public:
    LatencyGap(const BoundaryPrices& prices, const Grid<Price>& of_kind)
        : prices_(prices), of_kind_(of_kind), known_(of_kind.rows(), of_kind.columns(), kUnknown) {}
    [[nodiscard]] std::int64_t operator()(int x, int y) const {
      std::int64_t& gap = known_(x, y);
      if (gap == kUnknown) gap = prices_.latency_gap_of(of_kind_, x, y);
      return gap;
    }

   private:
    static constexpr std::int64_t kUnknown = -1;
    const BoundaryPrices& prices_;
    const Grid<Price>& of_kind_;
    mutable Grid<std::int64_t> known_;
  };
  [[nodiscard]] const LatencyGap& latency_gap_at(int cut) const {
    return at(latency_gaps_, at(program_.cut_kind, cut));
  }
  /// Whether the period has time for what is handed over.
  [[nodiscard]] bool fits(const Price& price) const {
    return (program_.blocking_transfers ? price.latency : price.occupancy) <= period_;
  }
  [[nodiscard]] std::int64_t longest(int head) const { return at(longest_, head); }

 private:
  [[nodiscard]] std::int64_t latency_gap_of(const Grid<Price>& of_kind, int x, int y) const;
  [[nodiscard]] bool counts(const Price& price) const {
    return !price.is_none() && (fronts_ == Fronts::kAny || fits(price));
  }

  const Program& program_;
  std::int64_t period_;
  Fronts fronts_;
  std::vector<std::int64_t> longest_;     // latency, by key of the head
  std::vector<LatencyGap> latency_gaps_;  // by kind of cut
};

class LabelAlgebra {
 public:
  /// `feasibility_only`: how long a chain takes does not matter, only whether memory and links hold it at the period.
  LabelAlgebra(const Program& program, const BoundaryPrices& hops, std::int64_t period, bool feasibility_only = false)
      : program_(program),
        hops_(hops),
        period_(period),
        feasibility_only_(feasibility_only),
        stops_for_sends_(program.blocking_transfers || program.interleaving.sends_block) {}

  /// Puts a stage with the plan `p` and the price key `key` in front of a label whose head has the key `head`, over the
  /// boundary at `cut` (no matter where head is -1). False: the period or the memory does not allow it.
  [[nodiscard]] bool prepend(const Label& label, int head, const Candidate& p, int key, int cut, Label& next) const {
    std::int64_t c = 0;
    if (head >= 0) {
      const Price& price = program_.price(cut, key, head);
      if (!hops_.fits(price)) return false;
      c = price.latency;
    }
    next.a = head < 0 ? p.A : std::max(label.a + p.F + c, p.A + label.latency + 2 * c);
    next.o = std::max(label.o, p.o);
    next.latency = p.passage() + 2 * c + label.latency;
    if (program_.blocking_transfers) return blocks_within(label, p, c, next);
    if (program_.is_interleaved()) return interleaves_within(label, p, key, c, next);
    const std::int64_t x = p.T + 2 * c + label.q;
    next.n = label.q >= kFar ? program_.microbatches : label.n + 1;
    if (label.q < kFar && x > next.n * period_) {  // rare, and a division is slow
      if (program_.classic_warmup && next.n < program_.microbatches) return false;
      next.n = (x + period_ - 1) / period_;
    }
    if (next.n >= program_.microbatches) {
      next.n = program_.microbatches;
      next.q = kFar;
    } else {
      next.q = std::max(period_ * (next.n - 1) + p.T, x);
    }
    return next.n <= p.n_max;
  }

  [[nodiscard]] DominanceKey dominance_key(const Label& label, int head) const {
    if (program_.blocking_transfers) {
      return {label.latency, label.a, label.o, label.q, label.q + hops_.longest(head), period_, head};
    }
    const std::int64_t room = label.q >= kFar ? 2 * kFar : (label.n + program_.warmup_step() - 1) * period_;
    return {label.latency,      label.a, label.o, label.q, label.q + 2 * hops_.longest(head), room, head, label.slack,
            label.most_in_group};
  }

  /// Of an interleaved chain: adds what it waits for the way around to A. False: it has none.
  [[nodiscard]] bool close(int head, Label& label) const {
    const Interleaving& interleaving = program_.interleaving;
    if (label.n == 1) return false;  // one stage
    const Price& around = interleaving.around(label.tail, head);
    if (!hops_.fits(around) || (interleaving.sends_block && around.latency > label.slack)) return false;
    const std::int64_t latency = label.latency + 2 * around.latency;
    const std::int64_t group = interleaving.group_for((label.n + 1) / 2, label.most_in_group, latency, period_);
    if (group == 0) return false;
    label.a += interleaving.wait_around(latency, group, period_);
    return true;
  }

  /// Whatever stage comes in front: with x it is no worse than with y. What follows depends on n and Q by
  /// max(n P, Q + 2c) alone, c being the next hop. Hence it is enough that Q_x + 2c stays within n P of y, or that it
  /// is no more than that of y. Either means an n that is no larger: (n-1) P < Q <= n P, and Q is kFar exactly where n
  /// = M. Where transfers block, hops to x must be no longer, as they are in the next Q, and Q of x no more than that
  /// of y, or no hop be too long for it; likewise where sends block. The sign of a difference tells, and there is no
  /// branch: which component decides cannot be foretold. No difference overflows, as none of the numbers is negative.
  [[nodiscard]] bool dominates(const DominanceKey& x, const DominanceKey& y,
                               const BoundaryPrices::LatencyGap& latency_gap) const {
    const std::int64_t further = latency_gap(x.head, y.head);
    if (stops_for_sends_ && further > 0) return false;
    const std::int64_t within = y.room - x.reach;
    const std::int64_t no_more = y.q - x.q - 2 * further;
    if (program_.is_interleaved()) {
      const std::int64_t later = y.latency - x.latency - 2 * further;
      if ((later | (x.slack - y.slack) | (x.most_in_group - y.most_in_group)) < 0) return false;
    }
    if (feasibility_only_) return further < kFar && (within & no_more) >= 0;
    return ((y.latency - x.latency - 2 * further) | (y.a - x.a - further) | (y.o - x.o) | (within & no_more)) >= 0;
  }

 private:
  [[nodiscard]] bool blocks_within(const Label& label, const Candidate& p, std::int64_t c, Label& next) const {
    if (label.q + c > period_) return false;
    next.n = std::min(label.n + 1, program_.microbatches);
    next.q = p.T + c;
    return next.q <= period_ && next.n <= p.n_max;
  }

  [[nodiscard]] bool interleaves_within(const Label& label, const Candidate& p, int key, std::int64_t c,
                                        Label& next) const {
    const Interleaving& interleaving = program_.interleaving;
    const bool is_last = label.n == 0;
    const std::int64_t sent = interleaving.sends_block ? c : 0;
    const std::int64_t x = p.T + 2 * c + label.q;
    next.n = is_last ? 1 : label.n + program_.warmup_step();
    if (p.T + sent > period_ || x > next.n * period_) return false;
    next.q = std::max(period_ * (next.n - 1) + p.T + sent, x);
    next.slack = std::min(label.slack, period_ * next.n - next.latency);
    next.most_in_group =
        std::min(label.most_in_group, interleaving.most_in_group(next.n, p.n_max, program_.microbatches));
    next.tail = is_last ? key : label.tail;
    const std::int64_t least = interleaving.least_group((next.n + 1) / 2);
    return least > 0 && least <= next.most_in_group;
  }

  const Program& program_;
  const BoundaryPrices& hops_;
  std::int64_t period_;
  bool feasibility_only_;
  bool stops_for_sends_;
};

}  // namespace tangram::chain
