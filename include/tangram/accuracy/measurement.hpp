// Published end-to-end measurements of training. Goes in: a dataset (JSON, one object a measurement). Comes out: typed
// values; what a published rate or a rank's batch says of the iteration is worked out, the plan is not
// (experiment.hpp).
//
// Keys that are not read here belong to the publication (addresses, other predictions) and are passed over, because a
// dataset gathers what its sources say; a key that is read must have the right type. An absent value is null or
// missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/model/eager_operators.hpp"
#include "tangram/model/packing.hpp"

namespace tangram::accuracy {

struct GpuGroup {
  std::string type;  ///< as published: "A100-80GB-SXM", "a100_80gb", "T4-16GB (g4dn.12xlarge)"
  int count = 0;
  int per_node = 0;  ///< 0: not published
  bool operator==(const GpuGroup&) const = default;
};

/// Sizes of a model of experts or recurrences, as published beside its name; 0: not printed. They have to agree with
/// the model of that name in configs/models, and describe a model that is not there.
struct PrintedDims {
  std::int64_t hidden = 0;
  int layers = 0;
  int experts = 0;
  int experts_per_token = 0;
  std::int64_t expert_ffn = 0;
  int shared_experts = 0;              ///< as wide as the routed ones
  std::int64_t shared_expert_ffn = 0;  ///< of all shared experts together
  int dense_layers = 0;                ///< the first ones, which have no experts
  std::int64_t dense_ffn = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  std::int64_t vocabulary = 0;
  int prediction_layers = 0;  ///< behind the last layer, for more than one token (multi-token prediction)
  double parameters = 0;
  double parameters_unit = 0;  ///< the last digit printed of them
  std::optional<bool> gated;   ///< the feed-forwards
  std::optional<bool> biased;  ///< products with weights
  std::string attention;       ///< other than multi-head attention, in words
  std::string pattern;         ///< layers that are not alike, in words
  bool operator==(const PrintedDims&) const = default;
};

/// A model as published: a name, and the dimensions where they were printed; 0: not printed.
struct ModelFacts {
  std::string name;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t vocabulary = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  double parameters = 0;
  std::optional<bool> gated;  ///< the feed-forward
  PrintedDims dims = {};
  bool operator==(const ModelFacts&) const = default;
};

/// One data-parallel replica of a stage: `tp` GPUs of one type.
struct ReplicaFacts {
  std::string gpu;
  int tp = 1;
  bool operator==(const ReplicaFacts&) const = default;
};

/// Captured CUDA graphs as published: what captures them ("none", "transformer_engine", "local", "full_iteration"), and
/// what ("attn", "moe_router", "full_iteration").
struct GraphFacts {
  std::string captured_by;  ///< "": not printed
  std::vector<std::string> scope;
  bool operator==(const GraphFacts&) const = default;
};

/// How tokens reach their experts, as published.
struct ExpertFacts {
  std::string dispatcher;  ///< "alltoall", "deepep", "hybridep"; "": not printed
  std::string balance;     ///< "forced", "natural"; "": not printed
  bool operator==(const ExpertFacts&) const = default;
};

/// What a configuration says of kernels and dropout; what it does not say follows from the software.
struct KernelFacts {
  std::optional<bool> dropout;
  std::optional<bool> fused;                        ///< operators that move memory
  std::optional<bool> fused_loss;                   ///< logits become their gradient in one kernel
  std::optional<bool> fused_accumulation;           ///< weight-gradient products add into the main gradients
  std::optional<model::EagerOperators> eager = {};  ///< written in a framework's operators
  bool operator==(const KernelFacts&) const = default;
};

/// Where the GPUs of an encoder are (Karnati et al., arXiv 2605.27678).
enum class Placement : std::uint8_t {
  kHomogeneous,  ///< in the first stage, with the degrees of the language model
  kColocated,    ///< on all GPUs of the language model, in turn with it
  kDisjoint,     ///< a stage of its own in front, on GPUs of its own, which come first
};
[[nodiscard]] std::string_view to_string(Placement placement);  ///< "homogeneous", "colocated", "disjoint"

/// An encoder in front of the language model, which everything else in a measurement is about. All of its blocks are
/// trained, and a connector of two products leads to the language model.
struct EncoderFacts {
  Placement placement = Placement::kHomogeneous;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;  ///< 0: 4 hidden
  int layers = 0;
  int heads = 0;
  std::int64_t tokens_in = 0;   ///< of an item
  std::int64_t tokens_out = 0;  ///< of an item; 0: as many
  std::int64_t items = 1;       ///< of a sample
  std::optional<int> tp, dp;    ///< not printed: those of the language model
  std::optional<bool> sequence_parallel;
  std::string recompute;     ///< "full"; "": none
  int recompute_layers = 1;  ///< layers between kept inputs (Megatron-LM's --recompute-num-layers, uniform)
  bool offloaded = false;    ///< weights and gradients are on the host while the language model runs
  KernelFacts kernels;
  bool operator==(const EncoderFacts&) const = default;
};

/// Low-rank adapters beside frozen weights.
struct AdapterFacts {
  std::int64_t rank = 0;             ///< 0: not printed
  std::vector<std::string> targets;  ///< as PEFT calls them: "q_proj"
};

struct Measurement {
  std::string id;
  std::string dataset;
  std::string family;   ///< runs of one piece of work; not named: the dataset
  std::string plan;     ///< path of the launch plan that ran, which then says everything but the time; "": none
  std::string quality;  ///< "A": measured and complete, "A-": one parameter inferred, "B", "C": less
  std::string notes;
  std::string interconnect;
  std::vector<GpuGroup> gpus;
  ModelFacts model;

  std::optional<std::int64_t> sequence;
  std::optional<std::int64_t> global_batch;  ///< samples
  std::optional<std::int64_t> microbatch;    ///< samples of one replica
  std::optional<std::int64_t> local_batch;   ///< samples of one replica in an iteration
  std::optional<std::int64_t> accumulation;  ///< microbatches of one replica
  std::optional<int> tp, pp, dp, cp, ep;
  std::optional<int> expert_tp;       ///< GPUs that share an expert
  std::optional<int> model_parallel;  ///< tp times pp, where only the product was printed
  int virtual_stages = 1;             ///< per pipeline rank
  int microbatch_group = 0;           ///< microbatches that pass a virtual stage in a row; 0: not printed
  std::optional<bool> sequence_parallel;
  std::optional<bool> flash_attention;
  bool narrow_gates = false;     ///< activation_func_fp8_input_store
  std::string context_exchange;  ///< as Megatron-LM's --cp-comm-type; "": not printed
  std::string attention_kernel;  ///< of fused attention: "flash-2", "native"; "": not printed
  bool offloads_activations = false;
  std::vector<std::string> offload_modules;  ///< modules whose inputs go to the host and back
  int offloaded_layers = 0;                  ///< layers whose activations go to the host and back
  std::optional<int> zero;
  std::optional<int> sharding_group;   ///< FSDP: ranks of dp that it shards over
  double gather_barrier = 0;           ///< bytes, as ExecutionMethods has them
  bool no_sync = false;                ///< FSDP: gradients are reduced with the last microbatch alone
  std::string recompute;               ///< as published; "": not printed
  std::vector<int> recomputed_layers;  ///< of the language model, from 0, those recomputed in full; empty: not printed
  std::vector<std::string> recompute_modules;
  std::string precision;
  std::optional<std::vector<std::string>> overlap;  ///< exchanges that run beside passes, as printed
  std::string gradient_dtype;  ///< of main gradients, as published; "": the usual one of the precision
  int wide_first = 0;          ///< layers from the front that computed in 16 bits under fp8 and fp4
  int wide_last = 0;           ///< and from the back
  std::string moment_dtype;    ///< of Adam, as published: "fp32", "bf16", "fp8" or ""
  int state_bytes = 0;         ///< of the optimizer for a parameter, master copies included, as published; 0: not
  std::string variant;
  std::string framework;  ///< as published: "Megatron-DeepSpeed"; "": not printed
  std::string source;     ///< what published it, and the files that were read there
  std::string task;       ///< "pretrain", "LoRA fine-tune"; "": not printed
  AdapterFacts adapters;
  model::Packing packing;  ///< as printed
  GraphFacts graphs;
  ExpertFacts routing;
  bool launch_blocking = false;  ///< CUDA_LAUNCH_BLOCKING=1
  KernelFacts kernels;
  std::optional<EncoderFacts> encoder;

  // Plans that are not uniform.
  std::vector<int> layers_per_stage;  ///< embedding and head counted as layers where they are units
  std::vector<int> partition;         ///< first unit of each stage, and the end
  std::vector<std::vector<ReplicaFacts>> stage_replicas;
  std::vector<int> stage_gpus;
  std::vector<std::vector<int>> stage_tp;
  std::vector<int> stage_operators;
  std::vector<int> stage_recomputed_operators;

  // What was measured.
  double iteration_s = 0;      ///< 0: neither published nor computable
  bool derived = false;        ///< computed from FLOP/s
  double peak_memory = 0;      ///< bytes, of the fullest GPU; 0: not published
  bool of_allocator = false;   ///< the peak of allocated tensors, without context and fragmentation
  bool of_driver = false;      ///< all that the driver counts (nvidia-smi), buffers of collectives included
  bool out_of_memory = false;  ///< it did not run

  /// Stages say their GPUs themselves.
  [[nodiscard]] bool uneven() const { return !stage_replicas.empty() || !stage_gpus.empty(); }
};

/// `file` names the text in errors. A dataset is an array of measurements, or an object with them under "rows".
[[nodiscard]] Expected<std::vector<Measurement>> read_measurements(std::string text, std::string file);

}  // namespace tangram::accuracy
