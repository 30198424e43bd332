// What the ranks execute: the plan's structure with small widths. Goes in: a reduced plan (reduction.hpp). Everything
// is counted in small units: samples, positions, blocks and ranks of the job; `number`, `id` and `index` are the
// plan's.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "matrix.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/colocated.hpp"
#include "tangram/cost/strategy.hpp"

namespace tangram::execute {

/// A recurrence with the structure of the model's.
struct SmallRecurrence {
  model::RecurrenceKind kind = model::RecurrenceKind::kMamba2;
  int heads = 1;
  int groups = 1;
  int head_width = 2;
  int key_width = 3;
  int convolution = 3;  ///< positions that it sees
  int chunk = 3;        ///< positions that are scanned together; 0: one by one
};

/// A block with the structure of the model's and small dimensions.
struct SmallBlock {
  int index = 0;                              ///< in the model
  int heads = 1;                              ///< of attention; 0: none
  std::optional<SmallRecurrence> recurrence;  ///< in its place
  bool output_gate = false;
  int kv_heads = 1;
  int head_width = 2;
  bool exchanges_heads = false;  ///< over cp, for positions; else keys and values of all positions are gathered
  bool latent = false;           ///< keys and values come from a replicated down-projection
  bool causal = true;
  int window = 0;  ///< positions a query sees; 0: all
  int packed = 0;  ///< positions of the sequences that samples are packed of; 0: a sample is one
  bool gated = true;
  int hidden = 0;  ///< of the dense feed-forward; 0: none
  int shared_hidden = 0;
  int experts = 0;
  int experts_per_token = 0;
  int expert_groups = 1;  ///< neighbours; a token's experts are in the best of them
  int groups_per_token = 1;
  int expert_hidden = 0;
  bool latent_experts = false;  ///< they read a narrower row, that a replicated projection makes
  bool parallel_attention = false;
  bool trained = true;
  model::AdapterTargets adapted;  ///< matrices that adapters stand beside

  [[nodiscard]] bool mixes() const { return heads > 0 || recurrence.has_value(); }
  [[nodiscard]] bool feeds_forward() const { return hidden > 0 || experts > 0; }
};

struct SmallModel {
  int width = 6;  ///< of the residual stream
  int latent_width = 5;
  int connector_width = 4;  ///< inside of what connects an encoder
  int vocabulary = 8;
  int positions = 4;
  bool tied = false;
  bool trained_ends = true;     ///< embedding and head
  bool trained_patches = true;  ///< what embeds the input of encoders
  int encoder_blocks = 0;  ///< before the last encoder's end the token embeddings travel beside the encoder's stream
  std::vector<SmallBlock> blocks;
};

struct JobPart {
  cost::Degrees degrees;                  ///< dp: the replicas kept
  int zero_of_ends = 0;                   ///< of embedding and head
  std::vector<cost::BlockPolicy> blocks;  ///< of the stage's, chunk by chunk
  int first_rank = 0;
  std::vector<Range> lanes;  ///< of each replica: its samples of a whole microbatch
};

struct JobStage {
  int id = 0;
  std::vector<Range> chunks;  ///< of SmallModel::blocks, one under 1F1B
  bool embedding = false;
  bool head = false;
  std::int64_t warmup = 0;
  bool puts_off = false;     ///< weight gradients
  std::int64_t put_off = 0;  ///< microbatches held beyond warmup + 1, their weight gradients put off
  std::vector<JobPart> parts;
};

struct JobTransfer {
  int source = 0;
  int target = 0;
  Range samples;
  Range positions;
};

struct JobPipeline {
  int id = 0;
  std::int64_t microbatches = 1;
  int microbatch = 1;
  int last_microbatch = 1;  ///< samples of the last one, the first of a whole one
  int first_sample = 0;     ///< of the batch
  std::vector<JobStage> stages;
  std::int64_t group = 1;  ///< microbatches that take turns in the chunks
  /// Behind each stage; behind the last one only where chunks are interleaved, which leads to the first stage.
  std::vector<std::vector<JobTransfer>> boundaries;
  [[nodiscard]] int chunks() const { return static_cast<int>(stages.front().chunks.size()); }
  [[nodiscard]] int samples_of(std::int64_t index) const {
    return index + 1 < microbatches ? microbatch : last_microbatch;
  }
};

/// An encoder on the ranks of the language model, in lanes of layout.tp ranks each: its patches, its blocks, what
/// connects it. It reads the tokens of the sample, and what it makes is added to their embeddings.
struct JobEncoder {
  std::string name;  ///< "vision"
  cost::EncoderLayout layout;
  std::vector<SmallBlock> blocks;
  bool trained_patches = true;
  bool connector = false;
  bool trained_connector = false;
  std::set<std::int64_t> absent = {};  ///< samples of the batch that have no items

  /// The first block that a backward pass has to reach; all of them: the connector alone is trained.
  [[nodiscard]] std::size_t first_trained() const;
  [[nodiscard]] bool trains() const {
    return trained_patches || first_trained() < blocks.size() || (connector && trained_connector);
  }
  [[nodiscard]] bool has_items(std::int64_t sample) const { return !absent.contains(sample); }
};

struct JobRank {
  int number = 0;
  int pipeline = 0;  ///< positions in the job
  int stage = 0;
  int part = 0;
  int tp = 0, cp = 0, dp = 0, ep = 0, etp = 0;
};

struct Job {
  SmallModel model;
  std::vector<JobPipeline> pipelines;
  std::vector<JobRank> ranks;  ///< in the order of the plan; those of a part are neighbours
  int samples = 0;             ///< of the batch
  std::vector<JobEncoder> encoders = {};
  bool three_phases = false;  ///< encoders of the whole batch, the language model, encoders back; else they take turns

  [[nodiscard]] const JobPipeline& pipeline_of(const JobRank& rank) const { return at(pipelines, rank.pipeline); }
  [[nodiscard]] const JobStage& stage_of(const JobRank& rank) const { return at(pipeline_of(rank).stages, rank.stage); }
  [[nodiscard]] const JobPart& part_of(const JobRank& rank) const { return at(stage_of(rank).parts, rank.part); }
};

/// The whole batch on one rank, one stage, sample by sample, recurrences position by position: what every plan is
/// compared with.
[[nodiscard]] Job one_process(const Job& job);

/// The token at a position of a sample of the batch; both may be anything.
[[nodiscard]] int token(const SmallModel& model, std::int64_t sample, int position);

}  // namespace tangram::execute
