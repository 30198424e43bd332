#include "tangram/chain/local_search.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "../resources.hpp"
#include "near_misses.hpp"
#include "tangram/base/at.hpp"
#include "tangram/chain/timetable.hpp"

namespace tangram::chain {

namespace {

class LocalSearch {
 public:
  LocalSearch(const Program& program, Frontiers& frontiers, Chain start, Changes changes, std::int64_t effort,
              const SolverTuning& tuning, const Deadline& deadline)
      : program_(program),
        frontiers_(frontiers),
        tuning_(tuning),
        deadline_(deadline),
        all_(changes == Changes::kAll),
        left_(effort),
        best_{std::move(start), 0},
        near_misses_(tuning) {
    best_.time = time_of(best_.chain, INT64_MAX);
    note_more();
  }

  TimedChain run() {
    descend();
    while (all_ && left_ > 0 && change_twice()) descend();
    group_otherwise();
    return std::move(best_);
  }

 private:
  void descend() {
    while (left_ > 0 && (change_near() || (all_ && change_far()))) {
    }
  }

  // Two changes at once: from the chains that were nearly as fast as the best, every one change more.
  bool change_twice() {
    const Chain fastest = best_.chain;
    for (TimedChain& near : near_misses_.take()) {
      if (!near_misses_.is_near(near.time, best_.time)) continue;
      best_.chain = std::move(near.chain);
      note_more();
      if (change_near() || change_far()) return true;
      best_.chain = fastest;
    }
    note_more();
    return false;
  }

  bool change_near() {
    bool improved = false;
    for (std::size_t s = 0; s < stages().size(); ++s) {
      improved |= plan_otherwise(s);
      improved |= run_elsewhere(s);
      improved |= warm_up_longer(s);
      if (all_) improved |= split(s);
      for (std::size_t t = s + 1; t < (all_ ? stages().size() : std::min(stages().size(), s + 2)); ++t) {
        improved |= exchange(s, t);
      }
      for (const int blocks : {-2, -1, 1, 2}) improved |= move_boundary(s, blocks);
      if (all_) improved |= merge(s);
    }
    return step_sooner() || improved;
  }

  // What takes several of the changes above, each of which alone may be slower. A block moves to a neighbour above;
  // neighbours change places in one way.
  bool change_far() {
    bool improved = false;
    for (std::size_t s = 0; s < stages().size(); ++s) {
      for (std::size_t t = 0; t < stages().size(); ++t) {
        if (s == t) continue;
        const bool are_neighbours = s + 1 == t || t + 1 == s;
        if (!are_neighbours) improved |= move_block(s, t);
        if (!are_neighbours || s < t) improved |= move_stage(s, t);
        if (!are_neighbours && s < t) improved |= exchange_whole(s, t);
        if (s < t) improved |= run_beside_others(s, t);
      }
    }
    return improved;
  }

  // Of groups that wait for nothing by closed form the smallest is taken: larger ones may leave fewer gaps.
  void group_otherwise() {
    for (const MicrobatchGroup& group : program_.interleaving.groups) {
      Chain next = best_.chain;
      if (left_ <= 0 || group.microbatches == next.group || !regroup(program_, group.microbatches, next)) continue;
      const std::int64_t time = time_of(next, best_.time);
      if (time < best_.time) best_ = {std::move(next), time};
    }
  }

  [[nodiscard]] const std::vector<ChainStage>& stages() const { return best_.chain.stages; }
  [[nodiscard]] const Option& option(int number) const { return at(program_.options, number); }

  bool plan_otherwise(std::size_t s) {
    const ChainStage stage = stages()[s];
    bool improved = false;
    for (const Candidate& plan : frontiers_.whole(stage.option, program_.signature_of(stage.first, stage.last))) {
      if (plan.source == stages()[s].candidate.source) continue;
      Chain next = best_.chain;
      next.stages[s].candidate = plan;
      improved |= consider(std::move(next), more_in_flight_);
    }
    return improved;
  }

  // All stages whose optimizer steps take longest, which one alone would not make shorter, with faster ones.
  bool step_sooner() {
    Chain next = best_.chain;
    std::int64_t longest = 0;
    for (const ChainStage& stage : next.stages) longest = std::max(longest, stage.candidate.o);
    for (std::size_t s = 0; s < next.stages.size(); ++s) {
      ChainStage& stage = next.stages[s];
      if (stage.candidate.o < longest) continue;
      const std::vector<Candidate>& plans =
          frontiers_.whole(stage.option, program_.signature_of(stage.first, stage.last));
      const std::int64_t depth = depth_of(best_.chain, s);
      const auto sooner =
          std::ranges::find_if(plans, [&](const Candidate& plan) { return plan.o < longest && plan.n_max >= depth; });
      if (sooner == plans.end()) return false;
      stage.candidate = *sooner;
    }
    return consider(std::move(next), more_in_flight_);
  }

  bool run_elsewhere(std::size_t s) {
    bool improved = false;
    for (int other = 0; other < static_cast<int>(program_.options.size()); ++other) {
      if (other == stages()[s].option || !fits(other, left_without({&s, 1}))) continue;
      Chain next = best_.chain;
      next.stages[s].option = other;
      improved |= try_plans(std::move(next), {s}, more_in_flight_);
    }
    return improved;
  }

  bool move_boundary(std::size_t s, int blocks) {
    if (s + 1 >= stages().size()) return false;
    const int cut = stages()[s].last + blocks;
    if (cut <= stages()[s].first || cut >= stages()[s + 1].last) return false;
    Chain next = best_.chain;
    next.stages[s].last = next.stages[s + 1].first = cut;
    return try_plans(std::move(next), {s, s + 1}, more_in_flight_);
  }

  bool exchange(std::size_t s, std::size_t t) {
    if (stages()[s].option == stages()[t].option) return false;
    Chain next = best_.chain;
    std::swap(next.stages[s].option, next.stages[t].option);
    return try_plans(std::move(next), {s, t}, more_in_flight_);
  }

  // Both on as many GPUs of the same classes as before, which lie otherwise: in one node with other stages.
  bool run_beside_others(std::size_t s, std::size_t t) {
    bool improved = false;
    for (const int one : alike_to(stages()[s].option)) {
      for (const int other : alike_to(stages()[t].option)) {
        Chain next = best_.chain;
        if (!run_on(one, next.stages[s]) || !run_on(other, next.stages[t])) continue;
        improved |= consider(std::move(next), more_in_flight_);
      }
    }
    return improved;
  }

  // With the same plan, if there is one.
  [[nodiscard]] bool run_on(int other, ChainStage& stage) {
    const std::vector<Candidate>& plans = frontiers_.whole(other, signature_of(stage));
    const auto same = std::ranges::find(plans, stage.candidate.source, &Candidate::source);
    if (same == plans.end() || same->T != stage.candidate.T) return false;
    stage.option = other;
    stage.candidate = *same;
    return true;
  }

  // All boundaries between the two move along.
  bool move_block(std::size_t from, std::size_t to) {
    std::vector<Piece> pieces = as_pieces();
    if (--pieces[from].blocks == 0) return false;
    ++pieces[to].blocks;
    return try_pieces(pieces);
  }

  // With its blocks; those between move up.
  bool move_stage(std::size_t from, std::size_t to) {
    std::vector<Piece> pieces = as_pieces();
    const Piece moved = pieces[from];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(from));
    pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(to), moved);
    return try_pieces(pieces);
  }

  bool exchange_whole(std::size_t s, std::size_t t) {
    std::vector<Piece> pieces = as_pieces();
    std::swap(pieces[s], pieces[t]);
    return try_pieces(pieces);
  }

  // A stage of the best chain, and how many blocks it is to have.
  struct Piece {
    const ChainStage* stage;
    int blocks;
  };

  [[nodiscard]] std::vector<Piece> as_pieces() const {
    std::vector<Piece> pieces;
    for (const ChainStage& stage : stages()) pieces.push_back({&stage, stage.last - stage.first});
    return pieces;
  }

  // Stages in this order. Those whose blocks are as before keep their plans.
  bool try_pieces(const std::vector<Piece>& pieces) {
    Chain next = best_.chain;
    std::vector<std::size_t> changed;
    int first = stages().front().first;
    for (std::size_t s = 0; s < pieces.size(); ++s) {
      ChainStage& stage = next.stages[s];
      stage = *pieces[s].stage;
      stage.first = first;
      stage.last = first + pieces[s].blocks;
      first = stage.last;
      if (signature_of(stage) != signature_of(*pieces[s].stage)) changed.push_back(s);
    }
    return try_plans(std::move(next), changed, more_in_flight_);
  }

  // One part stays where it is, or both run elsewhere on half as many GPUs.
  bool split(std::size_t s) {
    const int own = stages()[s].option;
    const std::vector<std::int64_t> spare = left_without({});
    for (int other = 0; other < static_cast<int>(program_.options.size()); ++other) {
      const bool is_half = halves(other, own);
      if (!is_half && !fits(other, spare)) continue;
      for (int cut = stages()[s].first + 1; cut < stages()[s].last; ++cut) {
        if (is_half && split_at(s, cut, other, other)) return true;
        if (!fits(other, spare)) continue;
        if (split_at(s, cut, own, other) || split_at(s, cut, other, own)) return true;
      }
    }
    return false;
  }

  bool split_at(std::size_t s, int cut, int front, int back) {
    const auto at = static_cast<std::ptrdiff_t>(s);
    Chain next = best_.chain;
    std::vector<std::int64_t> more = more_in_flight_;
    next.stages.insert(next.stages.begin() + at, next.stages[s]);
    next.in_flight.insert(next.in_flight.begin() + at, next.in_flight[s] + 1);
    more.insert(more.begin() + at, more[s]);
    next.stages[s].last = next.stages[s + 1].first = cut;
    next.stages[s].option = front;
    next.stages[s + 1].option = back;
    return try_plans(std::move(next), {s, s + 1}, more);
  }

  // On what either ran on, or on anything that both leave room for.
  bool merge(std::size_t s) {
    if (s + 1 >= stages().size()) return false;
    const std::size_t both[] = {s, s + 1};
    const std::vector<std::int64_t> spare = left_without(both);
    const auto at = static_cast<std::ptrdiff_t>(s);
    for (int other = 0; other < static_cast<int>(program_.options.size()); ++other) {
      if (!fits(other, spare)) continue;
      Chain next = best_.chain;
      std::vector<std::int64_t> more = more_in_flight_;
      next.stages[s].last = next.stages[s + 1].last;
      next.stages[s].option = other;
      next.stages.erase(next.stages.begin() + at + 1);
      next.in_flight.erase(next.in_flight.begin() + at + 1);
      more.erase(more.begin() + at + 1);
      if (try_plans(std::move(next), {s}, more)) return true;
    }
    return false;
  }

  // All stages up to this one hold a microbatch more than the period asks for; or less.
  bool warm_up_longer(std::size_t last) {
    if (program_.classic_warmup) return false;
    for (const std::int64_t step : all_ ? std::vector<std::int64_t>{1, -1} : std::vector<std::int64_t>{1}) {
      std::vector<std::int64_t> more = more_in_flight_;
      for (std::size_t s = 0; s <= last; ++s) more[s] = std::max<std::int64_t>(0, more[s] + step);
      if (more != more_in_flight_ && consider(best_.chain, more)) return true;
    }
    return false;
  }

  // Where memory allows; no stage more than the one before it.
  void add_in_flight(Chain& chain, const std::vector<std::int64_t>& more) const {
    std::int64_t most = program_.microbatches;
    for (std::size_t s = 0; s < chain.stages.size(); ++s) {
      most = std::min(most, chain.stages[s].candidate.n_max);
      std::int64_t& count = chain.in_flight[s];
      count = std::max(std::min(count, program_.microbatches), std::min(most, count + more[s]));
      most = count;
    }
  }

  // ---- what stages may run on ----

  // As in Program::resources, with what these stages take.
  [[nodiscard]] std::vector<std::int64_t> left_without(std::span<const std::size_t> without) const {
    std::vector<std::int64_t> left = program_.resources();
    for (std::size_t s = 0; s < stages().size(); ++s) {
      if (std::ranges::find(without, s) != without.end()) continue;
      add_use<std::int64_t>(program_, option(stages()[s].option), -1, left);
    }
    return left;
  }

  // Options of one class alone.
  [[nodiscard]] bool fits(int number, const std::vector<std::int64_t>& spare) const {
    const Option& other = option(number);
    if (other.uses.size() > 1) return false;
    if (other.uses.front().units > at(spare, other.uses.front().island_class)) return false;
    return program_.unit_spend.empty() || program_.spend_of(other) <= spare.back();
  }

  [[nodiscard]] bool halves(int half, int whole) const {
    const std::vector<Use>& a = option(half).uses;
    const std::vector<Use>& b = option(whole).uses;
    return a.size() == 1 && b.size() == 1 && a.front().island_class == b.front().island_class &&
           2 * a.front().units == b.front().units;
  }

  // Other options that take the same units.
  [[nodiscard]] std::vector<int> alike_to(int number) const {
    std::vector<int> alike;
    for (int other = 0; other < static_cast<int>(program_.options.size()); ++other) {
      if (other != number && option(other).uses == option(number).uses) alike.push_back(other);
    }
    return alike;
  }

  // ---- which plans they get ----

  bool try_plans(Chain next, const std::vector<std::size_t>& changed, const std::vector<std::int64_t>& more) {
    if (deadline_.has_passed()) left_ = 0;
    if (left_ <= 0) return false;
    left_ -= tuning_.least_time_effort * static_cast<std::int64_t>(next.stages.size());
    // Relaxed frontiers know the fastest plan, too: most need not be made whole.
    for (const std::size_t s : changed) {
      const Candidate* plan =
          fastest(program_.frontier(next.stages[s].option, signature_of(next.stages[s])), all_ ? 1 : depth_of(next, s));
      if (plan == nullptr) return false;
      next.stages[s].candidate = *plan;
    }
    if (all_) return least_time(program_, next) < best_.time && try_all_plans(std::move(next), changed, more);
    for (const std::size_t s : changed) {
      const Candidate* plan =
          fastest(frontiers_.whole(next.stages[s].option, signature_of(next.stages[s])), depth_of(next, s));
      if (plan == nullptr) return false;
      next.stages[s].candidate = *plan;
    }
    return consider(std::move(next), more);
  }

  // The first of the changed stages with each of its plans, then the next.
  bool try_all_plans(Chain next, std::span<const std::size_t> changed, const std::vector<std::int64_t>& more) {
    if (changed.empty()) return consider(std::move(next), more);
    const std::size_t s = changed.front();
    const std::int64_t slowest = best_.time / program_.microbatches;
    bool improved = false;
    for (const Candidate& plan : frontiers_.whole(next.stages[s].option, signature_of(next.stages[s]))) {
      if (plan.T >= slowest) break;
      next.stages[s].candidate = plan;
      left_ -= tuning_.least_time_effort * static_cast<std::int64_t>(next.stages.size());
      if (least_time(program_, next) >= best_.time) continue;
      improved |= try_all_plans(next, changed.subspan(1), more);
      if (left_ <= 0) break;
    }
    return improved;
  }

  [[nodiscard]] int signature_of(const ChainStage& stage) const {
    return program_.signature_of(stage.first, stage.last);
  }

  [[nodiscard]] std::int64_t depth_of(const Chain& chain, std::size_t s) const { return held_by(program_, chain, s); }

  // nullptr: there is none that the iteration has time for.
  [[nodiscard]] const Candidate* fastest(const std::vector<Candidate>& frontier, std::int64_t depth) const {
    const auto holds = [depth](const Candidate& plan) { return plan.n_max >= depth; };
    const auto found = std::ranges::find_if(frontier, holds);
    return found == frontier.end() || found->T >= best_.time / program_.microbatches ? nullptr : &*found;
  }

  // ---- whether that is better ----

  bool consider(Chain next, const std::vector<std::int64_t>& more) {
    if (deadline_.has_passed()) left_ = 0;
    if (left_ <= 0) return false;
    left_ -= tuning_.form_effort * static_cast<std::int64_t>(next.stages.size());
    const std::vector<std::int64_t> held = next.in_flight;
    if (!has_room(program_, next) || least_time(program_, next) >= best_.time || !evaluate(program_, next))
      return false;
    std::int64_t least = INT64_MAX;
    if (improve_with(next, more, least)) return true;
    if (!all_ || program_.classic_warmup) return false;
    const std::vector<std::int64_t> eager = more_until_eager(next);
    if (improve_with(next, eager, least)) return true;
    const std::vector<std::int64_t> as_before = more_until_held(next, held);
    if (improve_with(next, as_before, least)) return true;
    if (static_cast<double>(least) > tuning_.promising * static_cast<double>(best_.time)) return false;
    return warm_up_otherwise(next, more) || warm_up_otherwise(next, eager) || warm_up_otherwise(next, as_before);
  }

  // One more on the first stages or all.
  bool warm_up_otherwise(const Chain& next, std::vector<std::int64_t> more) {
    std::int64_t least = INT64_MAX;
    for (std::int64_t& count : more) {
      ++count;
      if (improve_with(next, more, least)) return true;
    }
    return false;
  }

  // What stages can start before the first gradient is there, beyond what the period asks for.
  [[nodiscard]] std::vector<std::int64_t> more_until_eager(const Chain& chain) const {
    std::int64_t back = 0;  // when the first gradient is there
    for (std::size_t s = 0; s < chain.stages.size(); ++s) back += chain.stages[s].candidate.F + hop_after(chain, s);
    std::vector<std::int64_t> more(chain.stages.size(), 0);
    std::vector<std::int64_t> backs(chain.stages.size(), 0);
    for (std::size_t s = chain.stages.size(); s-- > 0;) {
      backs[s] = back + hop_after(chain, s);
      back = backs[s] + chain.stages[s].candidate.T - chain.stages[s].candidate.F;
    }
    std::int64_t there = 0;
    std::int64_t slowest = 1;
    for (std::size_t s = 0; s < chain.stages.size(); ++s) {
      slowest = std::max(slowest, chain.stages[s].candidate.F);
      more[s] = std::max<std::int64_t>(0, (backs[s] - there) / slowest - chain.in_flight[s]);
      there += chain.stages[s].candidate.F + hop_after(chain, s);
    }
    return more;
  }

  // What stages held before the change, beyond what the period asks for now: fewer stages ask for less.
  [[nodiscard]] static std::vector<std::int64_t> more_until_held(const Chain& chain,
                                                                 const std::vector<std::int64_t>& held) {
    std::vector<std::int64_t> more(held.size());
    for (std::size_t s = 0; s < held.size(); ++s) more[s] = std::max<std::int64_t>(0, held[s] - chain.in_flight[s]);
    return more;
  }

  [[nodiscard]] std::int64_t hop_after(const Chain& chain, std::size_t s) const {
    return s + 1 < chain.stages.size() ? boundary_after(program_, chain, s).latency : 0;
  }

  // Whether it is the best now; else `least` is lowered to how long it takes.
  bool improve_with(Chain next, const std::vector<std::int64_t>& more, std::int64_t& least) {
    if (left_ <= 0) return false;
    add_in_flight(next, more);
    const std::int64_t time = time_of(next, of_no_interest());
    least = std::min(least, time);
    if (time < best_.time) {
      best_ = {std::move(next), time};
      note_more();
      return true;
    }
    if (all_ && near_misses_.is_near(time, best_.time) && !have_same_stages(next, best_.chain)) {
      near_misses_.note(std::move(next), time);
    }
    return false;
  }

  void note_more() {
    more_in_flight_.assign(stages().size(), 0);
    Chain asked = best_.chain;
    if (!evaluate(program_, asked)) return;
    for (std::size_t s = 0; s < stages().size(); ++s) {
      const std::int64_t count = std::min(asked.in_flight[s], program_.microbatches);
      more_in_flight_[s] = std::max<std::int64_t>(0, best_.chain.in_flight[s] - count);
    }
  }

  // How much longer such a chain takes decides nothing.
  [[nodiscard]] std::int64_t of_no_interest() const {
    if (!all_) return best_.time;
    const double most = std::max(tuning_.promising, tuning_.near_miss) * static_cast<double>(best_.time);
    return std::max(best_.time, static_cast<std::int64_t>(most) + 1);
  }

  [[nodiscard]] std::int64_t time_of(const Chain& chain, std::int64_t cutoff) {
    left_ -= 2 * program_.microbatches * static_cast<std::int64_t>(chain.stages.size());
    return timetable(program_, chain, cutoff);
  }

  const Program& program_;
  Frontiers& frontiers_;
  const SolverTuning& tuning_;
  const Deadline& deadline_;
  bool all_;
  std::int64_t left_;
  TimedChain best_;
  NearMisses near_misses_;
  std::vector<std::int64_t> more_in_flight_;  // [stage] than the period asks for
};

}  // namespace

TimedChain local_search(const Program& program, Frontiers& frontiers, Chain start, Changes changes, std::int64_t effort,
                        const SolverTuning& tuning, const Deadline& deadline) {
  return LocalSearch(program, frontiers, std::move(start), changes, effort, tuning, deadline).run();
}

}  // namespace tangram::chain
