#include "schedule.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "pass_order.hpp"
#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

struct StageState {
  int id = 0;
  PassOrder order;
  std::vector<std::int64_t> forwards;  ///< of each chunk
  std::vector<std::int64_t> backwards;
  std::int64_t next = 0;  ///< of the order
  std::int64_t in_flight = 0;
  std::int64_t most_in_flight = 0;
  [[nodiscard]] bool finished() const { return next == order.size(); }
  [[nodiscard]] Pass next_pass() const { return order.at(next); }
  [[nodiscard]] bool has_run(const Pass& pass) const {
    return at(pass.backward ? backwards : forwards, pass.chunk) > pass.microbatch;
  }
};

/// A pass of a stage.
struct StagePass {
  std::size_t stage = 0;
  Pass pass;
};

class PipelineReplay {
 public:
  PipelineReplay(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline)
      : chunks_(static_cast<int>(plan.chunks())) {
    std::int64_t deepest = 0;
    for (const int id : pipeline.stages) deepest = std::max(deepest, plan.stage(id).warmup);
    // In the steady state every stage repeats one forward and one backward pass: a thousand show it.
    constexpr std::int64_t kSteady = 1000;
    const std::int64_t group = std::max<std::int64_t>(1, plan.group);
    const std::int64_t microbatches = telling_microbatches(pipeline.microbatches, deepest, kSteady, chunks_, group);
    for (const int id : pipeline.stages) {
      const std::vector<std::int64_t> none(plan.chunks(), 0);
      stages_.push_back({id, PassOrder(microbatches, plan.stage(id).warmup, chunks_, group), none, none});
    }
  }

  /// Crosses passes out as long as any can be; a stage that moved gives its neighbours something to do.
  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        while (!stages_[s].finished() && !waits_for(s)) {
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
    // Each stuck stage waits for a pass of a stage that is stuck too: follow until one comes twice.
    std::vector<std::size_t> path{static_cast<std::size_t>(stuck - stages_.begin())};
    while (std::ranges::count(path, path.back()) < 2) path.push_back(waits_for(path.back())->stage);
    path.erase(path.begin(), std::ranges::find(path, path.back()));
    std::string text;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      const StagePass awaited = *waits_for(path[i]);
      const StageState& other = stages_[awaited.stage];
      text += (i > 0 ? "; " : "") + name(stages_[path[i]].next_pass(), stages_[path[i]]) + " waits for " +
              name(awaited.pass, other);
      if (other.next_pass() != awaited.pass) text += ", which comes after " + name(other.next_pass(), other);
    }
    return text;
  }

 private:
  [[nodiscard]] std::string name(const Pass& pass, const StageState& stage) const {
    return std::string(pass.backward ? "backward " : "forward ") + std::to_string(pass.microbatch) +
           (chunks_ > 1 ? " of chunk " + std::to_string(pass.chunk) : "") + " of stage " + std::to_string(stage.id);
  }

  /// What the next pass of a stage needs and is not there yet: the same of the chunk before it in the chain, or behind
  /// it; of a backward pass, its own forward pass as well.
  [[nodiscard]] std::optional<StagePass> waits_for(std::size_t s) const {
    const Pass pass = stages_[s].next_pass();
    if (pass.backward) {
      const StagePass own{s, {false, pass.microbatch, pass.chunk}};
      if (!stages_[s].has_run(own.pass)) return own;
    }
    const auto stages = static_cast<int>(stages_.size());
    const int place = pass.chunk * stages + static_cast<int>(s) + (pass.backward ? 1 : -1);
    if (place < 0 || place == stages * chunks_) return std::nullopt;
    const StagePass source{static_cast<std::size_t>(place % stages), {pass.backward, pass.microbatch, place / stages}};
    if (stages_[source.stage].has_run(source.pass)) return std::nullopt;
    return source;
  }

  static void cross_out(StageState& stage) {
    const Pass pass = stage.order.at(stage.next++);
    ++at(pass.backward ? stage.backwards : stage.forwards, pass.chunk);
    stage.in_flight += pass.backward ? -1 : 1;
    stage.most_in_flight = std::max(stage.most_in_flight, stage.in_flight);
  }

  int chunks_;  ///< of each stage
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
