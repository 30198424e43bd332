// 1F1B over a graph of stages whose transfers overlap with their passes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neighbours.hpp"
#include "pass_times.hpp"
#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::multimodal {

class OverlappedRun {
 public:
  /// All must outlive the run.
  OverlappedRun(const StageGraph& graph, std::span<const std::int64_t> in_flight, std::int64_t start, PassTimes times);

  /// False: stages wait for each other.
  [[nodiscard]] bool run();
  /// [stage]
  [[nodiscard]] std::vector<std::int64_t> ends() const;

 private:
  struct Progress {
    std::int64_t forwards = 0;  // done so far
    std::int64_t backwards = 0;
    std::int64_t free_at = 0;
  };
  /// One direction of a boundary.
  struct Lane {
    std::int64_t free_at = 0;
    std::vector<std::int64_t> arrivals;  ///< [microbatch]
  };

  [[nodiscard]] bool is_done(std::size_t stage) const;
  [[nodiscard]] bool advance(std::size_t stage);
  [[nodiscard]] bool runs_forward_next(std::size_t stage) const;
  /// When all that a pass reads is there; kNotYet: some of it is still to be made.
  [[nodiscard]] std::int64_t forward_ready(std::size_t stage) const;
  [[nodiscard]] std::int64_t backward_ready(std::size_t stage) const;
  [[nodiscard]] std::int64_t readers_ready(std::size_t stage) const;
  static void send(Lane& lane, const Price& price, std::int64_t now);

  const StageGraph& graph_;
  std::span<const std::int64_t> in_flight_;
  PassTimes times_;
  Neighbours neighbours_;
  std::int64_t start_;
  std::vector<Progress> progress_;
  std::vector<Lane> down_;                        // [edge] activations
  std::vector<Lane> up_;                          // [edge] gradients
  std::vector<std::vector<std::int64_t>> begun_;  // [stage] when each forward pass began
};

}  // namespace tangram::multimodal
