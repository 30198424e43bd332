#include "megatron_job.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "execution_arguments.hpp"
#include "layout.hpp"
#include "limits.hpp"
#include "readers.hpp"
#include "text.hpp"

namespace tangram::importing {

namespace {

std::int64_t degree(ArgumentMap& arguments, const std::string& name, std::int64_t fallback) {
  const std::int64_t value = arguments.count_or(name, fallback);
  if (value <= kMostDegree) return value;
  arguments.error_at(name, "degree-too-large", fmt::format("--{} {} is more than any cluster has", name, value));
  return fallback;
}

cost::Degrees common_degrees(ArgumentMap& arguments, std::int64_t tp) {
  cost::Degrees common;
  common.cp = static_cast<int>(degree(arguments, "context-parallel-size", 1));
  common.ep = static_cast<int>(degree(arguments, "expert-model-parallel-size", 1));
  common.etp = static_cast<int>(degree(arguments, "expert-tensor-parallel-size", tp));  // arguments.py: tp by default
  common.sequence_parallel = arguments.has("sequence-parallel");
  return common;
}

/// Copies of the pipeline, and groups of a stage's replicas in each, that shard their optimizer each for itself.
/// Without a rank map they are all taken for copies.
struct Instances {
  std::int64_t pipelines = 1;
  std::int64_t groups = 1;
};

Instances read_instances(ArgumentMap& arguments, const SortedFiles& files) {
  const std::string name = "num-distributed-optimizer-instances";
  const std::int64_t all = degree(arguments, name, 1);
  if (files.pipelines <= 0) return {all, 1};
  if (all % files.pipelines == 0) return {files.pipelines, all / files.pipelines};
  if (all > 1) {
    arguments.error_at(
        name, "inconsistent-value",
        fmt::format("{} instances cannot be divided among the {} pipelines of the rank map", all, files.pipelines),
        "give the rank map of this job");
  }
  return {files.pipelines, 1};
}

}  // namespace

std::int64_t read_batch(ArgumentMap& arguments, Job& job) {
  job.overrides.sequence_length = arguments.count("seq-length");
  job.overrides.global_batch = arguments.count("global-batch-size");
  job.batch = arguments.place_of("global-batch-size");
  return arguments.count("micro-batch-size");
}

std::vector<ModelArgument> model_words(const ArgumentMap& arguments) {
  std::vector<ModelArgument> words;
  for (const auto& [name, argument] : arguments.all()) words.push_back({name, argument.value, argument.place});
  return words;
}

int read_zero(ArgumentMap& arguments) {
  if (arguments.has("use-torch-fsdp2")) return 3;
  if (arguments.has("use-megatron-fsdp")) {
    const std::string name = "data-parallel-sharding-strategy";
    const std::string strategy = arguments.text_or(name, "no_shard");
    const std::vector<std::string> known{"no_shard", "optim", "optim_grads", "optim_grads_params"};
    const auto found = std::ranges::find(known, strategy);
    if (found != known.end()) return static_cast<int>(found - known.begin());
    arguments.error_at(name, "unknown-value", fmt::format("there is no sharding strategy \"{}\"", strategy),
                       fmt::format("strategies: {}", fmt::join(known, ", ")));
  }
  return arguments.has("use-distributed-optimizer") ? 1 : 0;
}

std::string recompute_granularity(const ArgumentMap& arguments) {
  const bool old_switch = arguments.has("recompute-activations");
  return arguments.text_or("recompute-granularity", old_switch ? "selective" : "");
}

cost::MemoryPolicy read_policy(ArgumentMap& arguments, std::int64_t layers) {
  cost::MemoryPolicy policy;
  policy.zero = read_zero(arguments);
  const std::string granularity = recompute_granularity(arguments);
  if (granularity == "selective") {
    policy.recompute = cost::RecomputeMode::kSelective;
  } else if (granularity == "full") {
    policy.recompute = cost::RecomputeMode::kFull;
    // "block" recomputes the first layers of a stage, "uniform" all of them, so many at once.
    const bool block = arguments.text_or("recompute-method", "uniform") == "block";
    const std::int64_t counted = block ? arguments.count("recompute-num-layers") : layers;
    policy.recompute_layers = static_cast<int>(std::min(counted, layers));
  } else if (!granularity.empty()) {
    arguments.error_at("recompute-granularity", "unknown-value",
                       fmt::format("there is no recompute granularity \"{}\"", granularity), "full or selective");
  }
  return policy;
}

Replica replica_of(std::int64_t tp, std::int64_t cp, std::int64_t samples) {
  return {static_cast<int>(tp), samples, std::vector<GpuRequest>(static_cast<std::size_t>(tp * cp))};
}

/// [stage][chunk] of layers in the order of the chain.
std::vector<std::vector<JobLayers>> chunks_of_stages(const std::vector<std::int64_t>& layers, std::int64_t stages) {
  std::vector<std::vector<JobLayers>> chunks(static_cast<std::size_t>(stages));
  std::int64_t first = 0;
  for (std::size_t place = 0; place < layers.size(); ++place) {
    chunks[place % chunks.size()].push_back({first, first + layers[place]});
    first += layers[place];
  }
  return chunks;
}

std::int64_t layers_of(const std::vector<JobLayers>& chunks) {
  std::int64_t layers = 0;
  for (const JobLayers& chunk : chunks) layers += chunk.last - chunk.first;
  return layers;
}

Job read_megatron_job(ArgumentMap& arguments, SortedFiles files) {
  Job job;
  job.runtime = runtime::Target::kMegatron;
  const std::int64_t samples = read_batch(arguments, job);
  const std::int64_t tp = degree(arguments, "tensor-model-parallel-size", 1);
  const std::int64_t stages = degree(arguments, "pipeline-model-parallel-size", 1);
  cost::Degrees common = common_degrees(arguments, tp);
  const auto [pipelines, groups] = read_instances(arguments, files);
  common.dp_replicate = read_zero(arguments) > 0 ? static_cast<int>(groups) : 1;
  const auto layers = layers_per_chunk(arguments, stages);
  const std::int64_t group = microbatch_group(arguments, stages);
  if (arguments.has("use-tp-pp-dp-mapping")) {
    arguments.error_at("use-tp-pp-dp-mapping", "rank-order", "ranks in the order tp-cp-ep-pp-dp are not read",
                       "give the arguments without it, with a rank map");
  }
  if (tp * common.cp * stages * pipelines > kMostGpus) {
    arguments.error_at("tensor-model-parallel-size", "too-many-gpus", "the degrees ask for more than 1,000,000 GPUs");
  }
  if (!arguments.sink().empty()) return job;
  const std::string shape = arguments.has(kLayout) ? kLayout : "num-layers";
  JobPipeline pipeline;
  if (std::ssize(layers) > stages) pipeline.group = group;
  for (const std::vector<JobLayers>& chunks : chunks_of_stages(layers, stages)) {
    JobStage stage{chunks.front().first,
                   chunks.back().last,
                   common,
                   read_policy(arguments, layers_of(chunks)),
                   {replica_of(tp, common.cp, samples)},
                   arguments.place_of(shape)};
    if (chunks.size() > 1) stage.chunks = chunks;
    pipeline.stages.push_back(std::move(stage));
  }
  job.pipelines.assign(static_cast<std::size_t>(pipelines), pipeline);
  job.fill = Fill::kSamples;
  job.takes_all = true;
  read_execution(arguments, job);
  job.model = model_words(arguments);
  if (files.ranks.empty()) job.notes.emplace_back(kRanksUnknown);
  if (pipeline.group > 0 && arguments.has(kNoOverlap)) {
    job.notes.emplace_back("--no-overlap-p2p-communication: gradients are taken to be sent beside passes all the same");
  }
  job.ranks = std::move(files.ranks);
  return job;
}

Job read_megatron(SortedFiles files, Diagnostics& sink) {
  if (files.job.empty()) {
    sink.push_back(
        at({}, "no-arguments", "no file has arguments of Megatron-LM", "give the script that starts the job"));
    return {};
  }
  ArgumentMap arguments(place_of(*files.job.front()), sink);
  for (const SourceFile* file : files.job) read_arguments(*file, arguments);
  return read_megatron_job(arguments, std::move(files));
}

}  // namespace tangram::importing
