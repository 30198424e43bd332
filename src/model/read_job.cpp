// The `training` section of tangram.model/1; its keys are described in read_model.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "blueprint.hpp"
#include "optimizer.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/io/named_choice.hpp"
#include "tangram/model/techniques.hpp"

namespace tangram::model {

namespace {

void apply_list(io::ObjectReader& reader, std::string_view key, bool allowed, Techniques& out) {
  for (const std::string& name : reader.strings_if(key)) {
    if (set_technique(out, name, allowed)) continue;
    report_item(reader, key, name, fmt::format("unknown technique \"{}\"", name), technique_hint(name));
  }
}

Techniques read_techniques(io::ObjectReader& reader) {
  Techniques out;
  const bool only = reader.has("allow");
  if (only && reader.has("forbid")) {
    reader.error_at("forbid", "conflicting-keys", "\"allow\" and \"forbid\" exclude each other",
                    "\"allow\" lists everything that may be used");
  }
  if (only) out = no_techniques();
  apply_list(reader, "allow", true, out);
  apply_list(reader, "forbid", false, out);
  return out;
}

std::int64_t batch_of_tokens(io::ObjectReader& reader, std::int64_t sequence_length) {
  const std::size_t before = reader.sink().size();
  const std::int64_t tokens = reader.integer("global_batch_tokens", io::integer_limit("global_batch_tokens"));
  if (reader.sink().size() != before || sequence_length <= 0) return 1;
  const std::int64_t samples = tokens / sequence_length;
  const std::string hint =
      samples == 0 ? fmt::format("one sample has {}", sequence_length)
                   : fmt::format("nearest: {} or {}", samples * sequence_length, (samples + 1) * sequence_length);
  if (!require_multiple(reader, "global_batch_tokens", tokens, "sequence_length", sequence_length, hint)) return 1;
  constexpr io::IntegerRange kSamples = io::integer_limit("global_batch_samples");
  if (samples > kSamples.max) {
    reader.error_at("global_batch_tokens", "out-of-range",
                    fmt::format("{} tokens are {} samples, at most {} are taken", tokens, samples, kSamples.max),
                    std::string(kSamples.why));
    return 1;
  }
  return samples;
}

std::int64_t read_batch(io::ObjectReader& reader, std::int64_t sequence_length) {
  const bool samples = reader.has("global_batch_samples");
  const bool tokens = reader.has("global_batch_tokens");
  if (samples && tokens) {
    reader.ignore("global_batch_samples");
    reader.ignore("global_batch_tokens");
    reader.error_at("global_batch_tokens", "conflicting-keys",
                    "\"global_batch_samples\" and \"global_batch_tokens\" exclude each other", "keep one of them");
    return 1;
  }
  return tokens ? batch_of_tokens(reader, sequence_length)
                : reader.integer("global_batch_samples", io::integer_limit("global_batch_samples"));
}

DType read_precision(io::ObjectReader& reader) {
  return reader.choice_or<DType>("precision", DType::kBf16, kPrecisions);
}

/// `known`: words beside those of `names`.
template <class Names>
std::string module_hint(std::string_view name, const Names& names, std::vector<std::string> known) {
  for (const auto& [module, _] : names) known.emplace_back(module);
  if (const auto near = closest(name, known)) return fmt::format("did you mean \"{}\"?", *near);
  return fmt::format("known modules: {}", fmt::join(known, ", "));
}

/// `words` of a key, which are called as `names` has them; `others`: what the key may say instead.
template <class Module, std::size_t N>
EnumSet<Module> modules_called(io::ObjectReader& reader, std::string_view key, const std::vector<std::string>& words,
                               const std::array<std::pair<std::string_view, Module>, N>& names,
                               const std::vector<std::string>& others = {}) {
  EnumSet<Module> out;
  for (const std::string& name : words) {
    const auto found = std::ranges::find(names, name, [](const auto& row) { return row.first; });
    if (found != names.end()) {
      out.add(found->second);
      continue;
    }
    report_item(reader, key, name, fmt::format("unknown module \"{}\"", name), module_hint(name, names, others));
  }
  return out;
}

/// A list of modules.
template <class Module, std::size_t N>
EnumSet<Module> read_modules(io::ObjectReader& reader, std::string_view key,
                             const std::array<std::pair<std::string_view, Module>, N>& names) {
  return modules_called(reader, key, reader.strings_if(key), names);
}

/// The name of one of several sets, or a list of modules.
template <class Module, std::size_t N, std::size_t M>
EnumSet<Module> read_named_modules(io::ObjectReader& reader, std::string_view key,
                                   const std::array<std::pair<std::string_view, EnumSet<Module>>, M>& named,
                                   const std::array<std::pair<std::string_view, Module>, N>& modules) {
  const std::vector<std::string> words = reader.strings_if(key);
  std::vector<std::string> names;
  for (const auto& [name, set] : named) {
    if (words.size() == 1 && words.front() == name) return set;
    names.emplace_back(name);
  }
  return modules_called(reader, key, words, modules, names);
}

std::vector<LengthCount> read_lengths(io::ObjectReader& packing) {
  std::vector<LengthCount> lengths;
  for (io::ObjectReader& length : packing.objects("lengths")) {
    const std::int64_t tokens = length.integer("tokens", io::integer_limit("tokens"));
    lengths.push_back({tokens, length.integer("sequences", io::integer_limit("sequences"))});
    length.finish();
  }
  return lengths;
}

Packing read_packing(io::ObjectReader& training) {
  Packing packing;
  auto reader = training.object_if("packing");
  if (!reader) return packing;
  if (reader->has("lengths")) {
    packing.lengths = read_lengths(*reader);
    for (const std::string_view key : {"mean_length", "p95_length"}) {
      if (!reader->has(key)) continue;
      reader->ignore(key);
      reader->error_at(key, "conflicting-keys", fmt::format("\"lengths\" and \"{}\" exclude each other", key),
                       "the lengths say how they are spread");
    }
  } else {
    packing.mean = reader->number("mean_length", io::number_limit("mean_length"));
    packing.p95 = reader->number_or("p95_length", 0, io::number_limit("p95_length"));
    if (packing.p95 > 0 && packing.p95 < packing.mean) {
      reader->error_at("p95_length", "inconsistent-value",
                       fmt::format("\"p95_length\" ({}) is less than \"mean_length\" ({})", packing.p95, packing.mean));
    }
  }
  reader->finish();
  return packing;
}

std::string read_loss_normalization(io::ObjectReader& reader, const std::string& fallback) {
  return std::string(reader.choice_or<std::string_view>("loss_normalization", fallback,
                                                        {{"global_token_mean", "global_token_mean"},
                                                         {"microbatch_mean", "microbatch_mean"},
                                                         {"sample_mean", "sample_mean"}}));
}

bool read_transpose_cache(io::ObjectReader& reader, const Job& job) {
  const bool cached = reader.boolean_or("transpose_cache", job.transpose_cache);
  if (cached || has_transposable_weights(job)) return cached;
  reader.error_at("transpose_cache", "conflicting-keys",
                  "\"transpose_cache\" is false, but copies with scales of their own cannot be transposed",
                  "leave it out, or take \"precision\" fp8 with \"fp8_recipe\" delayed, tensorwise or blockwise");
  return true;
}

bool read_narrow_gates(io::ObjectReader& reader, const Job& job) {
  const bool narrow = reader.boolean_or("narrow_gates", job.narrow_gates);
  if (!narrow || bytes_of(job.precision) <= 2) return narrow;
  reader.error_at("narrow_gates", "conflicting-keys",
                  fmt::format("\"narrow_gates\" is true, but activations are {}", to_string(job.precision)),
                  "leave it out, or take a \"precision\" of at most 16 bits");
  return false;
}

WideLayers read_wide_layers(io::ObjectReader& reader) {
  WideLayers wide;
  auto layers = reader.object_if("wide_layers");
  if (!layers) return wide;
  wide.first = static_cast<int>(layers->integer_or("first", 0, io::integer_limit("first")));
  wide.last = static_cast<int>(layers->integer_or("last", 0, io::integer_limit("last")));
  layers->finish();
  return wide;
}

/// A word, or how many ranks.
ShardingGroup read_sharding_group(io::ObjectReader& reader) {
  using Kind = ShardingGroup::Kind;
  const io::Node* node = reader.raw("sharding_group");
  if (node != nullptr && node->kind == io::NodeKind::kInteger) {
    const auto ranks = reader.integer_or("sharding_group", 1, io::integer_limit("sharding_group"));
    return {Kind::kRanks, static_cast<int>(ranks)};
  }
  return {reader.choice_or<Kind>("sharding_group", Kind::kAny,
                                 {{"any", Kind::kAny}, {"all", Kind::kAll}, {"node", Kind::kNode}}),
          0};
}

/// Options that the planner may choose: what `training` sets stays as it is.
OptionSet read_free_options(io::ObjectReader& reader, const WantedOptions& wanted) {
  OptionSet free = wanted.all();
  for (const OptionName& option : option_names()) {
    if (!reader.has(option.name)) continue;
    free = free.without(option.option);
    if (!wanted.named.has(option.option)) continue;
    reader.error_at(option.name, "conflicting-keys",
                    fmt::format("\"{}\" is set, and to be chosen by the planner", option.name),
                    "leave it out here, or out of the options that are to be chosen");
  }
  return free;
}

WantedOptions read_wanted_options(io::ObjectReader& reader) {
  constexpr std::string_view kKey = "execution_options";
  const std::vector<std::string> words = reader.strings_if(kKey);
  for (const std::string& word : words) {
    if (wanted_options({&word, 1})) continue;
    report_item(reader, kKey, word, fmt::format("unknown option \"{}\"", word), option_hint(word));
  }
  return wanted_options(words).value_or(WantedOptions{});
}

/// As trainers and other planners call the same.
void name_job_aliases(io::ObjectReader& reader) {
  reader.also_called("sequence_length", {"seq_len", "seq_length", "seqlen", "seq", "max_seq_len", "max_seq_length",
                                         "max_length", "context_length", "block_size", "n_ctx"});
  reader.also_called("global_batch_samples", {"global_batch_size", "train_batch_size", "batch_size", "batch", "gbs"});
  reader.also_called("microbatch", {"micro_batch", "micro_batch_size", "microbatch_size", "microbatch_samples", "mbs",
                                    "train_micro_batch_size_per_gpu", "per_device_train_batch_size"});
  reader.also_called("precision", {"dtype", "torch_dtype", "mixed_precision"});
  reader.also_called("flash_attention", {"flash_attn", "use_flash_attn"});
  reader.also_called("gradient_bytes_per_parameter", {"grad_bytes", "gradient_bytes", "grad_dtype"});
  reader.also_called("sharding_group", {"dp_shard", "data_parallel_shard_degree", "hsdp", "fsdp_size", "hybrid_shard",
                                        "zero_hpz_partition_size"});
  reader.also_called("forbid", {"disallow", "exclude", "disable", "forbidden"});
}

}  // namespace

std::string_view to_string(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kDefault: return "default";
    case AttentionKernel::kFlash2: return "flash-2";
    case AttentionKernel::kNative: return "native";
  }
  return "";
}

std::string_view to_string(ExpertDispatch dispatch) {
  switch (dispatch) {
    case ExpertDispatch::kAllToAll: break;
    case ExpertDispatch::kDeepEp: return "deepep";
    case ExpertDispatch::kHybridEp: return "hybridep";
  }
  return "all-to-all";
}

std::string_view to_string(ContextExchange exchange) {
  switch (exchange) {
    case ContextExchange::kRing: break;
    case ContextExchange::kAllGather: return "all-gather";
    case ContextExchange::kAllToAll: return "all-to-all";
  }
  return "ring";
}

std::string_view to_string(Fp8Recipe recipe) {
  switch (recipe) {
    case Fp8Recipe::kDelayed: break;
    case Fp8Recipe::kTensorwise: return "tensorwise";
    case Fp8Recipe::kBlockwise: return "blockwise";
    case Fp8Recipe::kMxfp8: return "mxfp8";
  }
  return "delayed";
}

std::string_view to_string(FusedLoss loss) {
  switch (loss) {
    case FusedLoss::kNone: break;
    case FusedLoss::kNative: return "native";
    case FusedLoss::kTransformerEngine: return "te";
  }
  return "none";
}

bool has_transposable_weights(const Job& job) {
  return job.precision == DType::kFp8 && job.fp8_recipe != Fp8Recipe::kMxfp8;
}

void set_precision(Job& job, DType precision) {
  job.precision = precision;
  // Matrix products in fp8 and fp4 keep 2-byte parameters and activations; main gradients are fp32 beside bf16
  // parameters.
  job.parameter_bytes = std::max<std::int64_t>(2, bytes_of(job.precision));
  job.gradient_bytes = job.precision == DType::kFp16 ? 2 : 4;
  job.optimizer.state_bytes_per_parameter = usual_state_bytes(job).value_or(0);
}

Job read_job(io::ObjectReader& reader, const JobOverrides& overrides) {
  Job job;
  name_job_aliases(reader);
  job.sequence_length = reader.integer("sequence_length", kTokens);
  if (overrides.sequence_length) job.sequence_length = *overrides.sequence_length;
  if (overrides.global_batch) {
    reader.ignore("global_batch_samples");
    reader.ignore("global_batch_tokens");
    job.global_batch = *overrides.global_batch;
  } else {
    job.global_batch = read_batch(reader, job.sequence_length);
  }
  job.microbatch = reader.integer_or("microbatch", 0, io::integer_limit("microbatch"));
  if (overrides.microbatch) job.microbatch = *overrides.microbatch;
  set_precision(job, read_precision(reader));
  job.fp8_recipe = io::read_named(reader, "fp8_recipe", Fp8Recipe::kDelayed, Fp8Recipe::kTensorwise,
                                  Fp8Recipe::kBlockwise, Fp8Recipe::kMxfp8);
  job.narrow_parameters = reader.boolean_or("narrow_parameters", job.narrow_parameters);
  job.transpose_cache = read_transpose_cache(reader, job);
  job.narrow_inputs = reader.boolean_or("narrow_inputs", job.narrow_inputs);
  job.narrow_gates = read_narrow_gates(reader, job);
  job.wide_experts = reader.boolean_or("wide_experts", job.wide_experts);
  job.wide_layers = read_wide_layers(reader);
  job.gradient_bytes = reader.integer_or("gradient_bytes_per_parameter", job.gradient_bytes,
                                         io::integer_limit("gradient_bytes_per_parameter"));
  read_optimizer(reader, job);
  job.flash_attention = reader.boolean_or("flash_attention", job.flash_attention);
  job.attention_kernel = io::read_named(reader, "attention_kernel", AttentionKernel::kDefault, AttentionKernel::kFlash2,
                                        AttentionKernel::kNative);
  job.fused_kernels = reader.boolean_or("fused_kernels", job.fused_kernels);
  job.eager_operators = read_named_modules(reader, "eager_operators", kNamedEagerOperators, kEagerOperatorNames);
  job.in_place_loss = reader.boolean_or("in_place_loss", job.in_place_loss);
  job.fused_loss =
      io::read_named(reader, "fused_loss", FusedLoss::kNone, FusedLoss::kNative, FusedLoss::kTransformerEngine);
  job.cuda_graphs = read_named_modules(reader, "cuda_graphs", kNamedGraphs, kGraphModuleNames);
  job.grouped_gemm = reader.boolean_or("grouped_gemm", job.grouped_gemm);
  job.expert_dispatch = io::read_named(reader, "expert_dispatch", ExpertDispatch::kAllToAll, ExpertDispatch::kDeepEp,
                                       ExpertDispatch::kHybridEp);
  job.context_exchange = io::read_named(reader, "context_exchange", ContextExchange::kRing, ContextExchange::kAllGather,
                                        ContextExchange::kAllToAll);
  job.overlap_experts = reader.boolean_or("overlap_expert_communication", job.overlap_experts);
  job.routing_imbalance =
      reader.number_or("routing_imbalance", job.routing_imbalance, io::number_limit("routing_imbalance"));
  job.recompute_modules = read_modules(reader, "recompute_modules", kRecomputeModuleNames);
  job.offload_modules = read_modules(reader, "offload_modules", kOffloadModuleNames);
  job.packing = read_packing(reader);
  job.dropout = reader.boolean_or("dropout", job.dropout);
  job.overlap_gather = reader.boolean_or("overlap_parameter_gather", job.overlap_gather);
  job.gradient_bucket = reader.integer_or("gradient_bucket", job.gradient_bucket, io::integer_limit("gradient_bucket"));
  job.overlap_tp = reader.boolean_or("overlap_tp_communication", job.overlap_tp);
  job.fused_accumulation = reader.boolean_or("fused_gradient_accumulation", job.fused_accumulation);
  job.blocking_launches = reader.boolean_or("blocking_launches", job.blocking_launches);
  job.loss_normalization = read_loss_normalization(reader, job.loss_normalization);
  job.sharding_group = read_sharding_group(reader);
  const WantedOptions wanted = read_wanted_options(reader);
  job.free_options = read_free_options(reader, overrides.options.value_or(wanted));
  job.allow = read_techniques(reader);
  reader.finish();
  return job;
}

Job default_job(const Blueprint& blueprint, const JobOverrides& overrides) {
  constexpr std::int64_t kLongest = 4096;
  Job job;
  const std::int64_t limit = blueprint.max_positions > 0 ? blueprint.max_positions : 2048;
  job.sequence_length = overrides.sequence_length.value_or(std::min(limit, kLongest));
  job.global_batch = overrides.global_batch.value_or(256);
  job.microbatch = overrides.microbatch.value_or(0);
  set_precision(job, job.precision);
  if (overrides.options) job.free_options = overrides.options->all();
  return job;
}

}  // namespace tangram::model
