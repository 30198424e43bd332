// Stages in plain numbers, and events by name.
#pragma once

#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate::fixtures {

inline SimStage stage(std::int64_t forward, std::int64_t backward, std::int64_t warmup, std::int64_t latency = 0,
                      std::int64_t occupancy = 0) {
  SimStage result;
  result.parts.push_back({Nanoseconds(forward), Nanoseconds(backward), Nanoseconds(0), Nanoseconds(0)});
  result.warmup = warmup;
  result.latency = Nanoseconds(latency);
  result.occupancy = Nanoseconds(occupancy);
  return result;
}

inline Schedule one_pipeline(std::vector<SimStage> stages, std::int64_t microbatches) {
  return Schedule{{SimPipeline{std::move(stages), microbatches}}};
}

inline const Event& find(const Result& result, EventKind kind, int stage_index, std::int64_t microbatch, int part = 0,
                         int pipeline = 0, int chunk = 0) {
  for (const Event& e : result.events) {
    if (e.kind == kind && e.stage == stage_index && e.microbatch == microbatch && e.part == part &&
        e.pipeline == pipeline && e.chunk == chunk) {
      return e;
    }
  }
  FAIL("no such event");
  return result.events.front();
}

}  // namespace tangram::simulate::fixtures
