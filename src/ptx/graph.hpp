// The control-flow graph of a body. Goes in: instructions. Comes out: basic blocks, who dominates whom, and the natural
// loops.
#pragma once

#include <vector>

#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

struct Edge {
  int target = 0;
  /// The branch whose predicate decides; -1 where the block just goes on.
  int branch = -1;
  bool taken = true;
};

struct Block {
  int first = 0;
  int end = 0;  ///< behind its last instruction
  std::vector<Edge> successors;
  std::vector<int> predecessors;
};

struct Loop {
  int head = 0;
  int parent = -1;             ///< the innermost loop around it
  std::vector<char> contains;  ///< by block
};

class Graph {
 public:
  explicit Graph(const Function& body);

  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  /// Blocks that can be reached, each before those that it leads to, but for loops.
  [[nodiscard]] const std::vector<int>& order() const { return order_; }
  [[nodiscard]] const std::vector<Loop>& loops() const { return loops_; }
  /// The innermost loop that a block is in, or -1.
  [[nodiscard]] int loop_of(int block) const;
  /// The loop that a block is the head of, or -1.
  [[nodiscard]] int loop_at(int block) const;
  [[nodiscard]] int immediate_dominator(int block) const;
  /// Whether every thread that enters `before` and ends comes through `after`.
  [[nodiscard]] bool postdominates(int after, int before) const;
  /// Whether some cycle has two entrances: its loops are not natural.
  [[nodiscard]] bool is_irreducible() const { return irreducible_; }

 private:
  void cut(const Function& body);
  void connect(const Function& body);
  void number();
  void find_dominators();
  void find_postdominators();
  void find_loops();
  void nest_loops();
  [[nodiscard]] bool dominates(int above, int below) const;

  std::vector<Block> blocks_;
  std::vector<int> order_;
  std::vector<int> rank_;       ///< in order_, -1 where unreachable
  std::vector<int> dominator_;  ///< immediate
  std::vector<std::vector<char>> postdominators_;
  std::vector<Loop> loops_;
  std::vector<int> innermost_;  ///< loop by block, or -1
  bool irreducible_ = false;
};

}  // namespace tangram::ptx
