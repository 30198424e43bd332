#include "fill.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rank_assignment.hpp"

namespace tangram::importing {

namespace {

constexpr const char* kGpusHint = "give the host file of the GPUs that the job runs on";

/// Every stage gets the same number of GPUs, and as many replicas as they make.
Diagnostics give_replicas(Job& job, std::int64_t gpus) {
  Diagnostics wrong;
  std::int64_t stages = 0;
  for (const JobPipeline& pipeline : job.pipelines) stages += static_cast<std::int64_t>(pipeline.stages.size());
  for (JobPipeline& pipeline : job.pipelines) {
    for (JobStage& stage : pipeline.stages) {
      const auto each = static_cast<std::int64_t>(stage.replicas.front().gpus.size());
      if (gpus % (stages * each) != 0) {
        wrong.push_back(at(stage.place, "gpus-do-not-divide",
                           fmt::format("{} GPUs are not a multiple of the {} that {} stages of {} ask for", gpus,
                                       stages * each, stages, each),
                           kGpusHint));
        return wrong;
      }
      stage.replicas.assign(static_cast<std::size_t>(gpus / stages / each), Replica(stage.replicas.front()));
    }
  }
  return wrong;
}

/// Microbatches of a pipeline that takes `share` samples; false: they are not whole.
bool set_microbatches(JobPipeline& pipeline, std::int64_t share, Fill fill) {
  const std::vector<Replica>& replicas = pipeline.stages.front().replicas;
  if (fill == Fill::kMicrobatches) {
    pipeline.microbatch = share / pipeline.microbatches;
  } else {
    pipeline.microbatch = replicas.front().samples * static_cast<std::int64_t>(replicas.size());
    const std::int64_t short_one = fill == Fill::kSamplesRoundedUp && share % pipeline.microbatch != 0 ? 1 : 0;
    pipeline.microbatches = share / pipeline.microbatch + short_one;
    if (short_one != 0) return true;
  }
  return pipeline.microbatch > 0 && pipeline.microbatches > 0 && pipeline.microbatch * pipeline.microbatches == share;
}

/// Even shares of a microbatch; false: they are not whole.
bool set_samples(JobPipeline& pipeline) {
  return std::ranges::all_of(pipeline.stages, [&](JobStage& stage) {
    const auto replicas = static_cast<std::int64_t>(stage.replicas.size());
    for (Replica& replica : stage.replicas) replica.samples = pipeline.microbatch / replicas;
    return stage.by_speed || pipeline.microbatch % replicas == 0;
  });
}

}  // namespace

Expected<Job> filled(const Job& job, const cluster::Fleet& fleet, std::int64_t batch) {
  Job full = job;
  const std::int64_t gpus = full.gpus > 0 ? full.gpus : static_cast<std::int64_t>(available_gpus(job, fleet));
  Diagnostics wrong = full.takes_all ? give_replicas(full, gpus) : Diagnostics{};
  if (!wrong.empty()) return fail(std::move(wrong));
  if (full.fill == Fill::kNone) return full;
  const auto pipelines = static_cast<std::int64_t>(full.pipelines.size());
  for (JobPipeline& pipeline : full.pipelines) {
    const auto replicas = static_cast<std::int64_t>(pipeline.stages.front().replicas.size());
    const bool whole =
        batch % pipelines == 0 && set_microbatches(pipeline, batch / pipelines, full.fill) && set_samples(pipeline);
    if (whole) continue;
    return fail(at(job.batch, "batch-does-not-divide",
                   fmt::format("a batch of {} samples cannot be split over {} replicas in whole microbatches", batch,
                               replicas * pipelines),
                   full.takes_all ? kGpusHint : ""));
  }
  return full;
}

}  // namespace tangram::importing
