#include "fill.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "seating.hpp"

namespace tangram::importing {

namespace {

constexpr const char* kGpusHint = "give the host file of the GPUs that the job runs on";

/// GPUs of one replica of every stage together.
std::int64_t gpus_of_replica(const JobPipeline& pipeline) {
  std::int64_t gpus = 0;
  for (const JobStage& stage : pipeline.stages) gpus += static_cast<std::int64_t>(stage.replicas.front().gpus.size());
  return gpus;
}

/// Batch and samples that follow from so many replicas in every pipeline; false: they do not divide.
bool set_batch(JobPipeline& pipeline, std::int64_t dp, std::int64_t share, Fill fill) {
  std::int64_t& samples = pipeline.stages.front().replicas.front().samples;
  if (fill == Fill::kSamples) {
    pipeline.microbatch = samples * dp;
    pipeline.microbatches = share / pipeline.microbatch;
  } else {
    pipeline.microbatch = share / pipeline.microbatches;
    samples = pipeline.microbatch / dp;
  }
  return samples > 0 && pipeline.microbatches > 0 && samples * dp * pipeline.microbatches == share;
}

}  // namespace

Expected<Job> filled(const Job& job, const cluster::Fleet& fleet) {
  if (job.fill == Fill::kNone) return job;
  Job full = job;
  const auto gpus = static_cast<std::int64_t>(seat_count(job, fleet));
  const auto pipelines = static_cast<std::int64_t>(full.pipelines.size());
  const std::int64_t each = gpus_of_replica(full.pipelines.front()) * pipelines;
  const Place& place = full.pipelines.front().stages.front().place;
  if (gpus % each != 0) {
    return fail(at(place, "gpus-do-not-divide",
                   fmt::format("{} GPUs are not a multiple of the {} that the degrees ask for", gpus, each),
                   kGpusHint));
  }
  const std::int64_t dp = gpus / each;
  const std::int64_t batch = *full.overrides.global_batch;
  for (JobPipeline& pipeline : full.pipelines) {
    if (batch % pipelines != 0 || !set_batch(pipeline, dp, batch / pipelines, full.fill)) {
      return fail(at(job.batch, "batch-does-not-divide",
                     fmt::format("a batch of {} samples cannot be split over {} replicas in whole microbatches", batch,
                                 dp * pipelines),
                     kGpusHint));
    }
    const std::int64_t samples = pipeline.stages.front().replicas.front().samples;
    for (JobStage& stage : pipeline.stages) {
      stage.replicas.front().samples = samples;
      stage.replicas.assign(static_cast<std::size_t>(dp), Replica(stage.replicas.front()));
    }
  }
  return full;
}

}  // namespace tangram::importing
