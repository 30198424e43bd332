// tangram.model/1, in YAML or JSON. Keys without a default are required; unknown and duplicate keys are errors.
//
//   schema: tangram.model/1
//   name: llama-3-8b                  # default: the file's name without its ending
//   from: hf/llama-3-8b.json          # a Hugging Face config.json, relative to this file; or, instead,
//   architecture:
//     vocabulary: 128256
//     hidden: 4096
//     layers: 32
//     heads: 32
//     kv_heads: 8                     # default: heads
//     head_dim: 128                   # default: hidden / heads
//     ffn_hidden: 14336               # only where there are dense layers
//     gated: true                     # default true: SwiGLU or GeGLU
//     tied_embeddings: false          # default false
//     learned_positions: 0            # rows of a learned position table; default 0: none
//     embedding_projection: 0         # width of the token table where it is not hidden (OPT-350M)
//     extra_embedding_parameters: 0   # anything else the first stage holds
//     norm: rmsnorm                   # or layernorm; default rmsnorm
//     norms_per_block: 2
//     final_norm: true
//     qk_norm: false
//     output_gate: false              # a projection as wide as the queries gates what attention gives (Qwen3-Next)
//     qkv_bias: false
//     output_bias: false
//     ffn_bias: false
//     causal: true
//     parallel_attention: false
//     sliding_window: 0               # tokens; default 0: the whole sequence
//     full_attention_every: 0         # of windowed layers each n-th, counted from 1, sees everything
//     moe:
//       experts: 128
//       experts_per_token: 8
//       expert_hidden: 768
//       latent_hidden: 0              # width that experts read and write, where it is not hidden (Nemotron-3)
//       shared_hidden: 0              # all shared experts together
//       shared_gate: false
//       router_bias: false
//       expert_groups: 1              # a token's experts are in the best groups_per_token of so many groups (DeepSeek)
//       groups_per_token: 1           # default: all
//       first_dense_layers: 0
//       every: 1                      # behind those each n-th layer, counted from 1, is a mixture of experts
//     mla:                            # multi-head latent attention instead of kv_heads and head_dim
//       q_lora_rank: 1536             # default 0: queries are projected directly
//       kv_lora_rank: 512
//       qk_nope_head_dim: 128
//       qk_rope_head_dim: 64
//       v_head_dim: 128
//     mamba2:                         # a recurrence (arXiv 2405.21060) instead of heads and all keys of attention
//       heads: 128
//       head_dim: 64
//       groups: 8                     # of heads that share B and C
//       state: 128                    # width of B and of C
//       convolution: 4                # tokens that the causal convolution sees; default 4
//       chunk: 128                    # tokens that are multiplied at once; default 256
//       convolution_bias: true        # default true
//       projection_bias: false
//     gated_delta:                    # the same with the gated delta rule (arXiv 2412.06464)
//       value_heads: 32
//       value_head_dim: 128
//       key_heads: 16
//       key_head_dim: 128
//       convolution: 4                # default 4
//       chunk: 64                     # default 64
//       convolution_bias: false
//       projection_bias: false
//     only: mixer                     # or feed_forward: blocks that have one of the two alone, and one norm
//     encoders:                       # run before the decoder; their output is part of its sequence
//       - name: vision                # hidden, layers, heads, ... as above, but causal defaults to false, and:
//         tokens_per_sample: 1024     # or, where what comes out are other tokens than go in, of each image:
//         tokens_in: 1025
//         tokens_out: 256             # default: tokens_in
//         patch_parameters: 0         # patch embedding, positions; held by the first stage, like the next
//         projector_parameters: 0     # or, in the stage of the encoder's last block and counted from its widths:
//         connector:
//           kind: mlp                 # or merger, pool, resampler; default mlp
//           widths: [1024, 4096, 4096]  # input, inner and output of its linear layers; the input of a merger is that
//                                     # of several tokens side by side; of a resampler: input, queries, output
//           bias: true                # default true
//           norm: none                # or rmsnorm, layernorm: a norm in front; default none
//           norm_width: 1024          # default: the first width
//           queries: 256              # of a resampler, for each image
//           extra_parameters: 0       # in no product: separator tokens and alike
//           trainable: true
//         trainable: true             # the blocks and the patch embedding; default true
//     edges:                          # default: each encoder into the language model ("language")
//       - from: vision
//         to: language
//         from_layers: [8, 16, 24]    # deepstack: inner layers, counted from 0, whose output goes further in
//         into_layers: [0, 1, 2]      # behind these layers of the target; each takes one more copy of the connector
//   data:                             # what samples have of each encoder's items; default: one image each
//     vision:
//       items: image                  # a word for people: tile, frame, audio
//       mean: 1.5                     # in a sample; what plans are made for. The rest says how samples differ:
//       p95: 4
//       max: 12
//       none: 0.2                     # share of samples without any
//       tokens_in: 4096               # of an item, where the encoder takes any resolution
//       tokens_out: 1024
//   training:
//     sequence_length: 8192
//     global_batch_samples: 256       # or global_batch_tokens, a multiple of the sequence length
//     precision: bf16                 # or fp16, fp8, fp4, fp32, tf32; default bf16
//     fp8_recipe: delayed             # or tensorwise, blockwise, mxfp8: how values are scaled to fit 8 bits
//     narrow_parameters: false        # parameters are kept and gathered in 8 or 4 bits (--fp8-param-gather)
//     transpose_cache: true           # copies of weights by columns stay; false: each backward pass makes them
//     narrow_inputs: true             # linear layers keep their inputs in 8 or 4 bits for weight gradients
//     narrow_gates: false             # gate and up of gated feed-forwards are kept in 8 bits for their activation
//     wide_experts: false             # routed experts compute in 16 bits beside layers in 8 or 4
//     wide_layers: {first: 0, last: 0} # so many layers of the language model from either end compute in 16 bits
//     gradient_bytes_per_parameter: 4 # default: 2 with fp16, else 4
//     optimizer:                      # default: adam; a name alone (optimizer: sgd) will do
//       name: adam                    # or adamw, sgd, adam8bit, adafactor, or any name with
//       precision_aware: false        # Transformer Engine's, which reads gradients of any type and keeps 10 bytes
//       state_bytes_per_parameter: 12 # default: by name and precision, see optimizer.cpp
//       offload_fraction: 0           # of the parameters, those whose moments the host has and steps; of adam
//     flash_attention: true
//     attention_kernel: default       # or flash-2, or native: made for the GPU's generation (FlashAttention-3, cuDNN)
//     fused_kernels: false            # operators that move memory run as kernels written for them (Transformer Engine)
//     eager_operators: none           # or all, or [norms, rotary, gates, adapters]: a framework's operators, a kernel
//                                     # each, as in models of Hugging Face without torch.compile
//     cuda_graphs: none               # or blocks, step, [attn, moe_router]: kernels that the host need not issue
//     grouped_gemm: false             # products of all local experts are one kernel (torch._grouped_mm)
//     expert_dispatch: all-to-all     # or deepep, hybridep: a token crosses to a node once, whatever its experts there
//     context_exchange: ring          # or all-gather, all-to-all (Ulysses): what attention gets of other ranks of cp
//     overlap_expert_communication: false # dispatch and combine run beside the passes of another microbatch
//     overlap_parameter_gather: false # a sharded optimizer's parameters are gathered beside the next forward pass
//     gradient_bucket: 0              # parameters whose gradients are reduced together while backward goes on; 0: as
//                                     # Megatron-Core, 40 million, or a million a data-parallel rank if that is more
//     in_place_loss: false            # one copy of the logits in fp32 becomes softmax and gradient (Megatron-LM)
//     fused_loss: none                # or native: operators of the loss are compiled; te: logits become their gradient
//                                     # in one kernel, without copies in fp32
//     recompute_modules: [moe_act]    # what selective recompute runs again: core_attn, layernorm, mla_up_proj,
//                                     # moe_act, mlp, moe, shared_experts; left out: what keeps much and takes little
//     offload_modules: [core_attn]    # whose inputs wait in the host's memory: attn_norm, qkv_linear, core_attn,
//                                     # attn_proj, mlp_norm, expert_fc1, moe_act; default: none
//     packing:                        # of samples, whose tokens attend to those of their own sequence alone
//       mean_length: 700              # tokens; with p95_length of lengths that are lognormal, else all have it; or
//       lengths: [{tokens: 512, sequences: 90}]  # those of the training data, cut to a sample
//     routing_imbalance: 1.15         # load of the busiest expert-parallel rank over the mean
//     dropout: true                   # of models with LayerNorm and biases; others train without
//     fused_gradient_accumulation: true # weight-gradient products add into the main gradients, else extra kernels do
//     blocking_launches: false        # the host waits for each kernel (CUDA_LAUNCH_BLOCKING=1)
//     overlap_tp_communication: false # the runtime splits products so that exchanges hide under them (needs sp)
//     loss_normalization: global_token_mean   # or microbatch_mean, sample_mean
//     microbatch: 0                   # samples, per pipeline; default 0: searched
//     execution_options: as-given     # or any, or names of options: those that the planner chooses
//     sharding_group: any             # data-parallel ranks that ZeRO shards over: any (searched), all, node, a number
//     freeze: [vision, vision.connector]  # modules and connectors that are not trained; "language" is the decoder
//     lora:                           # low-rank adapters beside matrices of the language model, which is frozen then
//       r: 16                         # rank; the keys are those of PEFT's LoraConfig
//       lora_alpha: 32                # default: r; what they give is multiplied by lora_alpha / r
//       base_quantization: none       # or nf4, nf4-double: matrices of the frozen layers are held in 4 bits (QLoRA)
//       target_modules: [q_proj]      # or k_proj, o_proj, gate_proj, up_proj, down_proj; default: all that there are
//     constraints: {vision: {tp: 2, gpus: [A100]}}  # of modules: tp, cp, ep and GPU types of their stages
//     allow: [tp, pipeline]           # only these techniques, or
//     forbid: [zero3, recompute]      # all but these; default: everything is allowed
//
// The explicit form of `architecture`, which write_model prints, has instead of layers, encoders and the keys of a
// block a list of block types and the order in which they follow each other:
//
//     types:
//       - name: dense                 # the keys of a block as above; hidden defaults to the architecture's, norm as
//       well
//         tokens: 8192                # default: the sequence length
//     blocks:
//       - type: dense
//         count: 32                   # default 1
//     modules:                        # in the order of the chain: encoders, one language model, generators
//       - name: vision
//         kind: encoder               # or language, generator
//         blocks: 24
//         tokens_in: 577              # these, tokens_out, patch_parameters (a part of extra_embedding_parameters),
//                                     # connector and trainable as of encoders above
//
// A Hugging Face config by itself trains at the shorter of max_position_embeddings and 4096 tokens, 256 samples a
// batch, in bf16 with Adam.
#include <fmt/format.h>

#include <filesystem>

#include "blueprint.hpp"
#include "graph.hpp"
#include "read_modules.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/schema.hpp"

namespace tangram::model {

namespace {

constexpr std::string_view kSchema = "tangram.model/1";

std::string name_of_file(const std::string& file) {
  const std::filesystem::path path(file);
  const std::string stem = path.stem().string();
  // Model folders are called after the model, and the file in them config.json.
  if (stem == "config" && path.has_parent_path()) return path.parent_path().filename().string();
  return stem.empty() || stem == "-" || stem == "<stdin>" ? "model" : stem;
}

std::string beside(const std::string& file, const std::string& relative) {
  const std::filesystem::path target(relative);
  if (target.is_absolute()) return relative;
  return (std::filesystem::path(file).parent_path() / target).lexically_normal().string();
}

// A file that cannot be read is a mistake of the line that names it.
Blueprint import_file(io::ObjectReader& reader, const std::string& from) {
  const std::string path = beside(reader.document().file, from);
  Expected<std::string> text = io::read_file(path);
  if (!text) {
    reader.error_at("from", "unreadable-file", fmt::format("{}: {}", path, text.error().front().message),
                    "the name is relative to this file");
    return {};
  }
  Expected<io::Document> document = io::parse_json(std::move(*text), path);
  if (!document) {
    reader.sink().insert(reader.sink().end(), document.error().begin(), document.error().end());
    return {};
  }
  return import_hf(*document, reader.sink());
}

Blueprint read_blueprint(io::ObjectReader& reader) {
  const std::string from = reader.string_or("from", "");
  if (from.empty()) {
    auto architecture = reader.object("architecture");
    return architecture ? read_architecture(*architecture) : Blueprint{};
  }
  if (reader.has("architecture")) {
    reader.ignore("architecture");
    reader.error_at("architecture", "conflicting-keys", "\"from\" and \"architecture\" exclude each other",
                    "the file named by \"from\" describes the whole architecture");
  }
  return import_file(reader, from);
}

/// Whether the value under this key, or one that it must suit, is not the file's.
bool is_overridden(std::string_view key, const JobOverrides& overrides) {
  if (key == "sequence_length") return overrides.sequence_length.has_value();
  return key == "microbatch" && (overrides.microbatch || overrides.global_batch);
}

/// What an override says is at no place of the file.
Diagnostic unplaced(const Conflict& conflict) {
  return problem(ErrorKind::kInput, "inconsistent-value", conflict.message, conflict.hint);
}

void report_conflicts(io::ObjectReader& model, std::optional<io::ObjectReader>& training, const Blueprint& blueprint,
                      const Job& job, const JobOverrides& overrides) {
  for (const Conflict& conflict : conflicts(blueprint, job)) {
    if (is_overridden(conflict.key, overrides)) {
      model.sink().push_back(unplaced(conflict));
      continue;
    }
    io::ObjectReader& at_fault = training && !conflict.key.empty() ? *training : model;
    at_fault.error_at(conflict.key.empty() ? "architecture" : conflict.key, "inconsistent-value", conflict.message,
                      conflict.hint);
  }
}

/// The same, of options.
void apply_overrides(Diagnostics& mistakes, Blueprint& blueprint, const JobOverrides& overrides) {
  const auto note = [&](const std::vector<Conflict>& conflicts) {
    std::ranges::transform(conflicts, std::back_inserter(mistakes), unplaced);
  };
  if (overrides.adapters) note(adapt(blueprint, *overrides.adapters));
  if (!overrides.freeze.empty()) note(freeze(blueprint, overrides.freeze));
  note(constrain(blueprint, overrides.constraints));
}

Expected<Model> read_document(const io::Document& document, const JobOverrides& overrides) {
  Diagnostics mistakes;
  io::ObjectReader reader(document, document.root, "", mistakes);
  if (!reader.valid()) return fail(std::move(mistakes));
  if (!reader.has("schema") && !reader.has("architecture") && !reader.has("training")) {
    reader.error_at("", "not-a-model", "this describes no model: neither \"schema\" nor \"model_type\" is there",
                    "expected tangram.model/1 or the config.json of a Hugging Face model");
    return fail(std::move(mistakes));
  }
  if (!io::has_schema(reader, kSchema)) return fail(std::move(mistakes));
  const std::string name = reader.string_or("name", name_of_file(document.file));
  Blueprint blueprint = read_blueprint(reader);
  if (mistakes.empty()) {
    read_data(reader, blueprint);
  } else {
    reader.ignore("data");
  }
  Job job;
  std::vector<std::string> frozen;
  std::vector<NamedConstraint> constrained;
  Adapters adapters;
  auto training = reader.object("training");
  if (training) {
    frozen = training->strings_if("freeze");
    constrained = read_constraints(*training);
    if (auto lora = training->object_if("lora")) adapters = read_adapters(*lora);
    job = read_job(*training, overrides);
  }
  reader.finish();
  if (mistakes.empty()) report(*training, adapt(blueprint, adapters));
  if (mistakes.empty()) report(*training, freeze(blueprint, frozen));
  if (mistakes.empty()) report(*training, constrain(blueprint, constrained));
  if (mistakes.empty()) apply_overrides(mistakes, blueprint, overrides);
  if (mistakes.empty()) report_conflicts(reader, training, blueprint, job, overrides);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  blueprint.frame.name = name;
  std::string assumed = fmt::format("{}", fmt::join(assumptions(blueprint), "; "));
  Model model = assemble(std::move(blueprint), std::move(job));
  model.assumed = std::move(assumed);
  return model;
}

/// A Hugging Face config says nothing of the job: what was taken, and how to say otherwise.
std::string assumed_job(const Job& job, const JobOverrides& overrides) {
  std::vector<std::string> taken;
  std::vector<std::string> options;
  if (!overrides.global_batch) {
    taken.push_back(fmt::format("a batch of {} samples", job.global_batch));
    options.emplace_back("--global-batch");
  }
  if (!overrides.sequence_length) {
    taken.push_back(fmt::format("samples of {} tokens", job.sequence_length));
    options.emplace_back("--seq-len");
  }
  if (taken.empty()) return "";
  return fmt::format("the model file says nothing of the job: {} {} taken; {} {} otherwise", fmt::join(taken, " and "),
                     overrides.sequence_length ? "is" : "are", fmt::join(options, " and "),
                     options.size() > 1 ? "say" : "says");
}

Expected<Model> read_hf_document(const io::Document& document, const JobOverrides& overrides) {
  Diagnostics mistakes;
  Blueprint blueprint = import_hf(document, mistakes);
  if (mistakes.empty()) apply_overrides(mistakes, blueprint, overrides);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  Job job = default_job(blueprint, overrides);
  io::ObjectReader reader(document, document.root, "", mistakes);
  std::optional<io::ObjectReader> no_training;
  report_conflicts(reader, no_training, blueprint, job, overrides);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  blueprint.frame.name = name_of_file(document.file);
  std::vector<std::string> taken = assumptions(blueprint);
  if (std::string of_job = assumed_job(job, overrides); !of_job.empty()) taken.insert(taken.begin(), std::move(of_job));
  std::string assumed = fmt::format("{}", fmt::join(taken, "; "));
  Model model = assemble(std::move(blueprint), std::move(job));
  model.assumed = std::move(assumed);
  return model;
}

bool looks_like_hf(const io::Node& root) {
  return root.find("schema") == nullptr &&
         (root.find("model_type") != nullptr || root.find("architectures") != nullptr);
}

Expected<void> check_override(std::string_view what, std::int64_t value, std::int64_t min) {
  if (value >= min && value <= kTokens.max) return {};
  return fail(problem(ErrorKind::kUsage, "out-of-range",
                      fmt::format("{} must be between {} and {}, not {}", what, min, kTokens.max, value)));
}

Expected<void> check_overrides(const JobOverrides& overrides) {
  if (auto ok = check_override("the sequence length", overrides.sequence_length.value_or(1), 1); !ok) return ok;
  if (auto ok = check_override("the global batch", overrides.global_batch.value_or(1), 1); !ok) return ok;
  return check_override("the microbatch", overrides.microbatch.value_or(0), 0);
}

}  // namespace

Expected<Model> read_model(std::string text, std::string file, const JobOverrides& overrides) {
  if (auto valid = check_overrides(overrides); !valid) return fail(std::move(valid.error()));
  Expected<io::Document> document = io::parse(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));
  return read_document(*document, overrides);
}

Expected<Model> read_hf_config(std::string text, std::string file, const JobOverrides& overrides) {
  if (auto valid = check_overrides(overrides); !valid) return fail(std::move(valid.error()));
  Expected<io::Document> document = io::parse_json(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));
  return read_hf_document(*document, overrides);
}

Expected<Model> read_any_model(std::string text, std::string file, const JobOverrides& overrides) {
  if (auto valid = check_overrides(overrides); !valid) return fail(std::move(valid.error()));
  Expected<io::Document> document = io::parse(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));
  return looks_like_hf(document->root) ? read_hf_document(*document, overrides) : read_document(*document, overrides);
}

}  // namespace tangram::model
