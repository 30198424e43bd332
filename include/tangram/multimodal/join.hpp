// Which choices of the modules go together where each module has GPUs of its own. Goes in: for each encoder and for the
// language model the ways it may run, in plain numbers, and how many units there are. Comes out: the fastest selection
// by closed form.
//
// At one period a choice is a label (label.hpp) and the units it takes; those that another beats in everything are
// dropped, and the rest are joined one module after the other. Time at a period is what does not depend on it, which
// only falls as periods grow, and M - 1 periods: windows of periods are searched best bound first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tangram/base/deadline.hpp"
#include "tangram/base/expected.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::multimodal {

/// One way to run a module: stages in a row, on all lanes of it together.
struct Choice {
  std::vector<int> units;  ///< that it takes of each class
  int key = 0;             ///< choices of equal key see equal prices between the encoder and the language model
  std::vector<Stage> stages;
  std::vector<Price> hops;  ///< behind each stage but the last
};

struct Encoder {
  std::vector<Choice> choices;
  Grid<Price> boundary;  ///< to the language model, by the key of the encoder's choice and of the language model's
};

/// All choices are for the same microbatches.
struct JoinProblem {
  std::int64_t microbatches = 1;
  std::vector<int> inventory;  ///< units of each class
  bool graph_warmup = false;   ///< as StageGraph has it
  std::vector<Encoder> encoders;
  std::vector<Choice> language;  ///< the boundary leads to the first stage
};

/// By number, of Encoder::choices and of JoinProblem::language.
struct Selection {
  std::vector<int> encoders;
  int language = 0;
};

struct JoinResult {
  std::optional<Selection> best;  ///< none: no selection has a form, or none is faster than the incumbent
  std::int64_t time = INT64_MAX;  ///< of the best, ns
  std::int64_t bound = 0;         ///< no selection is faster than this, or than the incumbent, ns
  bool finished = true;           ///< false: the deadline ended the search
  std::int64_t periods = 0;       ///< at which choices were joined
};

/// What a problem must have so that everything else may take it as it is: a choice for each module, units of each
/// class, hops for stages, prices for keys, graphs that pass check(StageGraph). Errors name the element
/// ("/encoders/0/choices/3") and what was expected.
[[nodiscard]] Expected<void> check(const JoinProblem& problem);

/// What a selection runs: stages of the encoders in their order, then those of the language model.
[[nodiscard]] StageGraph graph_of(const JoinProblem& problem, const Selection& selection);

/// The fastest selection whose units suffice, if any is faster than `incumbent`. Exact when it finishes. At each period
/// O(choices) labels, and as many joins as efficient labels combine.
[[nodiscard]] JoinResult join(const JoinProblem& problem, std::int64_t incumbent = INT64_MAX,
                              const Deadline& deadline = {});

}  // namespace tangram::multimodal
