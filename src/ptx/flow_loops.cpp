#include <algorithm>
#include <utility>

#include "flow.hpp"
#include "reasons.hpp"
#include "tangram/base/at.hpp"

namespace tangram::ptx {

State Flow::head_of(const Iteration& iteration) {
  State head = iteration.entry;
  head.arguments.clear();
  for (std::size_t i = 0; i < iteration.changes.size(); ++i) {
    const Change& change = iteration.changes[i];
    Value& value = head.registers[i];
    if (change.kind == Change::Kind::kNone) continue;
    value.predicate = nullptr;
    if (change.kind == Change::Kind::kStep) {
      Choice& choice = value.choices.front();
      const auto moved = Form::combine(1, choice.offset, change.step, Form::of(iteration.symbol));
      if (moved) {
        choice.offset = *moved;
        continue;
      }
    }
    value = any_value(i, change.bases, -1 - iteration.loop, -1,
                      {{}, "it changes from iteration to iteration by no constant step"});
  }
  for (const Constraint& constraint : iteration.reach) head.domain.assume(constraint);
  for (const Form& form : iteration.doubts) head.domain.doubt(form);
  for (const Reason& why : iteration.reasons) head.domain.make_uncertain(why);
  return head;
}

std::optional<State> Flow::latch_of(const Iteration& iteration, const Walk& walk) {
  if (walk.latches.empty()) return std::nullopt;
  State latch = walk.latches.front();
  const int head = at(graph_.loops(), iteration.loop).head;
  for (std::size_t i = 1; i < walk.latches.size(); ++i) {
    join_registers(latch, walk.latches[i], head);
    latch.domain.intersect(walk.latches[i].domain, {{}, "iterations go on in several ways"});
  }
  return latch;
}

/// True where some register turned out to change in another way than was taken.
bool Flow::update_changes(Iteration& iteration, const State& head, const State& latch) {
  bool changed = false;
  for (std::size_t i = 0; i < iteration.changes.size(); ++i) {
    Change& change = iteration.changes[i];
    const Value& before = head.registers[i];
    const Value& after = latch.registers[i];
    if (before.choices.empty() || before == after) continue;
    if (change.kind != Change::Kind::kAny && before.is_single() && after.is_single() &&
        before.choices[0].base == after.choices[0].base) {
      const auto step = difference(after.choices[0].offset, before.choices[0].offset);
      if (step && step->is_constant()) {
        if (change.kind == Change::Kind::kStep && step->constant() == change.step) continue;
        if (change.kind == Change::Kind::kNone) {
          change.kind = Change::Kind::kStep;
          change.step = step->constant();
          change.bases = {before.choices[0].base};
          changed = true;
          continue;
        }
      }
    }
    std::set<int> bases = change.bases;
    for (const Choice& choice : iteration.entry.registers[i].choices) bases.insert(choice.base);
    for (const Choice& choice : after.choices) bases.insert(choice.base);
    changed = changed || change.kind != Change::Kind::kAny || bases != change.bases;
    change.kind = Change::Kind::kAny;
    change.bases = std::move(bases);
  }
  return changed;
}

/// A value that steps by a towards 0, starts at a multiple of it, and goes on while it is not 0 has not passed it.
std::optional<Constraint> Flow::not_passed(const Iteration& iteration, const Constraint& constraint) const {
  const std::int64_t step = constraint.form.coefficient(iteration.symbol);
  if (constraint.relation != Relation::kNotZero || step == 0) return std::nullopt;
  const Form start = constraint.form.without(iteration.symbol);
  if (!start.is_multiple_of(step)) return std::nullopt;
  const Range range = iteration.entry.domain.range(start);
  if (step > 0 && range.high <= 0) return Constraint{constraint.form.plus(step), Relation::kAtMostZero};
  const auto reversed = constraint.form.times(-1);
  if (step > 0 || range.low < 0 || !reversed) return std::nullopt;
  return Constraint{reversed->plus(-step), Relation::kAtMostZero};
}

/// What holds where iterations go on.
Domain Flow::continuing(const Iteration& iteration, const Domain& latch) const {
  Domain result = latch;
  for (const Constraint& constraint : latch.constraints()) {
    if (const auto bound = not_passed(iteration, constraint)) result.assume(*bound);
  }
  return result;
}

void Flow::find_bound(Iteration& iteration, const State& head, const State& latch) {
  const Domain going_on = continuing(iteration, latch.domain);
  if (going_on.is_empty()) return run_once(iteration);
  const Range range = going_on.range(Form::of(iteration.symbol));
  iteration.last = range.high < kUnbounded ? std::optional(std::max<std::int64_t>(range.high, -1)) : std::nullopt;
  find_reach(iteration, head, going_on);
}

void Flow::run_once(Iteration& iteration) {
  iteration.last = -1;
  iteration.counted = true;
}

/// Iteration k is reached where iteration k - 1 goes on: conditions that only get harder need to hold there alone.
void Flow::find_reach(Iteration& iteration, const State& head, const Domain& going_on) {
  for (const Reason& why : going_on.reasons()) {
    if (!is_among(why, iteration.entry.domain.reasons())) iteration.reasons.push_back(why);
  }
  int bounds = 0;
  bool simple = true;
  for (const Constraint& constraint : going_on.constraints()) {
    if (std::ranges::find(iteration.entry.domain.constraints(), constraint) !=
        iteration.entry.domain.constraints().end()) {
      continue;
    }
    if (std::ranges::find(head.domain.constraints(), constraint) != head.domain.constraints().end()) continue;
    const std::int64_t step = constraint.form.coefficient(iteration.symbol);
    const Form start = constraint.form.without(iteration.symbol);
    if (not_passed(iteration, constraint)) continue;  // what it says is among the others
    if (constraint.relation != Relation::kAtMostZero || step <= 0) {
      iteration.reasons.push_back({{}, "the loop ends by a condition that is not followed"});
      simple = false;
      continue;
    }
    ++bounds;
    if (start.is_constant()) continue;  // it bounds the number of iterations, for all threads alike
    simple = false;
    const Form before = constraint.form.plus(-step);
    if (iteration.entry.domain.range(before.without(iteration.symbol)).high <= 0) {
      iteration.reach.push_back({before, Relation::kAtMostZero});
    } else {
      iteration.doubts.push_back(constraint.form);
    }
  }
  iteration.counted = simple && bounds > 0 && iteration.reasons.empty();
}

void Flow::forget_bound(Iteration& iteration) {
  iteration.last.reset();
  iteration.reach.clear();
  iteration.doubts.clear();
  iteration.counted = false;
  iteration.reasons = {{{}, "the number of iterations is not known"}};
  symbols_.limit_iteration(iteration.symbol, kUnbounded);
}

/// Walks the body until registers change as was taken. The state at the latch, or nothing where no iteration goes on.
std::optional<State> Flow::stabilize(Iteration& iteration, State& head) {
  constexpr int kMostRounds = 12;  // then every register that still changes counts as unknown
  for (int round = 0;; ++round) {
    head = head_of(iteration);
    const auto latch = latch_of(iteration, walk(iteration.loop, head));
    if (!latch) return std::nullopt;
    if (!update_changes(iteration, head, *latch)) return latch;
    if (round < kMostRounds) continue;
    for (Change& change : iteration.changes) {
      if (change.kind == Change::Kind::kStep) change.kind = Change::Kind::kAny;
    }
  }
}

bool Flow::confirms(const Iteration& iteration, const Domain& going_on) {
  if (going_on.is_empty()) return true;
  if (going_on.range(Form::of(iteration.symbol)).high > *iteration.last) return false;
  return std::ranges::all_of(iteration.reach, [&](const Constraint& reached) {
    const std::int64_t step = reached.form.coefficient(iteration.symbol);
    return going_on.decided(Constraint{reached.form.plus(step), Relation::kAtMostZero}) == true;
  });
}

Flow::EdgeStates Flow::run_loop(int loop, const State& entry) {
  const bool recorded = std::exchange(recording_, false);
  const bool was_tentative = transfer_.set_tentative(true);
  Iteration iteration{loop, entry, symbols_.iteration(), std::vector<Change>(entry.registers.size()), {}, {}, {}, {}};
  State head = entry;
  auto latch = stabilize(iteration, head);
  if (latch) {
    find_bound(iteration, head, *latch);
  } else {
    run_once(iteration);
  }
  transfer_.set_tentative(was_tentative);
  if (iteration.last) {
    // With the bound taken for granted nothing may change: then it holds, by induction over the iterations.
    symbols_.limit_iteration(iteration.symbol, *iteration.last + 1);
    latch = stabilize(iteration, head);
    if (latch && !confirms(iteration, continuing(iteration, latch->domain))) iteration.last.reset();
  }
  if (!iteration.last) {
    forget_bound(iteration);
    latch = stabilize(iteration, head);
  }
  recording_ = recorded;
  return leave(iteration, walk(loop, head).exits);
}

/// Behind a loop the number of its iterations is one number, and the threads are those that entered.
Flow::EdgeStates Flow::leave(const Iteration& iteration, EdgeStates exits) {
  const bool counted = iteration.counted && iteration.last && exits.size() == 1;
  const Range range{0, iteration.last ? *iteration.last + 1 : kUnbounded};
  const Form number = counted ? Form(*iteration.last + 1)
                              : symbols_.opaque(-1 - iteration.loop, 0, range,
                                                {{}, "how often the loop ran differs from thread to thread"});
  for (EdgeState& exit : exits) {
    for (std::size_t i = 0; i < exit.state.registers.size(); ++i) {
      Value& value = exit.state.registers[i];
      if (value == iteration.entry.registers[i]) continue;
      value.predicate = nullptr;
      for (Choice& choice : value.choices) {
        const auto left = choice.offset.substituted(iteration.symbol, number);
        const Reason why{{}, "an offset beyond 64 bits"};
        choice.offset = left ? *left : symbols_.opaque(-1 - iteration.loop, slot_of(i, choice.base), Range{}, why);
      }
    }
    exit.state.domain = iteration.entry.domain;
    if (exits.size() > 1) exit.state.domain.make_uncertain({{}, "the loop is left in several ways"});
  }
  return exits;
}

}  // namespace tangram::ptx
