// The numbers that input files may hold. One table: what a key's value counts, how small and how large it may be, and
// why. Readers take their ranges from it; configs/schemas says the same (a test compares them). Above and below a value
// is a slip of the unit, not hardware or a job, and arithmetic on it would say nothing.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "tangram/io/reader.hpp"

namespace tangram::io {

struct Limit {
  std::string_view key;   ///< as files have it; peak_tflops stands for its members
  std::string_view unit;  ///< empty: a count
  double least = 0;       ///< whole numbers are exact far beyond any limit
  double most = 0;
  std::string_view why;  ///< the hint of an error
  bool or_zero = false;  ///< 0 is taken as well: there is none
};

inline constexpr std::string_view kRates = "from a MB/s to a PB/s";
inline constexpr std::string_view kShares = "a share of the datasheet's rate: kernels reach 0.1 to 0.95 of it";
inline constexpr std::string_view kExtraKeys = "what a tile of queries costs beyond its keys: some hundreds";
inline constexpr std::string_view kHeadWidths = "heads of attention are 32 to 512 wide";
inline constexpr std::string_view kOverheads = "kernels start within microseconds";
inline constexpr std::string_view kNoModel = "no model that is known comes near";

// clang-format off
inline constexpr Limit kLimits[] = {
    // Fleets and GPU types.
    {"memory_gib", "GiB", 1.0 / 1024, 1e5, "from a MiB to a hundred TiB"},
    {"reserved_gib", "GiB", 0, 1e5, "less than the memory"},
    {"usable_memory_gib", "GiB", 1.0 / 1024, 1e5, "from a MiB to a hundred TiB"},
    {"memory_bandwidth_gb_s", "GB/s", 1e-3, 1e6, kRates},
    {"peak_tflops", "TFLOP/s", 0.01, 1e6, "0: the GPU cannot; the slowest GPUs have 0.03", true},
    {"gemm_tflops", "TFLOP/s", 0.01, 1e6, "the slowest GPUs have 0.03"},
    {"bandwidth_gb_s", "GB/s", 1e-3, 1e6, "from a MB/s to a PB/s, one direction"},
    {"link_bandwidth_gb_s", "GB/s", 1e-3, 1e6, "from a MB/s to a PB/s, one direction"},
    {"pair_gb_s", "GB/s", 1e-3, 1e6, "from a MB/s to a PB/s, one direction"},
    {"bandwidth_gbit_s", "Gbit/s", 1e-3, 1e6, "from a Mbit/s to a Pbit/s, one direction"},
    {"latency_us", "us", 0, 1e7, "at most ten seconds"},
    {"ramp_us", "us", 0, 1e6, "at most a second; 0: short messages are as fast as long ones"},
    {"reach", "", 2, 1024, "GPUs that are linked directly"},
    {"cards", "", 1, 256, "network cards of a host"},
    {"clique", "", 1, 100'000, "GPUs that are linked directly"},
    {"multiprocessors", "", 0, 10'000, "0: not known"},
    {"gemm_efficiency", "", 1e-3, 1, kShares},
    {"fp8_efficiency", "", 1e-3, 1, kShares},
    {"fp4_efficiency", "", 1e-3, 1, kShares},
    {"attention_forward", "", 1e-3, 1, kShares},
    {"attention_backward", "", 1e-3, 1, kShares},
    {"forward", "", 1e-3, 1, kShares},
    {"backward", "", 1e-3, 1, kShares},
    {"forward_extra_keys", "", 0, 1e6, kExtraKeys},
    {"backward_extra_keys", "", 0, 1e6, kExtraKeys},
    {"head_dim_multiple", "", 1, 4096, "0: not padded; heads of attention are 32 to 512 wide", true},
    {"forward_extra_head_dim", "", 0, 4096, kHeadWidths},
    {"backward_extra_head_dim", "", 0, 4096, kHeadWidths},
    {"forward_least_head_dim", "", 0, 4096, kHeadWidths},
    {"backward_least_head_dim", "", 0, 4096, kHeadWidths},
    {"widest_value_dim", "", 0, 4096, kHeadWidths},
    {"early_forward_extra_keys", "", 0, 1e6, kExtraKeys},
    {"early_backward_extra_keys", "", 0, 1e6, kExtraKeys},
    {"memory_efficiency", "", 1e-3, 1, kShares},
    {"kernel_launch_us", "us", 0, 1e5, kOverheads},
    {"host_issue_us", "us", 0, 1e5, kOverheads},
    {"unvectorized_gvalues_s", "", 1e-3, 1e6, "0: not known; an A100 reads 185 G values a second one by one", true},
    {"price_per_hour_usd", "USD", 1e-6, 1e7, "0: not known; from a millionth of a dollar to ten millions", true},
    {"hosts", "", 1, 100'000, "no fleet is larger"},
    {"gpus", "", 1, 1'024, "a node is one host: give each host a name of its own, as in \"n[1-2500]\""},
    // Models and jobs. Products of them stay far inside 64 bits.
    {"layers", "", 1, 10'000, kNoModel},
    {"first", "", 0, 10'000, kNoModel},
    {"last", "", 0, 10'000, kNoModel},
    {"heads", "", 1, 65'536, kNoModel},
    {"kv_heads", "", 1, 65'536, kNoModel},
    {"head_dim", "", 1, 65'536, kNoModel},
    {"hidden", "", 1, 1'000'000, kNoModel},
    {"ffn_hidden", "", 1, 4'000'000, kNoModel},
    {"norms_per_block", "", 0, 8, kNoModel},
    {"vocabulary", "", 1, 100'000'000, kNoModel},
    {"experts", "", 1, 65'536, kNoModel},
    {"experts_per_token", "", 1, 65'536, kNoModel},
    {"expert_groups", "", 1, 65'536, kNoModel},
    {"groups_per_token", "", 1, 65'536, kNoModel},
    {"expert_hidden", "", 1, 4'000'000, kNoModel},
    {"shared_hidden", "", 0, 4'000'000, kNoModel},
    {"routing_imbalance", "", 1, 1'000, "load of the busiest rank over the mean"},
    {"r", "", 1, 65'536, "adapters have ranks of 4 to 256"},
    {"lora_alpha", "", 1, 1'000'000, "some times the rank"},
    {"mean_length", "tokens", 1, 100'000'000, "no sequence is longer"},
    {"p95_length", "tokens", 1, 100'000'000, "no sequence is longer"},
    {"sequences", "", 1, 1e12, "no collection has more"},
    {"latent_hidden", "", 0, 1'000'000, kNoModel},
    {"groups", "", 1, 65'536, kNoModel},
    {"state", "", 1, 65'536, kNoModel},
    {"value_heads", "", 1, 65'536, kNoModel},
    {"value_head_dim", "", 1, 65'536, kNoModel},
    {"key_heads", "", 1, 65'536, kNoModel},
    {"key_head_dim", "", 1, 65'536, kNoModel},
    {"convolution", "tokens", 1, 1'024, kNoModel},
    {"chunk", "tokens", 1, 1'000'000, kNoModel},
    {"first_dense_layers", "", 0, 10'000, kNoModel},
    {"every", "", 1, 10'000, kNoModel},
    {"full_attention_every", "", 0, 10'000, kNoModel},
    {"sliding_window", "tokens", 0, 100'000'000, "no sample is longer; 0: all of it"},
    {"learned_positions", "tokens", 0, 100'000'000, "no sample is longer"},
    {"embedding_projection", "", 0, 1'000'000, kNoModel},
    {"q_lora_rank", "", 0, 1'000'000, kNoModel},
    {"kv_lora_rank", "", 1, 1'000'000, kNoModel},
    {"qk_nope_head_dim", "", 1, 65'536, kNoModel},
    {"qk_rope_head_dim", "", 1, 65'536, kNoModel},
    {"v_head_dim", "", 1, 65'536, kNoModel},
    {"extra_embedding_parameters", "", 0, 1e12, kNoModel},
    {"patch_parameters", "", 0, 1e12, kNoModel},
    {"projector_parameters", "", 0, 1e12, kNoModel},
    {"tokens_per_sample", "tokens", 1, 100'000'000, "no sample is longer"},
    {"tokens", "tokens", 1, 100'000'000, "no sample is longer"},
    {"tokens_in", "tokens", 1, 100'000'000, "no sample is longer"},
    {"tokens_out", "tokens", 1, 100'000'000, "no sample is longer"},
    {"widths", "", 1, 4'000'000, kNoModel},
    {"norm_width", "", 1, 4'000'000, kNoModel},
    {"queries", "", 1, 1'000'000, kNoModel},
    {"extra_parameters", "", 0, 1e12, kNoModel},
    {"into_layers", "", 0, 9'999, kNoModel},
    {"from_layers", "", 0, 9'999, kNoModel},
    {"mean", "items", 1e-6, 1e6, "no sample has more images"},
    {"p95", "items", 0, 1e6, "no sample has more images"},
    {"max", "items", 0, 1e6, "no sample has more images"},
    {"none", "", 0, 1, "a share of all samples"},
    {"sequence_length", "tokens", 1, 100'000'000, "no sample is longer"},
    {"global_batch_samples", "samples", 1, 1'000'000, "no job has larger batches; each microbatch is simulated"},
    {"global_batch_tokens", "tokens", 1, 1e12, "no batch is larger"},
    {"microbatch", "samples", 0, 1'000'000, "no batch is larger; 0: searched"},
    {"sharding_group", "ranks", 1, 65'536, "no job has more"},
    {"gradient_bucket", "parameters", 0, 1e12, "no model has more; 0: as Megatron-Core has it"},
    {"gradient_bytes_per_parameter", "bytes", 1, 8, "2: fp16 or bf16, 4: fp32"},
    {"state_bytes_per_parameter", "bytes", 0, 64, "Adam keeps 12 beside 16-bit parameters"},
    {"offload_fraction", "", 0, 1, "a share of the parameters"},
    // Profiles.
    {"ranks_per_node", "", 1, 65'536, "no host has more GPUs"},
    {"nodes", "", 1, 65'536, "no collective has more hosts"},
    {"sharing", "", 1, 65'536, "no network card has more users"},
    {"bytes", "bytes", 1, 1125899906842624.0, "a PiB is more than any message"},
    {"activation_bytes", "bytes", 1, 1125899906842624.0, "a PiB is more than any GPU holds"},
    {"time_us", "us", 1e-3, 1e12, "from a nanosecond to eleven days"},
    {"forward_ms", "ms", 1e-6, 1e9, "from a nanosecond to eleven days"},
    {"backward_ms", "ms", 1e-6, 1e9, "from a nanosecond to eleven days"},
    {"samples", "samples", 1, 1'000'000, "no microbatch is larger"},
    {"tp", "", 1, 65'536, "no job has more"},
    {"cp", "", 1, 65'536, "no job has more"},
    {"ep", "", 1, 65'536, "no job has more"},
    {"etp", "", 1, 65'536, "no job has more"},
    // Timings of runs.
    {"step", "steps", 0, 1e12, "no job takes more"},
    {"rank", "", 0, 1'048'575, "no job has more ranks"},
    // Options of the command line.
    {"skip", "steps", 0, 1e9, "steps that warm up"},
    {"global-batch", "samples", 1, 1'000'000, "no job has larger batches; each microbatch is simulated"},
    {"seq-len", "tokens", 1, 100'000'000, "no sample is longer"},
    {"jobs", "threads", 1, 4'096, "no machine has more cores"},
    {"top", "plans", 1, 100'000, "each is simulated"},
    {"pareto", "plans", 1, 10'000, "each limit is a search of its own"},
    {"time-budget", "labels", 1, 1e12, "a second makes about a million"},
    {"time-limit", "s", 1e-3, 604'800, "at most a week"},
    {"cache-limit", "MiB", 1, 1'073'741'824, "a PiB"},
    {"worker-cores", "", 1, 65'536, "no allocation has more"},
    {"max-pipelines", "", 1, 1'000'000, "no job has more"},
    {"budget", "USD", 1e-6, 1e12, "dollars an hour of all GPUs that are used"},
    {"min-throughput", "tokens/s", 1e-6, 1e15, "tokens a second of all GPUs that are used"},
    {"worker-wait", "s", 1e-3, 604'800, "at most a week"},
    // Measurements: whatever was printed, of any kind.
    {"measured", "", 1e-9, 1e18, "0: not printed; no time, rate or size is larger", true},
};
// clang-format on

/// The limit of a key; none where it is not in the table.
constexpr const Limit* find_limit(std::string_view key) {
  for (const Limit& limit : kLimits) {
    if (limit.key == key) return &limit;
  }
  return nullptr;
}

/// Asking for a limit that is not in the table does not compile.
consteval const Limit& limit_of(std::string_view key) {
  const Limit* limit = find_limit(key);
  if (limit == nullptr) throw std::logic_error("no limit of this key");
  return *limit;
}

consteval NumberRange number_limit(std::string_view key) {
  const Limit& limit = limit_of(key);
  return {limit.least, limit.most, false, limit.or_zero, limit.why};
}

consteval IntegerRange integer_limit(std::string_view key) {
  const Limit& limit = limit_of(key);
  return {static_cast<std::int64_t>(limit.least), static_cast<std::int64_t>(limit.most), limit.why};
}

}  // namespace tangram::io
