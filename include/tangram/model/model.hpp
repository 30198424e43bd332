// What is trained, and how. Goes in: model.yaml (tangram.model/1) or a Hugging Face config.json. Comes out: the chain
// of blocks the planner cuts, with the dimensions from which every FLOP, byte and parameter is counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/base/dtype.hpp"
#include "tangram/base/expected.hpp"
#include "tangram/base/units.hpp"
#include "tangram/model/adapters.hpp"
#include "tangram/model/cuda_graphs.hpp"
#include "tangram/model/eager_operators.hpp"
#include "tangram/model/execution_options.hpp"
#include "tangram/model/modules.hpp"
#include "tangram/model/offload_modules.hpp"
#include "tangram/model/packing.hpp"
#include "tangram/model/recompute_modules.hpp"
#include "tangram/model/recurrence.hpp"

namespace tangram::model {

struct Model;

enum class AttentionKind : std::uint8_t { kMultiHead, kLatent };  // MHA, GQA and MQA differ in kv_heads alone

struct Attention {
  AttentionKind kind = AttentionKind::kMultiHead;
  int heads = 0;  ///< 0: the block does not attend
  int kv_heads = 0;
  int head_dim = 0;
  std::int64_t sliding_window = 0;  ///< tokens a query sees; 0: all
  bool causal = true;
  bool qkv_bias = false;
  bool output_bias = false;
  bool qk_norm = false;      ///< a norm of head_dim on queries and on keys
  bool output_gate = false;  ///< Qwen3-Next: a projection as wide as the queries gates what comes out; not with MLA
  // Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434 section 2.1); 0 elsewhere.
  int q_lora_rank = 0;  ///< 0: queries are projected directly
  int kv_lora_rank = 0;
  int qk_nope_head_dim = 0;
  int qk_rope_head_dim = 0;
  int v_head_dim = 0;
  /// Tokens of the packed sequence that a token is in, in the mean; 0: a sample is one. Follows from the job's packing.
  double packed_length = 0;

  bool operator==(const Attention&) const = default;
};

struct FeedForward {
  std::int64_t hidden = 0;  ///< intermediate size of the dense part; 0 in a pure MoE block
  bool gated = true;        ///< three matrices (SwiGLU, GeGLU) instead of two
  bool bias = false;
  int experts = 0;  ///< 0: dense
  int experts_per_token = 0;
  std::int64_t expert_hidden = 0;
  /// Nemotron-3: routed experts read and write this width; a product in front of the dispatch and one behind it, which
  /// all experts share, lead there and back. 0: hidden.
  std::int64_t latent_hidden = 0;
  std::int64_t shared_hidden = 0;  ///< all shared experts together
  bool shared_gate = false;        ///< Qwen2-MoE: a hidden -> 1 gate on the shared expert
  bool router_bias = false;        ///< DeepSeek-V3: one correction value per expert
  /// Experts are in so many groups of neighbours, and those of a token in the best `groups_per_token` of these, so that
  /// it goes to few nodes (DeepSeek-V2, arXiv 2405.04434, section 2.2.2).
  int expert_groups = 1;
  int groups_per_token = 1;

  [[nodiscard]] bool is_moe() const { return experts > 0; }
  bool operator==(const FeedForward&) const = default;
};

/// A layer (of a decoder or an encoder): the unit the model is cut at. It mixes tokens, by attention or by a
/// recurrence, and has a feed-forward behind that; layers of hybrid models may have one of the two alone.
struct BlockType {
  std::string name;  ///< "dense", "moe", "vision": unique in the model
  std::int64_t hidden = 0;
  std::int64_t tokens = 0;  ///< tokens of one sample in this block (the sequence length, or image patches)
  Attention attention;
  std::optional<Recurrence> recurrence;  ///< in place of attention
  FeedForward feed_forward;
  int norms = 2;                       ///< norms of size hidden in the block (Gemma 2: 4; a block of one part: 1)
  bool norm_bias = false;              ///< LayerNorm has a bias, RMSNorm has not
  bool parallel_attention = false;     ///< attention and feed-forward read the same input (GPT-NeoX, GPT-J)
  Gradients gradients;                 ///< what backward works out; follows from which modules are trained
  std::optional<Connector> connector;  ///< runs with the block: behind an encoder's last, before a generator's first
  ModuleConstraint constraint;         ///< of its module
  bool wide = false;                   ///< computes in 16 bits where the job does in fewer; follows from wide_layers
  Adapters adapters;                   ///< of its module, as far as it has what they stand beside

  [[nodiscard]] bool attends() const { return attention.heads > 0; }
  [[nodiscard]] bool mixes() const { return attends() || recurrence.has_value(); }
  [[nodiscard]] bool feeds_forward() const { return feed_forward.hidden > 0 || feed_forward.is_moe(); }
  /// Width of what routed experts read and write.
  [[nodiscard]] std::int64_t expert_input() const {
    return feed_forward.latent_hidden > 0 ? feed_forward.latent_hidden : hidden;
  }
  bool operator==(const BlockType&) const = default;
};

/// Parameters of one block and its connector, split by how parallelism shards them.
struct BlockParameters {
  std::int64_t attention = 0;     ///< of attention or the recurrence, sharded by tp
  std::int64_t replicated = 0;    ///< norms, routers, latent projections, row biases: on every tp rank
  std::int64_t feed_forward = 0;  ///< dense and shared experts, sharded by tp
  std::int64_t expert = 0;        ///< ALL routed experts together, sharded by ep and expert-tp
  [[nodiscard]] std::int64_t total() const { return attention + replicated + feed_forward + expert; }
};

/// What makes a layer another than a transformer's, which has attention and a feed-forward and experts as wide as
/// itself, for people: "a Mamba-2 recurrence". Empty: nothing does. Runtimes that do not know it refuse it by this
/// name.
[[nodiscard]] std::string_view beyond_transformer(const BlockType& block);
/// The same of the first type that has such a thing.
[[nodiscard]] std::string_view beyond_transformer(const Model& model);

[[nodiscard]] BlockParameters parameters(const BlockType& block);
/// Of them, those that a token is multiplied with in linear layers: no norms, no biases, no adapters, no connector.
[[nodiscard]] BlockParameters linear_parameters(const BlockType& block);
/// Of them, those that are held quantized: nothing unless the block's adapters say so, and no router.
[[nodiscard]] BlockParameters quantized_parameters(const BlockType& block);
/// What quantization spares of each of them, as a share of a parameter of `full` bytes; 0: they are not quantized.
[[nodiscard]] double spared_share(const BlockType& block, std::int64_t full);
/// Those that are trained, adapters among them: they alone have gradients and optimizer state.
[[nodiscard]] BlockParameters trained_parameters(const BlockType& block);
/// The block without its connector and adapters, all of it trained, on samples of one sequence.
[[nodiscard]] BlockType plain(BlockType block);

enum class RecomputeMode : std::uint8_t { kNone, kSelective, kFull };

/// What a plan may use. A technique forbidden here (or by --forbid) is out of the space.
struct Techniques {
  bool tp = true;
  bool sp = true;  ///< Megatron sequence parallelism, with tp
  bool cp = true;
  bool ep = true;
  bool dp = true;  ///< inside a stage
  bool zero1 = true;
  bool zero2 = true;
  bool zero3 = true;
  bool recompute_selective = true;
  bool recompute_full = true;
  bool mixed_stages = true;
  bool replicas = true;      ///< several pipelines in data parallel
  bool pipeline = true;      ///< more than one stage
  bool interleaving = true;  ///< several model chunks a stage
  bool zero_bubble = true;   ///< weight gradients that are put off

  bool operator==(const Techniques&) const = default;
};

struct Optimizer {
  std::string name = "adam";
  std::int64_t state_bytes_per_parameter = 12;  ///< master copy and moments; sharded from ZeRO-1 on
  /// Transformer Engine's FusedAdam under Megatron-Core's precision-aware optimizer: it reads main gradients of any
  /// type and keeps of the fp32 master copy what bf16 parameters lack (reads_main_gradients, keeps_remainders).
  bool precision_aware = false;
  /// Of the parameters, those whose moments are in the host's memory and which its CPU steps (Ren et al., ZeRO-Offload,
  /// arXiv 2101.06840; Megatron-Core's HybridDeviceOptimizer). Of Adam alone.
  double offload_fraction = 0;
  bool operator==(const Optimizer&) const = default;
};

/// Over which data-parallel ranks of a stage ZeRO shards; each group of them holds everything (cost::Degrees).
struct ShardingGroup {
  enum class Kind : std::uint8_t {
    kAny,   ///< searched
    kAll,   ///< all of them
    kNode,  ///< those of a node
    kRanks  ///< so many
  };
  Kind kind = Kind::kAny;
  int ranks = 0;  ///< kRanks

  bool operator==(const ShardingGroup&) const = default;
};

/// Which fused attention runs.
enum class AttentionKernel {
  kDefault,  ///< kNative on Hopper and Blackwell, where runtimes prefer it; else kFlash2
  kFlash2,   ///< one for all generations of GPUs (FlashAttention-2)
  kNative,   ///< made for the GPU's own (FlashAttention-3, cuDNN); where the GPU's record has no figures, as kFlash2
};

/// How tokens travel to the experts of other GPUs and back.
enum class ExpertDispatch {
  kAllToAll,  ///< a copy for each expert that a token is sent to
  kDeepEp,    ///< one for each GPU, of which one crosses to each node (DeepEP, github.com/deepseek-ai/DeepEP)
  kHybridEp,  ///< the same, by its kernels for NVLink domains
};

/// How the attention of a rank of context parallelism comes by what the other ranks' positions hold.
enum class ContextExchange {
  kRing,       ///< keys and values go around a ring, beside the kernel of each step (arXiv 2310.01889)
  kAllGather,  ///< keys and values of all positions, before the kernel
  kAllToAll,   ///< all positions of a share of the heads, before the kernel, and back (Ulysses, arXiv 2309.14509)
};

/// How values are scaled to fit 8 bits (Transformer Engine's recipes).
enum class Fp8Recipe {
  kDelayed,     ///< one scale a tensor, of the greatest values of iterations before
  kTensorwise,  ///< one scale a tensor, of its own greatest value
  kBlockwise,   ///< one of 128 values, of weights one of 128 x 128
  kMxfp8,       ///< one of 32 values
};

/// How the kernels of the loss are fused: as Megatron-LM's --cross-entropy-fusion-impl has it.
enum class FusedLoss {
  kNone,               ///< one operator after the other
  kNative,             ///< operators between exchanges are compiled, on the same copies of the logits in fp32
  kTransformerEngine,  ///< logits become their gradient in one kernel, without copies in fp32
};

/// As model files have them.
[[nodiscard]] std::string_view to_string(AttentionKernel kernel);
[[nodiscard]] std::string_view to_string(FusedLoss loss);
[[nodiscard]] std::string_view to_string(ExpertDispatch dispatch);
[[nodiscard]] std::string_view to_string(ContextExchange exchange);
[[nodiscard]] std::string_view to_string(Fp8Recipe recipe);

/// Layers of the language model that compute in 16 bits under fp8 and fp4: so many from either end.
struct WideLayers {
  int first = 0;
  int last = 0;

  bool operator==(const WideLayers&) const = default;
};

struct Job {
  std::int64_t sequence_length = 0;
  std::int64_t global_batch = 0;   ///< samples per iteration
  DType precision = DType::kBf16;  ///< of the matrix products; parameters and activations are 2 bytes under fp8
  Fp8Recipe fp8_recipe = Fp8Recipe::kDelayed;
  /// Under fp8 and fp4: parameters are kept and gathered as products read them.
  bool narrow_parameters = false;
  /// Under fp8: copies of weights by columns, which gradients of inputs read, stay from one microbatch to the next;
  /// else each backward pass makes them of those by rows, which one scale a tensor or a square block of it allows.
  bool transpose_cache = true;
  /// Under fp8 and fp4: linear layers keep of their inputs what their weight gradients read, as Transformer Engine's
  /// do.
  bool narrow_inputs = true;
  /// Gate and up of gated feed-forwards are kept in 8 bits for the backward pass of the activation between them
  /// (Megatron-Core's activation_func_fp8_input_store).
  bool narrow_gates = false;
  bool wide_experts = false;  ///< under fp8 and fp4: routed experts compute in 16 bits
  WideLayers wide_layers;
  std::int64_t parameter_bytes = 2;
  std::int64_t gradient_bytes = 4;  ///< main gradients; 4 with bf16 (Megatron), 2 otherwise
  bool flash_attention = true;
  AttentionKernel attention_kernel = AttentionKernel::kDefault;  ///< with flash_attention
  bool fused_kernels =
      false;  ///< operators that move memory run as kernels written for them; see cluster::FusedKernels
  EagerOperators eager_operators;
  bool in_place_loss = false;  ///< one copy of the logits in fp32 becomes softmax and gradient, as Megatron-LM's does
  FusedLoss fused_loss = FusedLoss::kNone;
  CudaGraphs cuda_graphs;
  bool grouped_gemm = false;  ///< one kernel has the products of all local experts; else the host issues each expert's
  ExpertDispatch expert_dispatch = ExpertDispatch::kAllToAll;
  ContextExchange context_exchange = ContextExchange::kRing;
  bool overlap_experts = false;  ///< dispatch and combine run beside the passes of another microbatch
  /// Load of the busiest expert-parallel rank over the mean. An assumption: balancing losses and biases keep single
  /// experts near the mean (Wang et al., arXiv 2408.15664, measure the rest as MaxVio), a rank averages over its
  /// experts, but a microbatch is a small sample.
  double routing_imbalance = 1.15;
  bool dropout = true;  ///< models with LayerNorm and biases (GPT-2, GPT-3, OPT, ...) train with dropout
  /// What a sharded optimizer updates is gathered beside the first forward pass of the next iteration, not before it.
  bool overlap_gather = false;
  /// Parameters whose gradients are reduced together while backward goes on; 0: as Megatron-Core has it.
  std::int64_t gradient_bucket = 0;
  bool overlap_tp = false;  ///< tensor-parallel exchanges run beside the products around them
  /// Weight-gradient products add into the main gradients; else kernels of their own do, as in Megatron-LM and
  /// DeepSpeed before 2022.
  bool fused_accumulation = true;
  bool blocking_launches = false;      ///< the host waits for each kernel (CUDA_LAUNCH_BLOCKING=1)
  RecomputeModules recompute_modules;  ///< of selective recompute; empty: recomputed_modules() says which
  OffloadModules offload_modules;      ///< whose inputs wait in the host's memory for the backward pass
  Packing packing;                     ///< of samples
  Optimizer optimizer;
  std::string loss_normalization = "global_token_mean";
  Techniques allow;
  std::int64_t microbatch = 0;  ///< fixed by the user (per pipeline); 0: searched
  ShardingGroup sharding_group;
  /// Whose values the planner chooses (planner::make_plan), and of which the job has the defaults; none is free in a
  /// plan.
  OptionSet free_options;

  bool operator==(const Job&) const = default;
};

struct Model {
  std::string name;
  std::vector<BlockType> types;
  std::vector<int> blocks;  ///< type of each block, first to last
  ModuleGraph graph;
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;                ///< of the embedding and the head
  std::int64_t learned_positions = 0;     ///< rows of a learned position table (GPT-2, OPT); 0: none
  std::int64_t embedding_projection = 0;  ///< OPT-350M: token embedding width when it differs from hidden; 0: same
  bool tied_embeddings = false;
  bool final_norm = true;
  bool final_norm_bias = false;
  std::int64_t extra_embedding_parameters = 0;  ///< patch embedding and alike, held by the first stage
  Job job;
  std::string digest;
  std::string assumed;  ///< what the file does not say of the job, and what was taken, for people; empty: it says all

  [[nodiscard]] int block_count() const { return static_cast<int>(blocks.size()); }
  [[nodiscard]] const BlockType& block(int index) const { return at(types, at(blocks, index)); }
  [[nodiscard]] bool has_experts() const;
  [[nodiscard]] std::int64_t embedding_parameters() const;  ///< tokens, positions, projections in, extra
  [[nodiscard]] std::int64_t head_parameters() const;       ///< final norm, projection out, output matrix unless tied
  [[nodiscard]] std::int64_t total_parameters() const;      ///< each tied matrix counted once
  [[nodiscard]] std::int64_t active_parameters() const;     ///< total without the experts a token is not sent to
  [[nodiscard]] Gradients end_gradients() const;            ///< of the embedding and the head
  [[nodiscard]] std::int64_t trained_embedding_parameters() const;
  [[nodiscard]] std::int64_t trained_head_parameters() const;
  [[nodiscard]] std::int64_t trained_parameters() const;  ///< each tied matrix counted once
  [[nodiscard]] double held_parameters() const;  ///< those of full width that take as many bytes as all together
};

/// Blocks of the encoders in front of the language model: those up to the last that attends both ways and has a causal
/// one behind it. 0: there are none, as in models without causal blocks (BERT).
[[nodiscard]] int encoder_blocks(const Model& model);

/// Blocks of the language model: those behind the encoders, without generators.
[[nodiscard]] BlockRange language_blocks(const Model& model);

/// Blocks of each encoder in front of the language model, in the order of the chain. Where the model file names no
/// modules they are taken for one.
[[nodiscard]] std::vector<BlockRange> encoder_ranges(const Model& model);

/// Forward FLOPs of one sample: matrix products with weights (active experts only) and attention, half of it when
/// causal, or the recurrence; those of a connector and of adapters included.
[[nodiscard]] Flops forward_flops(const BlockType& block);
[[nodiscard]] Flops embedding_forward_flops(const Model& model);  ///< 0 unless the embedding is projected
[[nodiscard]] Flops head_forward_flops(const Model& model);       ///< logits and projection out

/// FLOPs of forward and backward of one iteration as MFU counts them: matrix products and attention of the model,
/// without recompute (Chowdhery et al., PaLM, appendix B; causal attention counted at half). Backward counts the
/// products that the trained modules need: none, one or two for each of forward.
[[nodiscard]] Flops model_flops_per_iteration(const Model& model);

/// Leaves nothing fixed of a module, or of any.
void lift_constraint(Model& model, Module& module);
void lift_constraints(Model& model);

/// What a caller puts in place of the file's values before anything is checked (command-line options).
struct JobOverrides {
  std::optional<std::int64_t> sequence_length;
  std::optional<std::int64_t> global_batch;       ///< samples
  std::optional<std::int64_t> microbatch;         ///< 0: searched
  std::vector<std::string> freeze = {};           ///< modules and connectors, beside those of the file
  std::optional<WantedOptions> options = {};      ///< that the planner may choose
  std::vector<NamedConstraint> constraints = {};  ///< of modules, in place of those of the file
  std::optional<Adapters> adapters = {};          ///< of the language model
};

/// Reads tangram.model/1. Relative `from:` paths are resolved against the directory of `file`.
[[nodiscard]] Expected<Model> read_model(std::string text, std::string file, const JobOverrides& overrides = {});

/// Reads a Hugging Face config.json: architecture only; the job gets the defaults that `read_model` documents.
[[nodiscard]] Expected<Model> read_hf_config(std::string text, std::string file, const JobOverrides& overrides = {});

/// Either of the two, by content ("architectures"/"model_type" against "schema").
[[nodiscard]] Expected<Model> read_any_model(std::string text, std::string file, const JobOverrides& overrides = {});

/// Sets the precision and the bytes of parameters, gradients and optimizer state that go with it where nothing else is
/// said: read_model documents them.
void set_precision(Job& job, DType precision);

/// Whether layers of the job at either end compute in 16 bits where the others do in fewer.
[[nodiscard]] bool has_wide_layers(const Job& job);
/// fp8 with one scale for a tensor or a square block: the copy by columns can be made of that by rows.
[[nodiscard]] bool has_transposable_weights(const Job& job);
/// Marks the layers that the job's wide_layers names, under fp8 and fp4, and no others; types are split for it.
void set_wide_layers(Model& model);

/// The job as a wide block computes; nullopt: as all do.
[[nodiscard]] std::optional<Job> own_job(const BlockType& block, const Job& job);

/// Bytes a parameter that the job's optimizer keeps where nothing else is said; nullopt: nobody knows it.
[[nodiscard]] std::optional<std::int64_t> usual_state_bytes(const Job& job);

/// A precision-aware optimizer reads main gradients as they are; else it makes copies in fp32. Under fp8 it does so
/// with delayed scaling alone (Megatron-Core, optimizer_config.py, use_precision_aware_optimizer_no_fp8_or_ds_fp8).
[[nodiscard]] bool reads_main_gradients(const Job& job);

/// Then it keeps of a master copy the 16 bits that bf16 parameters lack (store_param_remainders).
[[nodiscard]] bool keeps_remainders(const Job& job);

/// Bytes a parameter of the optimizer's moments: its state without the master copy.
[[nodiscard]] std::int64_t moment_bytes(const Job& job);

/// Bytes a parameter of the optimizer's state that stay on the GPU, in the mean over parameters.
[[nodiscard]] double resident_state_bytes(const Job& job);

/// Makes the job's Adam precision-aware, with moments as they are. False: it is, or it cannot be.
bool make_precision_aware(Job& job);

/// Canonical tangram.model/1 as JSON (valid YAML too): read_model of it gives the same model.
[[nodiscard]] std::string write_model(const Model& model);

}  // namespace tangram::model
