// Abstract interpretation of a body. Goes in: its graph, and what instructions do to values. Comes out: for each access
// the address and the threads that make it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "graph.hpp"
#include "state.hpp"
#include "transfer.hpp"

namespace tangram::ptx {

/// Told of every memory access once, with the address and the threads that come to it.
using Recorder = std::function<void(int instruction, const MemoryUse& use, const Value& address, const Domain& domain)>;

class Flow {
 public:
  /// All outlive it. The graph is reducible.
  Flow(const Function& body, const Graph& graph, Symbols& symbols, Transfer& transfer, Recorder recorder)
      : body_(body), graph_(graph), symbols_(symbols), transfer_(transfer), recorder_(std::move(recorder)) {}

  void run();

 private:
  struct EdgeState {
    int target;
    State state;
  };
  using EdgeStates = std::vector<EdgeState>;

  /// Threads that are at `anchor`, of which all come to the blocks that postdominate it.
  struct Anchor {
    int block;
    Domain domain;
  };

  /// One walk over the blocks of a loop, or of everything.
  struct Walk {
    int loop = -1;
    std::map<int, std::vector<State>> incoming;
    std::map<int, Anchor> anchors;
    std::vector<State> latches;
    EdgeStates exits;
  };

  /// How a register changes from one iteration to the next.
  struct Change {
    enum class Kind : std::uint8_t { kNone, kStep, kAny };
    Kind kind = Kind::kNone;
    std::int64_t step = 0;
    std::set<int> bases;  ///< of all pointers that it may be
  };

  /// A loop while it is analysed.
  struct Iteration {
    int loop;
    const State& entry;
    int symbol;  ///< the number of the iteration
    std::vector<Change> changes;
    std::vector<Constraint> reach;     ///< hold at the head of every iteration
    std::vector<Form> doubts;          ///< hold but for the first
    std::vector<Reason> reasons;       ///< why it is not known which iterations are reached
    std::optional<std::int64_t> last;  ///< beyond which no iteration goes on
    bool counted = false;              ///< all threads make last + 1 of them
  };

  Walk walk(int loop, const State& entry);
  void enter_block(Walk& walk, int block, const State& state);
  void enter_loop(Walk& walk, int loop, const State& state);
  void send(Walk& walk, EdgeState edge);
  State joined(const Walk& walk, int block, std::vector<State> states);
  void join_registers(State& state, const State& other, int block);
  /// Any value of a register behind any of the bases. Slots at a place are those of slot_of, with either sign.
  [[nodiscard]] Value any_value(std::size_t reg, const std::set<int>& bases, int place, int sign,
                                const Reason& why) const;
  void record(int number, const State& state) const;

  EdgeStates run_loop(int loop, const State& entry);
  State head_of(const Iteration& iteration);
  [[nodiscard]] std::optional<State> latch_of(const Iteration& iteration, const Walk& walk);
  bool update_changes(Iteration& iteration, const State& head, const State& latch);
  [[nodiscard]] std::optional<Constraint> not_passed(const Iteration& iteration, const Constraint& constraint) const;
  [[nodiscard]] static bool confirms(const Iteration& iteration, const Domain& going_on);
  [[nodiscard]] Domain continuing(const Iteration& iteration, const Domain& latch) const;
  void find_bound(Iteration& iteration, const State& head, const State& latch);
  void find_reach(Iteration& iteration, const State& head, const Domain& going_on);
  static void run_once(Iteration& iteration);
  void forget_bound(Iteration& iteration);
  std::optional<State> stabilize(Iteration& iteration, State& head);
  EdgeStates leave(const Iteration& iteration, EdgeStates exits);

  /// Where symbols of a register are told apart (Symbols::opaque): one slot for each base of its pointers.
  [[nodiscard]] static int slot_of(std::size_t reg, int base);

  const Function& body_;
  const Graph& graph_;
  Symbols& symbols_;
  Transfer& transfer_;
  Recorder recorder_;
  bool recording_ = true;
};

}  // namespace tangram::ptx
