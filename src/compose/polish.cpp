#include "polish.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "supplies.hpp"
#include "timetable.hpp"

namespace tangram::compose {

namespace {

constexpr std::int64_t kEvaluation = 64;  // passes that one closed form takes the time of, per stage

class Polisher {
 public:
  Polisher(const Program& program, Frontiers& frontiers, Chain start, std::int64_t effort)
      : program_(program), frontiers_(frontiers), left_(effort), best_{std::move(start), 0} {
    best_.time = time_of(best_.chain);
    more_in_flight_.assign(best_.chain.stages.size(), 0);
  }

  TimedChain run() {
    for (bool improved = true; improved && left_ > 0;) {
      improved = false;
      for (std::size_t s = 0; s < stages().size(); ++s) {
        improved |= plan_otherwise(s);
        improved |= run_elsewhere(s);
        improved |= warm_up_longer(s);
        if (s + 1 == stages().size()) continue;
        for (const int blocks : {-2, -1, 1, 2}) improved |= move_boundary(s, blocks);
        improved |= exchange(s);
      }
    }
    return std::move(best_);
  }

 private:
  [[nodiscard]] const std::vector<ChainStage>& stages() const { return best_.chain.stages; }

  bool plan_otherwise(std::size_t s) {
    const ChainStage& stage = stages()[s];
    bool improved = false;
    for (const Candidate& plan : frontiers_.whole(stage.option, program_.signature_of(stage.first, stage.last))) {
      if (plan.source == stages()[s].candidate.source) continue;
      Chain next = best_.chain;
      next.stages[s].candidate = plan;
      improved |= consider(std::move(next));
    }
    return improved;
  }

  bool run_elsewhere(std::size_t s) {
    const std::vector<std::int64_t> spare = left_without(s);
    bool improved = false;
    for (int option = 0; option < static_cast<int>(program_.options.size()); ++option) {
      const Option& other = program_.options[static_cast<std::size_t>(option)];
      if (option == stages()[s].option || other.uses.size() > 1) continue;
      if (other.uses.front().units > spare[static_cast<std::size_t>(other.uses.front().island_class)]) continue;
      if (!program_.unit_spend.empty() && program_.spend_of(other) > spare.back()) continue;
      Chain next = best_.chain;
      next.stages[s].option = option;
      improved |= plan_again(next, s) && consider(std::move(next));
    }
    return improved;
  }

  bool move_boundary(std::size_t s, int blocks) {
    const int cut = stages()[s].last + blocks;
    if (cut <= stages()[s].first || cut >= stages()[s + 1].last) return false;
    Chain next = best_.chain;
    next.stages[s].last = next.stages[s + 1].first = cut;
    return plan_again(next, s) && plan_again(next, s + 1) && consider(std::move(next));
  }

  bool exchange(std::size_t s) {
    if (stages()[s].option == stages()[s + 1].option) return false;
    Chain next = best_.chain;
    std::swap(next.stages[s].option, next.stages[s + 1].option);
    return plan_again(next, s) && plan_again(next, s + 1) && consider(std::move(next));
  }

  // All stages up to this one hold a microbatch more than the period asks for.
  bool warm_up_longer(std::size_t last) {
    if (program_.classic_warmup) return false;
    for (std::size_t s = 0; s <= last; ++s) ++more_in_flight_[s];
    if (consider(best_.chain)) return true;
    for (std::size_t s = 0; s <= last; ++s) --more_in_flight_[s];
    return false;
  }

  // Where memory allows; no stage more than the one before it.
  void add_in_flight(Chain& chain) const {
    std::int64_t most = program_.microbatches;
    for (std::size_t s = 0; s < chain.stages.size(); ++s) {
      most = std::min(most, chain.stages[s].candidate.n_max);
      std::int64_t& count = chain.in_flight[s];
      count = std::max(std::min(count, program_.microbatches), std::min(most, count + more_in_flight_[s]));
      most = count;
    }
  }

  // As in Program::supplies, with what the stage itself takes.
  [[nodiscard]] std::vector<std::int64_t> left_without(std::size_t without) const {
    std::vector<std::int64_t> left = program_.supplies();
    for (std::size_t s = 0; s < stages().size(); ++s) {
      if (s == without) continue;
      add_use<std::int64_t>(program_, program_.options[static_cast<std::size_t>(stages()[s].option)], -1, left);
    }
    return left;
  }

  // Gives a stage the fastest plan that holds as many microbatches as were in flight; false: there is none.
  [[nodiscard]] bool plan_again(Chain& chain, std::size_t s) const {
    ChainStage& stage = chain.stages[s];
    const int signature = program_.signature_of(stage.first, stage.last);
    const std::int64_t depth = std::min(chain.in_flight[s], program_.microbatches);
    // Outlines know the fastest plan, too: most need not be made whole.
    if (fastest(program_.frontier(stage.option, signature), depth) == nullptr) return false;
    const Candidate* plan = fastest(frontiers_.whole(stage.option, signature), depth);
    if (plan == nullptr) return false;
    stage.candidate = *plan;
    return true;
  }

  // nullptr: there is none that the iteration has time for.
  [[nodiscard]] const Candidate* fastest(const std::vector<Candidate>& frontier, std::int64_t depth) const {
    const auto holds = [depth](const Candidate& plan) { return plan.n_max >= depth; };
    const auto found = std::ranges::find_if(frontier, holds);
    return found == frontier.end() || found->T >= best_.time / program_.microbatches ? nullptr : &*found;
  }

  bool consider(Chain next) {
    if (left_ <= 0) return false;
    left_ -= kEvaluation * static_cast<std::int64_t>(next.stages.size());
    if (!evaluate(program_, next) || least_time(program_, next) >= best_.time) return false;
    add_in_flight(next);
    const std::int64_t time = time_of(next);
    if (time >= best_.time) return false;
    best_ = {std::move(next), time};
    return true;
  }

  [[nodiscard]] std::int64_t time_of(const Chain& chain) {
    left_ -= 2 * program_.microbatches * static_cast<std::int64_t>(chain.stages.size());
    return timetable(program_, chain);
  }

  const Program& program_;
  Frontiers& frontiers_;
  std::int64_t left_;
  TimedChain best_;
  std::vector<std::int64_t> more_in_flight_;  // [stage] than the period asks for
};

}  // namespace

TimedChain polish(const Program& program, Frontiers& frontiers, Chain start, std::int64_t effort) {
  return Polisher(program, frontiers, std::move(start), effort).run();
}

}  // namespace tangram::compose
