#include "schedule.hpp"

#include <algorithm>
#include <string>

#include "pass_order.hpp"
#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

struct StageState {
  int id = 0;
  PassOrder order;
  std::int64_t next = 0;  ///< of the order
  std::int64_t forwards = 0;
  std::int64_t backwards = 0;
  std::int64_t most_in_flight = 0;
  [[nodiscard]] bool finished() const { return next == order.size(); }
};

class PipelineReplay {
 public:
  PipelineReplay(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline) {
    std::int64_t deepest = 0;
    for (const int id : pipeline.stages) deepest = std::max(deepest, plan.stage(id).warmup);
    // In the steady state every stage repeats one forward and one backward pass: a thousand show it.
    constexpr std::int64_t kSteady = 1000;
    const std::int64_t microbatches = std::min(pipeline.microbatches, deepest + kSteady);
    for (const int id : pipeline.stages) stages_.push_back({id, PassOrder(microbatches, plan.stage(id).warmup)});
  }

  /// Crosses passes out as long as any can be; a stage that moved gives its neighbours something to do.
  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        while (!stages_[s].finished() && has_input(s)) {
          cross_out(stages_[s]);
          moved = true;
        }
      }
    }
  }

  [[nodiscard]] const std::vector<StageState>& stages() const { return stages_; }

  /// "forward 1 of stage 1 waits for forward 1 of stage 0, which comes after backward 0, ..." Empty: all passes ran.
  [[nodiscard]] std::string cycle() const {
    const auto stuck = std::ranges::find_if(stages_, [](const StageState& s) { return !s.finished(); });
    if (stuck == stages_.end()) return {};
    // Each stuck stage waits for the next pass of a neighbour that is stuck too: follow until one comes twice.
    std::vector<std::size_t> path{static_cast<std::size_t>(stuck - stages_.begin())};
    while (std::ranges::count(path, path.back()) < 2) path.push_back(source_of(path.back()));
    path.erase(path.begin(), std::ranges::find(path, path.back()));
    std::string text;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      const StageState& waiting = stages_[path[i]];
      const StageState& other = stages_[path[i + 1]];
      const Pass pass = waiting.order.at(waiting.next);
      const Pass before = other.order.at(other.next);
      text += (i > 0 ? "; " : "") + name(pass, waiting) + " waits for " + name(pass, other);
      if (before.backward != pass.backward || before.microbatch != pass.microbatch) {
        text += ", which comes after " + name(before, other);
      }
    }
    return text;
  }

 private:
  static std::string name(const Pass& pass, const StageState& stage) {
    return std::string(pass.backward ? "backward " : "forward ") + std::to_string(pass.microbatch) + " of stage " +
           std::to_string(stage.id);
  }

  /// The stage whose pass of the same kind the next one needs; itself: none.
  [[nodiscard]] std::size_t source_of(std::size_t s) const {
    const bool backward = stages_[s].order.at(stages_[s].next).backward;
    if (backward) return s + 1 < stages_.size() ? s + 1 : s;
    return s > 0 ? s - 1 : s;
  }

  [[nodiscard]] bool has_input(std::size_t s) const {
    const Pass pass = stages_[s].order.at(stages_[s].next);
    const std::size_t source = source_of(s);
    if (source == s) return true;
    return (pass.backward ? stages_[source].backwards : stages_[source].forwards) > pass.microbatch;
  }

  static void cross_out(StageState& stage) {
    if (stage.order.at(stage.next++).backward) {
      ++stage.backwards;
    } else {
      ++stage.forwards;
      stage.most_in_flight = std::max(stage.most_in_flight, stage.forwards - stage.backwards);
    }
  }

  std::vector<StageState> stages_;
};

void compare(const plan::Stage& stage, std::int64_t counted, std::vector<Finding>& findings) {
  for (const plan::Part& part : stage.parts) {
    if (part.predicted.in_flight == counted) continue;
    findings.push_back({"in-flight-differs", "stage " + std::to_string(stage.id),
                        "holds " + std::to_string(counted) + " microbatches at once, the plan says " +
                            std::to_string(part.predicted.in_flight)});
    return;
  }
}

}  // namespace

Replay replay(const plan::LaunchPlan& plan) {
  Replay result;
  result.most_in_flight.resize(plan.stages.size());
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    PipelineReplay run(plan, pipeline);
    run.run();
    if (std::string cycle = run.cycle(); !cycle.empty()) {
      result.findings.push_back({"deadlock", "pipeline " + std::to_string(pipeline.id), std::move(cycle)});
      continue;
    }
    for (const StageState& stage : run.stages()) {
      at(result.most_in_flight, stage.id) = stage.most_in_flight;
      compare(plan.stage(stage.id), stage.most_in_flight, result.findings);
    }
  }
  return result;
}

}  // namespace tangram::execute
