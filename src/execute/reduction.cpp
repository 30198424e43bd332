#include "reduction.hpp"

#include <algorithm>

#include "handover.hpp"
#include "pass_order.hpp"
#include "scale.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"
#include "tangram/model/split.hpp"

namespace tangram::execute {

namespace {

constexpr std::int64_t kSteadyMicrobatches = 2;  // beyond those that fill the pipeline

// With more, the few microbatches that are kept would be over before a stage holds as many as it may.
constexpr std::int64_t kMostPutOff = kSteadyMicrobatches - 1;

/// Enough to fill the deepest warm-up and alternate for a while.
std::int64_t kept_microbatches(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline) {
  std::int64_t deepest = 0;
  for (const int id : pipeline.stages) deepest = std::max(deepest, plan.stage(id).warmup);
  std::int64_t fewest = pipeline.microbatches;
  for (const plan::Pipeline& other : plan.pipelines) fewest = std::min(fewest, other.microbatches);
  const std::int64_t larger_share = pipeline.microbatches > fewest ? 1 : 0;
  return telling_microbatches(pipeline.microbatches, deepest, 1 + kSteadyMicrobatches + larger_share,
                              static_cast<int>(plan.chunks()), plan.group);
}

class Reducer {
 public:
  explicit Reducer(const plan::LaunchPlan& plan)
      : plan_(plan),
        pipelines_(kept_pipelines(plan)),
        blocks_(kept_blocks(plan, pipelines_)),
        folds_(context_folds(plan)),
        model_(small_model(plan, blocks_, folds_)),
        positions_(plan, model_.positions * folds_),
        job_rank_(plan.ranks.size(), -1) {
    model_.positions = positions_.total() / folds_;
    job_.encoders = small_encoders(plan, model_.positions);
    job_.three_phases = plan.colocated && !plan.colocated->each_microbatch();
  }

  Reduction reduce() {
    Reduction result;
    for (const int id : pipelines_) add(at(plan_.pipelines, id));
    mark_absent();
    result.job = std::move(job_);
    result.job.model = std::move(model_);
    result.shrunk = shrunk(result.job);
    return result;
  }

 private:
  void add(const plan::Pipeline& from) {
    const SampleScale samples(plan_, from, kept_windows(plan_, from));
    JobPipeline pipeline;
    pipeline.id = from.id;
    for (std::size_t s = 0; s < from.stages.size(); ++s) {
      pipeline.stages.push_back(stage_of(plan_.stage(from.stages[s]), static_cast<int>(s), samples));
    }
    pipeline.microbatch = samples.total();
    pipeline.microbatches =
        std::max(kept_microbatches(plan_, from), std::min(from.microbatches, microbatches_for_lanes(pipeline)));
    pipeline.last_microbatch = samples.at(from.last_microbatch());
    pipeline.first_sample = job_.samples;
    job_.samples += static_cast<int>(pipeline.microbatches - 1) * pipeline.microbatch + pipeline.last_microbatch;
    if (plan_.is_interleaved()) pipeline.group = plan_.group;
    const std::size_t stages = from.stages.size();
    for (std::size_t s = 0; s + 1 < stages + (plan_.is_interleaved() ? 1 : 0); ++s) {
      pipeline.boundaries.push_back(transfers(from.stages[s], from.stages[(s + 1) % stages], samples));
    }
    job_.pipelines.push_back(std::move(pipeline));
  }

  /// Enough that each lane of encoders has a sample of the batch, where they all come before the language model.
  [[nodiscard]] std::int64_t microbatches_for_lanes(const JobPipeline& pipeline) const {
    if (!job_.three_phases) return 0;
    std::int64_t lanes = 0;
    for (const JobEncoder& encoder : job_.encoders) {
      lanes = std::max<std::int64_t>(lanes, Handover(job_, pipeline, encoder.layout.tp).lanes());
    }
    return (lanes + pipeline.microbatch - 1) / pipeline.microbatch;
  }

  /// Where a share of the samples has no items: all of every third microbatch, and of the others every third sample,
  /// for each encoder another one.
  void mark_absent() {
    constexpr std::int64_t kEvery = 3;
    for (std::size_t e = 0; e < job_.encoders.size(); ++e) {
      JobEncoder& encoder = job_.encoders[e];
      if (!(model::encoder_spread(plan_.model, static_cast<int>(e)).none > 0)) continue;
      const auto shift = static_cast<std::int64_t>(e);
      for (const JobPipeline& pipeline : job_.pipelines) {
        for (std::int64_t m = 0; m < pipeline.microbatches; ++m) {
          for (int s = 0; s < pipeline.samples_of(m); ++s) {
            const std::int64_t sample = pipeline.first_sample + m * pipeline.microbatch + s;
            if (m % kEvery == 1 || (sample + shift) % kEvery == kEvery - 1) encoder.absent.insert(sample);
          }
        }
      }
    }
  }

  JobStage stage_of(const plan::Stage& from, int position, const SampleScale& samples) {
    JobStage stage;
    stage.id = from.id;
    for (const model::BlockRange& chunk : from.chunks) {
      stage.chunks.push_back({small_block(chunk.first), small_block(chunk.last)});
    }
    stage.embedding = from.first() == 0;
    stage.head = from.last() == plan_.pipelined().block_count();
    stage.warmup = from.warmup;
    stage.puts_off = plan_.zero_bubble && from.puts_off();
    stage.put_off = std::min(from.put_off, kMostPutOff);
    std::int64_t before = 0;
    for (std::size_t p = 0; p < from.parts.size(); ++p) {
      const plan::Part& part = from.parts[p];
      stage.parts.push_back(part_of(from, part, before, samples));
      add_ranks(part, before, samples, {0, static_cast<int>(job_.pipelines.size()), position, static_cast<int>(p)});
      before += part.samples;
    }
    return stage;
  }

  JobPart part_of(const plan::Stage& stage, const plan::Part& from, std::int64_t before, const SampleScale& samples) {
    JobPart part;
    part.degrees = from.strategy.degrees;
    part.degrees.cp /= folds_;
    part.zero_of_ends = from.strategy.policy.zero;
    part.blocks = policies_of(stage, from.strategy.policy);
    part.first_rank = static_cast<int>(job_.ranks.size());
    for (int lane = 0; lane < from.strategy.degrees.dp; ++lane) {
      if (!keeps(from, lane, before, samples)) continue;
      const Window own = lane_of(from, before, lane);
      part.lanes.push_back({samples.at(own.first), samples.at(own.last)});
    }
    part.degrees.dp = static_cast<int>(part.lanes.size());
    if (part.degrees.dp_replicate > 1) part.degrees.dp_replicate = part.degrees.dp / from.strategy.degrees.dp_shard();
    return part;
  }

  /// Of the stage's blocks that are kept.
  [[nodiscard]] std::vector<cost::BlockPolicy> policies_of(const plan::Stage& stage,
                                                           const cost::MemoryPolicy& policy) const {
    std::vector<cost::BlockPolicy> policies;
    for (const model::BlockRange& chunk : stage.chunks) {
      int first = chunk.first;
      for (const cost::BlockRun& run : cost::runs_of(policy, chunk.count())) {
        const int kept = small_block(first + run.blocks) - small_block(first);
        policies.insert(policies.end(), static_cast<std::size_t>(kept), run.policy);
        first += run.blocks;
      }
    }
    return policies;
  }

  static bool keeps(const plan::Part& part, int lane, std::int64_t before, const SampleScale& samples) {
    const Window own = lane_of(part, before, lane);
    return samples.keeps(own.first, own.last);
  }

  void add_ranks(const plan::Part& part, std::int64_t before, const SampleScale& samples, JobRank rank) {
    const cost::Degrees& d = part.strategy.degrees;
    std::vector<int> new_lane(static_cast<std::size_t>(d.dp), 0);
    int lanes = 0;
    for (int lane = 0; lane < d.dp; ++lane) {
      if (keeps(part, lane, before, samples)) at(new_lane, lane) = lanes++;
    }
    for (int i = 0; i < d.gpus(); ++i) {
      if (!keeps(part, i / (d.tp * d.cp), before, samples) || i / d.tp % d.cp >= d.cp / folds_) continue;
      const plan::Rank& from = plan_.rank(part, i);
      rank.number = from.rank;
      rank.tp = from.tp;
      rank.cp = from.cp;
      rank.dp = at(new_lane, from.dp);
      rank.ep = from.ep;
      rank.etp = from.etp;
      at(job_rank_, from.rank) = static_cast<int>(job_.ranks.size());
      job_.ranks.push_back(rank);
    }
  }

  std::vector<JobTransfer> transfers(int from, int to, const SampleScale& samples) {
    std::vector<JobTransfer> list;
    const std::int64_t tokens = plan_.pipelined().block(plan_.stage(from).first_cut() - 1).tokens;
    for (const plan::Boundary& boundary : plan_.boundaries) {
      if (boundary.from != from || boundary.to != to) continue;
      for (const plan::Transfer& t : boundary.transfers) {
        const int source = at(job_rank_, t.src);
        const int target = at(job_rank_, t.dst);
        if (source < 0 || target < 0 || !samples.keeps(t.sample_first, t.sample_last)) continue;
        const JobTransfer transfer{source,
                                   target,
                                   {samples.at(t.sample_first), samples.at(t.sample_last)},
                                   {positions_.at(tokens, t.seq_first), positions_.at(tokens, t.seq_last)}};
        if (transfer.samples.length() > 0 && transfer.positions.length() > 0) list.push_back(transfer);
      }
    }
    return list;
  }

  /// How many kept blocks come before one of the model.
  [[nodiscard]] int small_block(int block) const {
    return static_cast<int>(std::ranges::lower_bound(blocks_, block) - blocks_.begin());
  }

  [[nodiscard]] int widest_context() const {
    int widest = 1;
    for (const plan::Stage& stage : plan_.stages) {
      for (const plan::Part& part : stage.parts) widest = std::max(widest, part.strategy.degrees.cp);
    }
    return widest;
  }

  [[nodiscard]] std::vector<Shrunk> shrunk(const Job& job) const {
    std::vector<Shrunk> list;
    const auto note = [&](const char* what, std::int64_t kept, std::int64_t of) {
      if (kept != of) list.push_back({what, kept, of});
    };
    note("pipelines", static_cast<std::int64_t>(job.pipelines.size()),
         static_cast<std::int64_t>(plan_.pipelines.size()));
    note("ranks", static_cast<std::int64_t>(job.ranks.size()), static_cast<std::int64_t>(plan_.ranks.size()));
    note("cp ranks", widest_context() / folds_, widest_context());
    note("blocks", static_cast<std::int64_t>(blocks_.size()), plan_.pipelined().block_count());
    std::int64_t microbatches = 0;
    std::int64_t of_microbatches = 0;
    for (const JobPipeline& pipeline : job.pipelines) {
      microbatches = std::max(microbatches, pipeline.microbatches);
      of_microbatches = std::max(of_microbatches, at(plan_.pipelines, pipeline.id).microbatches);
    }
    note("microbatches", microbatches, of_microbatches);
    note("samples", job.samples, plan_.model.job.global_batch);
    note("positions", job.model.positions, plan_.model.job.sequence_length);
    note("width", job.model.width, plan_.pipelined().hidden);
    return list;
  }

  const plan::LaunchPlan& plan_;
  std::vector<int> pipelines_;
  std::vector<int> blocks_;
  int folds_;  ///< of the sequence
  SmallModel model_;
  PositionScale positions_;
  std::vector<int> job_rank_;  ///< of each rank of the plan; -1: left out
  Job job_;
};

}  // namespace

Reduction reduce(const plan::LaunchPlan& plan) { return Reducer(plan).reduce(); }

}  // namespace tangram::execute
