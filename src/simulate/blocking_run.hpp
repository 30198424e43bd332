// One pipeline whose stages stop for their transfers, as Megatron-LM's 1F1B does (megatron/core/pipeline_parallel/
// schedules.py and p2p_communication.py): a stage posts what it sends and what it receives at a point of its order
// together, and goes on when all of it has arrived. A transfer begins when both ends have posted it. Goes in: a
// pipeline's stages. Comes out: when each stage finished its last backward.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate {

class BlockingRun {
 public:
  /// Events are appended to `events` unless it is null. Both must outlive the run.
  BlockingRun(const SimPipeline& pipeline, int pipeline_id, std::vector<Event>* events);

  /// False: two stages wait for each other.
  [[nodiscard]] bool run();

  [[nodiscard]] Nanoseconds last_backward(std::size_t stage) const { return stages_[stage].last_backward; }
  [[nodiscard]] std::int64_t max_in_flight(std::size_t stage) const { return stages_[stage].max_in_flight; }

 private:
  /// An activation or a gradient over the boundary behind `stage`.
  struct Transfer {
    bool gradient = false;
    std::size_t stage = 0;
    std::int64_t microbatch = 0;
    auto operator<=>(const Transfer&) const = default;
  };
  struct Step {
    EventKind kind = EventKind::kForward;  ///< kForward or kBackward; of steps with transfers it means nothing
    std::int64_t microbatch = 0;
    std::vector<Transfer> transfers;  ///< posted together; none: a pass
  };
  struct StageRun {
    std::vector<Step> steps;
    std::size_t next = 0;
    bool posted = false;  ///< the transfers of the next step
    Nanoseconds now;
    Nanoseconds last_backward;  ///< its end: gradients are synchronised beside the last transfer
    std::int64_t in_flight = 0;
    std::int64_t max_in_flight = 0;
  };
  static constexpr int kEnds = 2;
  struct Posted {
    int ends = 0;
    Nanoseconds last;  ///< when the later end posted it
  };

  [[nodiscard]] std::vector<Step> steps_of(std::size_t stage) const;
  [[nodiscard]] bool advance(std::size_t stage);
  void pass(std::size_t stage, const Step& step);
  [[nodiscard]] bool post(StageRun& self, const Step& step);
  [[nodiscard]] bool arrived(const Step& step) const;
  [[nodiscard]] Nanoseconds arrival(const Step& step) const;
  void record(EventKind kind, std::size_t stage, std::size_t part, std::int64_t microbatch, Nanoseconds start,
              Nanoseconds end);

  const SimPipeline* pipeline_;
  int pipeline_id_;
  std::vector<Event>* events_;
  std::vector<StageRun> stages_;
  std::map<Transfer, Posted> posted_;
};

}  // namespace tangram::simulate
