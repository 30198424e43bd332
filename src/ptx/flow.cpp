#include "flow.hpp"

#include <algorithm>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::ptx {
int Flow::slot_of(std::size_t reg, int base) {
  constexpr int kFirst = 1000;  // behind those of instructions
  constexpr int kMostBases = 2048;
  return (kFirst + static_cast<int>(reg)) * kMostBases + base;
}

Value Flow::any_value(std::size_t reg, const std::set<int>& bases, int place, int sign, const Reason& why) const {
  const int bits = bits_of(body_.registers[reg].type);
  Value any;
  for (const int base : bases) {
    const Value one = transfer_.unknown(place, sign * slot_of(reg, base), base, bits, why);
    any.choices.push_back(one.choices.front());
  }
  return any;
}

void Flow::run() {
  State entry{std::vector<Value>(body_.registers.size()), {}, Domain(symbols_)};
  (void)walk(-1, entry);
}

Flow::Walk Flow::walk(int loop, const State& entry) {
  Walk walk;
  walk.loop = loop;
  const int start = loop < 0 ? 0 : at(graph_.loops(), loop).head;
  for (const int block : graph_.order()) {
    const int inner = graph_.loop_at(block);
    const bool heads_inner = inner >= 0 && inner != loop && at(graph_.loops(), inner).parent == loop;
    if (graph_.loop_of(block) != loop && !heads_inner) continue;
    std::vector<State> states;
    if (const auto found = walk.incoming.find(block); found != walk.incoming.end()) states = std::move(found->second);
    if (block == start) states.push_back(entry);
    if (states.empty()) continue;
    const State state = joined(walk, block, std::move(states));
    if (heads_inner) {
      enter_loop(walk, inner, state);
    } else {
      enter_block(walk, block, state);
    }
  }
  return walk;
}

void Flow::record(int number, const State& state) const {
  const Instruction& instruction = at(body_.body, number);
  const std::vector<MemoryUse> uses = memory_uses(instruction);
  if (uses.empty()) return;
  Domain domain = state.domain;
  if (instruction.guard) {
    domain.assume(transfer_.guard(*instruction.guard, state), true,
                  {instruction.place, "whether it runs depends on data"});
  }
  if (domain.is_empty()) return;
  for (const MemoryUse& use : uses) recorder_(number, use, transfer_.address(number, *use.address, state), domain);
}

void Flow::enter_block(Walk& walk, int number, const State& before) {
  State state = before;
  const Block& block = at(graph_.blocks(), number);
  for (int i = block.first; i < block.end; ++i) {
    if (recording_) record(i, state);
    transfer_.apply(i, state);
  }
  walk.anchors.insert_or_assign(number, Anchor{number, state.domain});
  for (const Edge& edge : block.successors) {
    EdgeState out{edge.target, state};
    if (edge.branch >= 0) {
      const Instruction& branch = at(body_.body, edge.branch);
      out.state.domain.assume(transfer_.guard(*branch.guard, state), edge.taken,
                              {branch.place, "a branch depends on data"});
    } else if (block.successors.size() > 1) {
      out.state.domain.make_uncertain({at(body_.body, block.end - 1).place, "a branch goes by a table"});
    }
    if (!out.state.domain.is_empty()) send(walk, std::move(out));
  }
}

void Flow::send(Walk& walk, EdgeState edge) {
  if (walk.loop >= 0) {
    const Loop& loop = at(graph_.loops(), walk.loop);
    if (edge.target == loop.head) return walk.latches.push_back(std::move(edge.state));
    if (at(loop.contains, edge.target) == 0) return walk.exits.push_back(std::move(edge));
  }
  walk.incoming[edge.target].push_back(std::move(edge.state));
}

void Flow::join_registers(State& state, const State& other, int block) {
  for (std::size_t i = 0; i < state.registers.size(); ++i) {
    Value& value = state.registers[i];
    const Value& added = other.registers[i];
    if (value == added) continue;
    if (join(value, added)) continue;
    std::set<int> bases;
    for (const Choice& choice : value.choices) bases.insert(choice.base);
    value = any_value(i, bases, -1 - block, 1, {{}, "one of many values, by the way that was taken"});
  }
  std::erase_if(state.arguments, [&](const auto& kept) {
    const auto found = other.arguments.find(kept.first);
    return found == other.arguments.end() || !(found->second == kept.second);
  });
}

/// Where ways meet that parted at the block's dominator, all threads are back that were there.
State Flow::joined(const Walk& walk, int block, std::vector<State> states) {
  State state = std::move(states.front());
  if (states.size() == 1) return state;
  const auto anchor = walk.anchors.find(graph_.immediate_dominator(block));
  const bool all_meet = anchor != walk.anchors.end() && graph_.postdominates(block, anchor->second.block);
  for (std::size_t i = 1; i < states.size(); ++i) {
    join_registers(state, states[i], block);
    if (!all_meet)
      state.domain.intersect(states[i].domain, {{}, "some threads ended on the way, by another condition"});
  }
  if (all_meet) state.domain = anchor->second.domain;
  return state;
}

void Flow::enter_loop(Walk& walk, int number, const State& state) {
  const Loop& loop = at(graph_.loops(), number);
  for (EdgeState& exit : run_loop(number, state)) send(walk, std::move(exit));
  for (std::size_t block = 0; block < loop.contains.size(); ++block) {
    if (loop.contains[block] != 0) {
      walk.anchors.insert_or_assign(static_cast<int>(block), Anchor{loop.head, state.domain});
    }
  }
}

}  // namespace tangram::ptx
