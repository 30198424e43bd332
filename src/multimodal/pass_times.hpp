// How long each pass takes.
#pragma once

#include <cmath>
#include <cstdint>

#include "tangram/base/at.hpp"
#include "tangram/multimodal/timetable.hpp"

namespace tangram::multimodal {

class PassTimes {
 public:
  /// Both must outlive it.
  PassTimes(const StageGraph& graph, const Loads& loads) : graph_(graph), loads_(loads) {}

  [[nodiscard]] std::int64_t forward(std::size_t stage, std::int64_t microbatch) const {
    return loaded(graph_.stages[stage].plan.F, stage, microbatch);
  }
  [[nodiscard]] std::int64_t backward(std::size_t stage, std::int64_t microbatch) const {
    return loaded(graph_.stages[stage].backward(), stage, microbatch);
  }

 private:
  [[nodiscard]] std::int64_t loaded(std::int64_t mean, std::size_t stage, std::int64_t microbatch) const {
    if (loads_.empty() || loads_[stage].empty()) return mean;
    return std::llround(static_cast<double>(mean) * at(loads_[stage], microbatch));
  }

  const StageGraph& graph_;
  const Loads& loads_;
};

}  // namespace tangram::multimodal
