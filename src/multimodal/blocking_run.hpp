// 1F1B over a graph of stages that stop for what they hand over, one boundary after the other, as Megatron-LM does
// (megatron/core/pipeline_parallel/multimodule_communicator.py and bridge_communicator.py): at a boundary a stage posts
// what it sends and what it receives together, and goes on when all of it has arrived. A transfer begins when both of
// its stages have posted it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neighbours.hpp"
#include "pass_times.hpp"
#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::multimodal {

class BlockingRun {
 public:
  BlockingRun(const StageGraph& graph, std::span<const std::int64_t> in_flight, std::int64_t start, PassTimes times);

  /// False: stages wait for each other.
  [[nodiscard]] bool run();
  /// [stage]
  [[nodiscard]] std::vector<std::int64_t> ends() const;

 private:
  static constexpr int kNoEdge = -1;
  static constexpr std::int64_t kNothing = -1;

  /// A pass, or what is posted at one boundary.
  struct Step {
    int edge = kNoEdge;                  ///< kNoEdge: a pass
    std::int64_t activation = kNothing;  ///< microbatch; of a pass: forward
    std::int64_t gradient = kNothing;    ///< microbatch; of a pass: backward
  };
  struct Worker {
    std::vector<Step> steps;
    std::size_t next = 0;
    bool posted = false;  ///< what the next step hands over
    std::int64_t now = 0;
    std::int64_t last_pass = 0;  ///< its end: gradients are synchronised beside the last transfer
  };
  /// What of one direction of a boundary has been posted, by microbatch.
  struct Posts {
    std::vector<int> ends;           ///< how many of both
    std::vector<std::int64_t> last;  ///< when the later one
  };

  [[nodiscard]] std::vector<Step> trained_steps(std::size_t stage, std::int64_t in_flight) const;
  [[nodiscard]] std::vector<Step> frozen_steps(std::size_t stage) const;
  [[nodiscard]] bool has_gradients(int edge) const;
  [[nodiscard]] bool advance(std::size_t stage);
  void pass(std::size_t stage, const Step& step);
  void post(const Worker& self, const Step& step);
  /// When all of it is there; kNothing: the other stage has not come yet.
  [[nodiscard]] std::int64_t arrival(const Step& step) const;

  const StageGraph& graph_;
  PassTimes times_;
  Neighbours neighbours_;
  std::vector<Worker> workers_;
  std::vector<Posts> activations_;  ///< [edge]
  std::vector<Posts> gradients_;
};

}  // namespace tangram::multimodal
