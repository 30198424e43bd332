// FlagScale's training YAML: Megatron-LM's arguments as keys, in sections; with `hetero`, a mesh of ranks for each run
// of stages (FlagScale 0.8, flagscale/train/arguments.py).
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "execution_arguments.hpp"
#include "limits.hpp"
#include "lists.hpp"
#include "megatron_job.hpp"
#include "readers.hpp"
#include "tangram/io/document.hpp"
#include "text.hpp"

namespace tangram::importing {

namespace {

constexpr std::size_t kMeshDegrees = 5;  // tp, cp, ep, dp, pp

bool are_words(const io::Node& list) {
  return !list.items.empty() &&
         std::ranges::all_of(list.items, [](const io::Node& item) { return item.kind == io::NodeKind::kString; });
}

/// Keys of all sections as arguments; what is false is not there, lists of numbers are left to those who know them.
void flatten(const io::Document& document, const io::Node& node, ArgumentMap& arguments) {
  for (const io::Member& member : node.members) {
    std::string name = member.key;
    std::ranges::replace(name, '_', '-');
    const Place place = place_of(document, member.value);
    switch (member.value.kind) {
      case io::NodeKind::kObject: flatten(document, member.value, arguments); break;
      case io::NodeKind::kBoolean:
        if (member.value.boolean) arguments.set(name, {"", place});
        break;
      case io::NodeKind::kInteger:
      case io::NodeKind::kNumber:
      case io::NodeKind::kString: arguments.set(name, {member.value.text, place}); break;
      case io::NodeKind::kArray:
        if (!are_words(member.value)) break;
        arguments.set(name, {member.value.items.front().text, place});
        for (const io::Node& word : member.value.items | std::views::drop(1)) arguments.add_value(name, word.text);
        break;
      case io::NodeKind::kNull: break;
    }
  }
}

struct Mesh {
  std::int64_t tp = 1, cp = 1, ep = 1, dp = 1, pp = 1;
};

class HeteroReader {
 public:
  HeteroReader(const io::Document& document, const io::Node& hetero, const io::Node* recompute, ArgumentMap& arguments)
      : lists_(document, arguments.sink()), hetero_(hetero), recompute_(recompute), arguments_(arguments) {}

  Job read(SortedFiles files) {
    Job job;
    job.runtime = runtime::Target::kFlagscale;
    const std::int64_t samples = read_batch(arguments_, job);
    read_meshes();
    const auto layers = numbers(hetero_.find("hetero_pipeline_layer_split"), "hetero_pipeline_layer_split");
    std::int64_t stages = 0;
    for (const Mesh& mesh : meshes_) stages += mesh.pp;
    if (good() && static_cast<std::int64_t>(layers.size()) != stages) {
      complain(*hetero_.find("hetero_pipeline_layer_split"), "wrong-length",
               fmt::format("{} numbers of layers for {} stages", layers.size(), stages),
               "one for each stage of each mesh");
    }
    if (!good()) return job;
    set_pipelines(job, std::max(1, files.pipelines), samples, layers);
    read_execution(arguments_, job);
    job.model = model_words(arguments_);
    if (files.ranks.empty()) job.notes.emplace_back(kRanksUnknown);
    job.ranks = std::move(files.ranks);
    return job;
  }

 private:
  [[nodiscard]] bool good() const { return arguments_.sink().empty(); }

  void complain(const io::Node& node, std::string code, std::string message, std::string hint = {}) {
    lists_.complain(node, std::move(code), std::move(message), std::move(hint));
  }

  /// A list of whole numbers; what is none is reported.
  std::vector<std::int64_t> numbers(const io::Node* list, const char* name, std::int64_t least = 1) {
    if (list == nullptr) complain(hetero_, "missing-list", fmt::format("{} has to be a list of numbers", name));
    return lists_.counts(list, name, {least, io::kCount.max});
  }

  void read_meshes() {
    const io::Node* list = hetero_.find("hetero_process_meshes");
    const auto degrees = numbers(list, "hetero_process_meshes");
    if (!good()) return;
    if (degrees.empty() || degrees.size() % kMeshDegrees != 0) {
      complain(*list, "wrong-length", fmt::format("{} numbers are not whole meshes", degrees.size()),
               "a mesh is five numbers: tp, cp, ep, dp, pp");
      return;
    }
    std::int64_t gpus = 0;
    for (std::size_t i = 0; i < degrees.size(); i += kMeshDegrees) {
      const bool sane = std::all_of(degrees.begin() + static_cast<std::ptrdiff_t>(i),
                                    degrees.begin() + static_cast<std::ptrdiff_t>(i + kMeshDegrees),
                                    [](std::int64_t degree) { return degree <= kMostDegree; });
      const Mesh mesh{degrees[i], degrees[i + 1], degrees[i + 2], degrees[i + 3], degrees[i + 4]};
      if (sane) gpus += mesh.tp * mesh.cp * mesh.dp * mesh.pp;
      if (!sane || gpus > kMostGpus) {
        complain(list->items[i], "too-many-gpus", "the meshes ask for more than 1,000,000 GPUs");
        return;
      }
      meshes_.push_back(mesh);
    }
  }

  /// Replicas of every stage: as many as the mesh has, shared out to the pipelines.
  void set_pipelines(Job& job, std::int64_t pipelines, std::int64_t samples, const std::vector<std::int64_t>& layers) {
    const io::Node& list = *hetero_.find("hetero_process_meshes");
    // A microbatch is as large as the first mesh makes it, and every mesh has to cut it evenly.
    const std::int64_t microbatch = samples * meshes_.front().dp;
    const std::int64_t batch = arguments_.count("global-batch-size");
    if (batch % microbatch != 0) {
      arguments_.error_at("global-batch-size", "batch-does-not-divide",
                          fmt::format("{} samples are not whole microbatches of {}", batch, microbatch));
      return;
    }
    JobPipeline pipeline;
    pipeline.microbatch = microbatch / pipelines;
    pipeline.microbatches = batch / microbatch;
    const auto widths = expert_widths();
    std::size_t stage = 0;
    std::int64_t first = 0;
    for (std::size_t m = 0; m < meshes_.size(); ++m) {
      const Mesh& mesh = meshes_[m];
      const Place place = lists_.place(list.items[m * kMeshDegrees]);
      if (microbatch % mesh.dp != 0 || mesh.dp % pipelines != 0) {
        arguments_.sink().push_back(at(place, "batch-does-not-divide",
                                       fmt::format("microbatches of {} samples cannot be split over dp {}{}",
                                                   microbatch, mesh.dp, pipelines > 1 ? " of all pipelines" : "")));
        return;
      }
      cost::Degrees common;
      common.cp = static_cast<int>(mesh.cp);
      common.ep = static_cast<int>(mesh.ep);
      common.etp =
          static_cast<int>(m < widths.size() ? widths[m] : arguments_.count_or("expert-tensor-parallel-size", mesh.tp));
      common.sequence_parallel = arguments_.has("sequence-parallel");
      for (std::int64_t s = 0; s < mesh.pp; ++s, ++stage) {
        const Replica replica = replica_of(mesh.tp, mesh.cp, microbatch / mesh.dp);
        pipeline.stages.push_back({first, first + layers[stage], common, policy_of(stage, layers[stage]),
                                   std::vector<Replica>(static_cast<std::size_t>(mesh.dp / pipelines), replica),
                                   place});
        first += layers[stage];
      }
    }
    job.pipelines.assign(static_cast<std::size_t>(pipelines), pipeline);
  }

  std::vector<std::int64_t> expert_widths() {
    const char* name = "expert_tensor_parallel_size_per_process_mesh";
    const io::Node* list = hetero_.find(name);
    return list == nullptr ? std::vector<std::int64_t>{} : numbers(list, name);
  }

  /// The value for a stage of a list of [stages, microbatches, value, microbatches, value, ...]; `fallback` without
  /// one.
  std::int64_t per_stage(const char* name, std::size_t stage, std::int64_t fallback) {
    const io::Node* list = recompute_ == nullptr ? nullptr : recompute_->find(name);
    if (list == nullptr) return fallback;
    std::size_t before = 0;
    for (const io::Node& entry : list->items) {
      const auto values = numbers(&entry, name, 0);
      if (!good()) return fallback;
      if (values.size() < 3 || values.size() % 2 == 0 || values[0] < 1) {
        complain(entry, "wrong-length", "an entry is [stages, microbatches, value, ...]");
        return fallback;
      }
      before += static_cast<std::size_t>(values[0]);
      if (stage >= before) continue;
      for (std::size_t i = 4; i < values.size(); i += 2) {
        if (values[i] == values[2]) continue;
        complain(entry, "microbatches-differ", "microbatches of a stage are recomputed differently",
                 "a stage of a launch plan treats all its microbatches alike");
        return fallback;
      }
      return values[2];
    }
    complain(*list, "wrong-length", fmt::format("stage {} has no entry", stage));
    return fallback;
  }

  cost::MemoryPolicy policy_of(std::size_t stage, std::int64_t layers) {
    cost::MemoryPolicy policy = read_policy(arguments_, layers);
    const char* granularity = "recompute_granularity_per_stage_micro_batch";
    if (recompute_ == nullptr || recompute_->find(granularity) == nullptr) return policy;
    const bool recomputed = per_stage(granularity, stage, 0) != 0;
    const bool block = per_stage("recompute_method_per_stage_micro_batch", stage, 1) != 0;
    const std::int64_t counted = per_stage("recompute_num_layers_per_stage_micro_batch", stage, layers);
    policy.recompute = recomputed ? cost::RecomputeMode::kFull : cost::RecomputeMode::kNone;
    policy.recompute_layers = recomputed ? static_cast<int>(block ? std::min(counted, layers) : layers) : 0;
    return policy;
  }

  Lists lists_;
  const io::Node& hetero_;
  const io::Node* recompute_;
  ArgumentMap& arguments_;
  std::vector<Mesh> meshes_;
};

bool is_true(const io::Node& hetero, const char* key) {
  const io::Node* node = hetero.find(key);
  return node != nullptr && node->kind == io::NodeKind::kBoolean && node->boolean;
}

const io::Node* member(const io::Node* node, const char* key) { return node == nullptr ? nullptr : node->find(key); }

}  // namespace

Job read_flagscale(SortedFiles files, Diagnostics& sink) {
  for (const SourceFile* file : files.job) {
    const auto document = io::parse_yaml(file->text, file->path);
    if (!document) {
      sink.insert(sink.end(), document.error().begin(), document.error().end());
      continue;
    }
    const io::Node* system = document->root.find("system");
    if (system == nullptr) continue;  // the file of the experiment, which names this one
    ArgumentMap arguments(place_of(*file), sink);
    flatten(*document, document->root, arguments);
    const io::Node* hetero = system->find("hetero");
    if (hetero == nullptr || !is_true(*hetero, "enable_hetero")) return read_megatron_job(arguments, std::move(files));
    return HeteroReader(*document, *hetero, member(system, "recompute"), arguments).read(std::move(files));
  }
  if (sink.empty()) {
    sink.push_back(at({}, "no-training-file", "no file has the section \"system\" of a FlagScale training",
                      "give conf/train/NAME.yaml, and the host file"));
  }
  return {};
}

}  // namespace tangram::importing
