// A job in Megatron-LM's arguments. Goes in: arguments of a script or of a YAML file. Comes out: the job of stock
// Megatron-LM, and the pieces that FlagScale has in common with it.
#pragma once

#include "arguments.hpp"
#include "rank_files.hpp"

namespace tangram::importing {

/// Samples of one rank's microbatch; sequence length and batch go into the job.
[[nodiscard]] std::int64_t read_batch(ArgumentMap& arguments, Job& job);

/// The arguments that describe the model.
[[nodiscard]] std::vector<ModelArgument> model_words(const ArgumentMap& arguments);

/// ZeRO stage of --use-distributed-optimizer and the FSDP switches.
[[nodiscard]] int read_zero(ArgumentMap& arguments);

/// As --recompute-granularity or the older switch says it; "": nothing is recomputed.
[[nodiscard]] std::string recompute_granularity(const ArgumentMap& arguments);

/// What is recomputed of a stage with so many layers.
[[nodiscard]] cost::MemoryPolicy read_policy(ArgumentMap& arguments, std::int64_t layers);

/// tp x cp GPUs of any kind.
[[nodiscard]] Replica replica_of(std::int64_t tp, std::int64_t cp, std::int64_t samples);

/// A job of alike stages: stock Megatron-LM.
[[nodiscard]] Job read_megatron_job(ArgumentMap& arguments, SortedFiles files);

}  // namespace tangram::importing
