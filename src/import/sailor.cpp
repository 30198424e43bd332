// Sailor's plans (eth-easl/sailor): what its simulator reads (plan_config_*.json: layers and replicas of each stage,
// "mbs", "gbs"), and what its planner writes (the same under "plan", without the batch). Layers are numbered with the
// embedding as 0 and the head as the last.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "limits.hpp"
#include "lists.hpp"
#include "readers.hpp"
#include "tangram/base/at.hpp"

namespace tangram::importing {

namespace {

/// The planner's results and the simulator's inputs call the same thing differently.
const io::Node* either(Lists& lists, const io::Node& object, const char* one, const char* other) {
  const io::Node* found = object.find(other);
  return found != nullptr ? found : lists.member(object, one);
}

class SailorReader {
 public:
  SailorReader(const io::Document& document, Diagnostics& sink) : lists_(document, sink) {}

  Job read(const io::Node& root, std::int64_t rank) {
    Job job;
    const io::Node* result = result_of(root, rank);
    if (result == nullptr) return job;
    const io::Node* inner = result->find("plan");
    const io::Node& plan = inner != nullptr ? *inner : *result;
    const io::Node* samples = lists_.member(plan, "mbs");
    for (const io::Node& pipeline :
         lists_.items(either(lists_, plan, "pipeline_list", "pipelines"), "the list of pipelines")) {
      job.pipelines.push_back(read_pipeline(pipeline));
    }
    if (samples == nullptr) return job;
    const std::int64_t each = lists_.count(*samples);
    for (JobPipeline& pipeline : job.pipelines) {
      for (JobStage& stage : pipeline.stages) {
        for (Replica& replica : stage.replicas) replica.samples = each;
      }
    }
    job.batch = lists_.place(*samples);
    if (const io::Node* batch = plan.find("gbs")) job.overrides.global_batch = lists_.count(*batch);
    job.fill = Fill::kSamplesRoundedUp;
    job.counts_ends = true;
    read_claim(*result, job);
    add_notes(job);
    return job;
  }

 private:
  /// Results of several searches stand in a list.
  const io::Node* result_of(const io::Node& root, std::int64_t rank) {
    const bool list = root.kind == io::NodeKind::kArray;
    const auto size = list ? static_cast<std::int64_t>(root.items.size()) : 1;
    if (rank <= size) return list ? &tangram::at(root.items, rank - 1) : &root;
    lists_.complain(root, "no-such-rank", fmt::format("there are {} plans, none has rank {}", size, rank));
    return nullptr;
  }

  JobPipeline read_pipeline(const io::Node& node) {
    JobPipeline pipeline;
    const auto& layers = lists_.items(lists_.member(node, "layers_per_stage"), "layers_per_stage");
    const io::Node* replicas = either(lists_, node, "tmp_per_stage", "tmp_stages");
    const auto& stages = lists_.items(replicas, "the list of replicas of each stage");
    if (lists_.good() && stages.size() != layers.size()) {
      lists_.complain(*replicas, "wrong-length",
                      fmt::format("{} stages have replicas, {} have layers", stages.size(), layers.size()));
    }
    for (std::size_t s = 0; s < layers.size() && lists_.good(); ++s) {
      JobStage stage;
      stage.place = lists_.place(layers[s]);
      read_layers(layers[s], stage);
      for (const io::Node& replica : lists_.items(&stages[s], "the replicas of a stage")) {
        stage.replicas.push_back(read_replica(replica));
      }
      pipeline.stages.push_back(std::move(stage));
    }
    return pipeline;
  }

  void read_layers(const io::Node& list, JobStage& stage) {
    const auto layers = lists_.counts(&list, "the layers of a stage", {0, kMostLayers});
    if (!lists_.good()) return;
    for (std::size_t i = 1; i < layers.size(); ++i) {
      if (layers[i] == layers[i - 1] + 1) continue;
      lists_.complain(list.items[i], "layers-apart",
                      fmt::format("layer {} follows layer {} in a stage", layers[i], layers[i - 1]),
                      "a stage of a launch plan is one run of layers");
      return;
    }
    stage.first = layers.front();
    stage.last = layers.back() + 1;
  }

  /// [[[GPU type, GPUs, zone], ...], tp]
  Replica read_replica(const io::Node& node) {
    Replica replica;
    const auto& pair = lists_.items(&node, "a replica");
    if (lists_.good() && pair.size() != 2) {
      lists_.complain(node, "wrong-length", "a replica is its GPUs and its tp: [[[\"TYPE\", GPUS, \"ZONE\"]], TP]");
    }
    if (!lists_.good()) return replica;
    replica.tp = static_cast<int>(lists_.count(pair[1], {1, kMostDegree}));
    for (const io::Node& machine : lists_.items(&pair[0], "the GPUs of a replica")) add_gpus(machine, replica);
    if (lists_.good() && static_cast<int>(replica.gpus.size()) != replica.tp) {
      lists_.complain(pair[1], "tp-differs", fmt::format("{} GPUs for tp {}", replica.gpus.size(), replica.tp));
    }
    return replica;
  }

  void add_gpus(const io::Node& machine, Replica& replica) {
    const auto& fields = lists_.items(&machine, "the GPUs of a machine");
    const bool good = fields.size() == 3 && fields[0].kind == io::NodeKind::kString && !fields[0].text.empty() &&
                      fields[2].kind == io::NodeKind::kString;
    if (!good) {
      if (lists_.good()) lists_.complain(machine, "wrong-type", "GPUs of a machine are [\"TYPE\", GPUS, \"ZONE\"]");
      return;
    }
    const std::int64_t count = lists_.count(fields[1], {1, kMostDegree});
    gpus_ += count;
    if (gpus_ > kMostGpus) {
      if (lists_.good()) lists_.complain(fields[1], "too-many-gpus", "the plan asks for more than 1,000,000 GPUs");
      return;
    }
    zones_.insert(fields[2].text);
    replica.gpus.insert(replica.gpus.end(), static_cast<std::size_t>(count), GpuRequest{fields[0].text, -1});
  }

  static void read_claim(const io::Node& result, Job& job) {
    const io::Node* rate = result.find("estimated_throughput");  // iterations per second
    if (rate != nullptr && rate->number > 0) job.claimed_seconds = 1 / rate->number;
  }

  void add_notes(Job& job) const {
    if (zones_.size() > 1) job.notes.push_back(fmt::format("GPUs of {} zones are not told apart", zones_.size()));
    for (const JobPipeline& pipeline : job.pipelines) {
      const bool alike = std::ranges::all_of(pipeline.stages, [&](const JobStage& stage) {
        return stage.replicas.size() == pipeline.stages.front().replicas.size();
      });
      if (alike) continue;
      job.notes.emplace_back(
          "stages have different numbers of replicas: \"mbs\" holds for the first, the others split its microbatches");
      return;
    }
  }

  Lists lists_;
  std::int64_t gpus_ = 0;
  std::set<std::string> zones_;
};

}  // namespace

Job read_sailor(SortedFiles files, std::int64_t rank, Diagnostics& sink) {
  const auto document = parse_job(files.job, sink);
  if (!document) return {};
  Job job = SailorReader(*document, sink).read(document->root, rank);
  job.ranks = std::move(files.ranks);
  return job;
}

}  // namespace tangram::importing
