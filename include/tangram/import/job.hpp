// A job in the terms of all formats. Goes in: nothing (values only). Comes out of every reader, and is placed on GPUs.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tangram/cost/strategy.hpp"
#include "tangram/import/import.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::importing {

/// Where something was said: a diagnostic without a message.
using Place = Diagnostic;

/// The diagnostic at a place.
[[nodiscard]] Diagnostic at(Place place, std::string code, std::string message, std::string hint = {});

/// Which GPU a rank asks for; what is not said is left to the order of the GPUs.
struct GpuRequest {
  std::string device;  ///< name of the GPU type, whole or the beginning of the catalogue's; empty: any
  int node = -1;       ///< position in the host file or among the fleet's nodes; -1: any
};

/// One replica of a stage: tp x cp GPUs.
struct Replica {
  int tp = 1;
  std::int64_t samples = 1;  ///< of each microbatch
  std::vector<GpuRequest> gpus;
};

/// Blocks [first, last), as far as a file can be believed.
struct JobLayers {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct JobStage {
  std::int64_t first = 0;  ///< blocks [first, last)
  std::int64_t last = 0;
  cost::Degrees common;  ///< cp, ep, etp and sequence parallelism; a stage without experts has no ep
  cost::MemoryPolicy policy;
  std::vector<Replica> replicas;
  Place place;
  bool by_speed = false;               ///< samples go to the replicas in proportion to their speed, not as they say
  std::vector<JobLayers> chunks = {};  ///< its model chunks, ascending; empty: one, of all its blocks

  [[nodiscard]] std::vector<JobLayers> all_chunks() const {
    return chunks.empty() ? std::vector<JobLayers>{{first, last}} : chunks;
  }
};

struct JobPipeline {
  std::int64_t microbatch = 1;
  std::int64_t microbatches = 1;
  std::vector<JobStage> stages;
  std::int64_t group = 0;  ///< microbatches that pass a chunk in a row, where stages have several

  [[nodiscard]] std::int64_t chunks() const { return std::ssize(stages.front().all_chunks()); }
};

/// A GPU in the order of ranks, as a host file or a rank map names it.
struct RankGpu {
  std::string host;
  int gpu = 0;
  int island = -1;  ///< of a rank map's column; -1: not said
  Place place;
};

/// An argument of Megatron-LM that describes the model; the names are those of the command line.
struct ModelArgument {
  std::string name;
  std::string value;  ///< empty: a switch
  Place place;
};

/// How a job runs its model, as far as Megatron-LM's arguments say; the rest is as the model file has it.
struct ExecutionArguments {
  std::optional<model::CudaGraphs> cuda_graphs;
  std::optional<model::ExpertDispatch> expert_dispatch;
  std::optional<model::ContextExchange> context_exchange;
  std::optional<model::RecomputeModules> recompute_modules;
  std::optional<model::OffloadModules> offload_modules;
  std::optional<model::FusedLoss> fused_loss;
  std::optional<std::int64_t> gradient_bucket;
  // Switches; false: not said.
  bool overlap_experts = false;
  bool overlap_gather = false;
  bool overlap_tp = false;
};

/// A module of a multimodal model, on ranks of its own from `offset` on: tp fastest, then dp, then pp.
struct JobModule {
  std::string name;
  std::int64_t tp = 1, pp = 1, cp = 1, dp = 1, etp = 1;
  std::int64_t offset = 0;
  bool sequence_parallel = false;
  cost::RecomputeMode recompute = cost::RecomputeMode::kNone;
  std::int64_t recompute_layers = 0;      ///< of each stage, where all of a layer is recomputed; 0: of all layers
  std::vector<std::int64_t> layers = {};  ///< of each stage; empty: equally many
  Place place = {};

  [[nodiscard]] std::int64_t ranks() const { return tp * cp * pp * dp; }
};

/// What the files say of the batch. The rest follows from the samples of an iteration and the number of replicas.
enum class Fill : std::uint8_t {
  kNone,              ///< all of it
  kSamples,           ///< samples of a replica of the first stage
  kSamplesRoundedUp,  ///< the same, and the last microbatch may be short
  kMicrobatches,      ///< how many there are
};

/// In which order ranks are numbered.
enum class RankOrder : std::uint8_t {
  kStages,     ///< stage by stage, at each depth pipeline by pipeline: Megatron-LM
  kPipelines,  ///< pipeline by pipeline
};

/// A GPU type as a file calls it.
struct DeviceName {
  std::string name;
  Place place;
};

struct Job {
  runtime::Target runtime = runtime::Target::kGeneric;  ///< that runs it
  model::JobOverrides overrides;
  std::vector<JobPipeline> pipelines;
  Fill fill = Fill::kNone;
  Place batch;  ///< where the batch is said
  /// Each stage has one replica that stands for as many as there is room for on its share of the GPUs.
  bool takes_all = false;
  std::int64_t gpus = 0;     ///< that all of the job takes; 0: all that there are
  bool counts_ends = false;  ///< layers are numbered with the embedding as 0 and the head as the last
  RankOrder order = RankOrder::kStages;
  std::vector<DeviceName> device_order;  ///< GPUs are taken type by type; empty: as they come, whatever type
  std::vector<RankGpu> ranks;            ///< empty: the fleet's GPUs, node by node
  std::vector<int> gpu_order;            ///< of those: which of them is the first, the second, ...; empty: as they come
  std::vector<JobModule> modules;        ///< of which the pipelines are made once the model is known
  std::int64_t microbatch = 0;           ///< of a job of modules: samples of all replicas together
  std::vector<ModelArgument> model;
  ExecutionArguments execution;
  double claimed_seconds = 0;  ///< of an iteration, by the planner that wrote the file; 0: it does not say
  std::vector<std::string> notes;
};

}  // namespace tangram::importing
