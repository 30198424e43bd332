#include "graph.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "opcodes.hpp"
#include "tangram/base/at.hpp"

namespace tangram::ptx {
namespace {

bool ends_block(const Instruction& instruction) {
  switch (class_of(instruction)) {
    case OpcodeClass::kBranch:
    case OpcodeClass::kIndexedBranch:
    case OpcodeClass::kReturn:
    case OpcodeClass::kExit:
    case OpcodeClass::kTrap: return true;
    default: return false;
  }
}

void collect_labels(const Operand& operand, std::set<int>& labels) {
  for (const Operand& part : operand.parts) collect_labels(part, labels);
  if (operand.kind == OperandKind::kLabel) labels.insert(operand.index);
}

std::vector<int> targets_of(const Function& body, const Instruction& branch) {
  std::vector<int> targets;
  for (const Operand& operand : branch.operands) {
    if (operand.kind == OperandKind::kLabel) targets.push_back(operand.index);
    const auto listed = body.branch_targets.find(operand.name);
    if (operand.kind == OperandKind::kFunction && listed != body.branch_targets.end()) targets = listed->second;
  }
  return targets;
}

}  // namespace

Graph::Graph(const Function& body) {
  cut(body);
  connect(body);
  number();
  find_dominators();
  find_postdominators();
  find_loops();
  nest_loops();
}

void Graph::cut(const Function& body) {
  const int size = static_cast<int>(body.body.size());
  std::set<int> leaders{0};
  for (int i = 0; i < size; ++i) {
    const Instruction& instruction = at(body.body, i);
    for (const Operand& operand : instruction.operands) collect_labels(operand, leaders);
    if (ends_block(instruction)) leaders.insert(i + 1);
  }
  for (const auto& [label, targets] : body.branch_targets) leaders.insert(targets.begin(), targets.end());
  leaders.insert(size);  // an empty block at the end, which all that ends leads to
  for (auto leader = leaders.begin(); leader != leaders.end(); ++leader) {
    const auto next = std::next(leader);
    blocks_.push_back({*leader, next == leaders.end() ? size : *next, {}, {}});
  }
}

void Graph::connect(const Function& body) {
  const auto block_at = [&](int instruction) {
    const auto found = std::ranges::lower_bound(blocks_, instruction, {}, &Block::first);
    return static_cast<int>(found - blocks_.begin());
  };
  const int last = static_cast<int>(blocks_.size()) - 1;
  for (int number = 0; number < last; ++number) {
    Block& block = at(blocks_, number);
    const int end = block.end - 1;
    const Instruction& instruction = at(body.body, end);
    const OpcodeClass what = class_of(instruction);
    const int decider = ends_block(instruction) && instruction.guard ? end : -1;
    if (what == OpcodeClass::kBranch || what == OpcodeClass::kIndexedBranch) {
      const std::vector<int> targets = targets_of(body, instruction);
      for (const int target : targets) block.successors.push_back({block_at(target), decider, true});
    }
    if (what == OpcodeClass::kReturn || what == OpcodeClass::kExit) block.successors.push_back({last, decider, true});
    if (!ends_block(instruction) || instruction.guard) block.successors.push_back({number + 1, decider, false});
    for (const Edge& edge : block.successors) at(blocks_, edge.target).predecessors.push_back(number);
  }
}

/// Depth first, without recursion: bodies may be long.
void Graph::number() {
  std::vector<char> seen(blocks_.size(), 0);
  std::vector<std::pair<int, std::size_t>> open{{0, 0}};
  seen[0] = 1;
  while (!open.empty()) {
    auto& [block, next] = open.back();
    const std::vector<Edge>& successors = at(blocks_, block).successors;
    if (next == successors.size()) {
      order_.push_back(block);
      open.pop_back();
      continue;
    }
    const int target = successors[next++].target;
    if (at(seen, target) != 0) continue;
    at(seen, target) = 1;
    open.emplace_back(target, 0);
  }
  std::ranges::reverse(order_);
  rank_.assign(blocks_.size(), -1);
  for (std::size_t i = 0; i < order_.size(); ++i) at(rank_, order_[i]) = static_cast<int>(i);
}

/// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
void Graph::find_dominators() {
  dominator_.assign(blocks_.size(), -1);
  dominator_[0] = 0;
  bool changed = true;
  while (changed) {
    changed = false;
    for (const int block : order_) {
      if (block == 0) continue;
      int found = -1;
      for (const int predecessor : at(blocks_, block).predecessors) {
        if (at(rank_, predecessor) < 0 || at(dominator_, predecessor) < 0) continue;
        int other = predecessor;
        if (found < 0) found = predecessor;
        while (found != other) {
          int& later = at(rank_, found) > at(rank_, other) ? found : other;
          later = at(dominator_, later);
        }
      }
      changed = changed || at(dominator_, block) != found;
      at(dominator_, block) = found;
    }
  }
}

/// Sets, to their greatest fixed point. A block that ends in a trap leads nowhere: no thread ends there in good order.
void Graph::find_postdominators() {
  const std::size_t size = blocks_.size();
  postdominators_.assign(size, std::vector<char>(size, 1));
  for (std::size_t i = 0; i < size; ++i) at(postdominators_.back(), i) = i + 1 == size ? 1 : 0;
  bool changed = true;
  while (changed) {
    changed = false;
    for (auto block = order_.rbegin(); block != order_.rend(); ++block) {
      if (at(blocks_, *block).successors.empty()) continue;
      std::vector<char> common(size, 1);
      for (const Edge& edge : at(blocks_, *block).successors) {
        for (std::size_t i = 0; i < size; ++i) common[i] = common[i] != 0 && at(postdominators_, edge.target)[i] != 0;
      }
      at(common, *block) = 1;
      changed = changed || common != at(postdominators_, *block);
      at(postdominators_, *block) = std::move(common);
    }
  }
}

bool Graph::dominates(int above, int below) const {
  for (int block = below;; block = at(dominator_, block)) {
    if (block == above) return true;
    if (block == 0 || block < 0) return false;
  }
}

void Graph::find_loops() {
  for (const int block : order_) {
    for (const Edge& edge : at(blocks_, block).successors) {
      if (at(rank_, edge.target) > at(rank_, block)) continue;
      if (!dominates(edge.target, block)) {
        irreducible_ = true;
        continue;
      }
      auto loop = std::ranges::find(loops_, edge.target, &Loop::head);
      if (loop == loops_.end()) {
        loops_.push_back({edge.target, -1, std::vector<char>(blocks_.size(), 0)});
        loop = std::prev(loops_.end());
        at(loop->contains, edge.target) = 1;
      }
      std::vector<int> open{block};
      while (!open.empty()) {
        const int inside = open.back();
        open.pop_back();
        if (at(loop->contains, inside) != 0) continue;
        at(loop->contains, inside) = 1;
        for (const int predecessor : at(blocks_, inside).predecessors) {
          if (at(rank_, predecessor) >= 0) open.push_back(predecessor);
        }
      }
    }
  }
}

/// From the largest to the smallest: loops are apart or within each other, and those of one size are apart.
void Graph::nest_loops() {
  std::vector<int> by_size(loops_.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  const auto size = [&](int loop) { return std::ranges::count(at(loops_, loop).contains, 1); };
  std::ranges::sort(by_size, std::ranges::greater{}, size);
  innermost_.assign(blocks_.size(), -1);
  for (const int number : by_size) {
    Loop& loop = at(loops_, number);
    loop.parent = at(innermost_, loop.head);
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      if (loop.contains[block] != 0) innermost_[block] = number;
    }
  }
}

int Graph::loop_of(int block) const { return at(innermost_, block); }

int Graph::loop_at(int block) const {
  const auto found = std::ranges::find(loops_, block, &Loop::head);
  return found == loops_.end() ? -1 : static_cast<int>(found - loops_.begin());
}

int Graph::immediate_dominator(int block) const { return at(dominator_, block); }
bool Graph::postdominates(int after, int before) const { return at(at(postdominators_, before), after) != 0; }

}  // namespace tangram::ptx
