// FlashFlex's (HexiScale's) layouts: tp, layers and machines of every stage of every pipeline (Relaxed-System-Lab/
// FlashFlex, all_hetero_configs.json and hexiscale/process_args.py). Batches, which it takes as arguments, stand beside
// them as the exporter writes them.
#include <fmt/format.h>

#include "limits.hpp"
#include "lists.hpp"
#include "readers.hpp"

namespace tangram::importing {

namespace {

constexpr std::int64_t kTokens = 4096;  // of a sample, whatever the model (process_args.py)
constexpr const char* kBatchHint = "FlashFlex has it as an argument: write it beside the layout, one number a pipeline";

class FlashFlexReader {
 public:
  FlashFlexReader(const io::Document& document, Diagnostics& sink) : root_(document.root), lists_(document, sink) {}

  Job read() {
    Job job;
    if (root_.find("pp_layouts") != nullptr) {
      lists_.complain(*root_.find("pp_layouts"), "rank-order", "ranks that are written out are not read",
                      "leave them out, and give a rank map");
    }
    const auto& widths = lists_.items(lists_.member(root_, "hetero_configs"), "hetero_configs");
    const auto& layers = rows("layer_partitions", widths.size());
    const auto& machines = rows("devices_id", widths.size());
    const auto& samples = rows("global_bsz_size", widths.size(), kBatchHint);
    const auto& chunks = rows("chunks", widths.size(), kBatchHint);
    for (std::size_t p = 0; p < widths.size() && lists_.good(); ++p) {
      job.pipelines.push_back(pipeline(widths[p], layers[p], machines[p]));
      set_batch(job.pipelines.back(), samples[p], chunks[p]);
    }
    if (!lists_.good()) return job;
    std::int64_t batch = 0;
    for (const JobPipeline& pipeline : job.pipelines) batch += pipeline.microbatch * pipeline.microbatches;
    job.overrides.global_batch = batch;
    job.overrides.sequence_length = kTokens;
    job.order = RankOrder::kPipelines;
    job.notes.emplace_back("a FlashFlex layout does not say whether layers are recomputed: taken as not");
    return job;
  }

 private:
  /// A list with one entry for each pipeline.
  const std::vector<io::Node>& rows(const char* key, std::size_t pipelines, const char* hint = "") {
    const io::Node* list = lists_.member(root_, key, hint);
    const auto& items = lists_.items(list, key);
    if (list != nullptr && !items.empty() && items.size() != pipelines) {
      lists_.complain(*list, "wrong-length",
                      fmt::format("{} entries for the {} pipelines of hetero_configs", items.size(), pipelines));
    }
    return items;
  }

  JobPipeline pipeline(const io::Node& widths, const io::Node& layers, const io::Node& machines) {
    JobPipeline pipeline;
    const auto tp = lists_.counts(&widths, "tp of each stage", {1, kMostDegree});
    const auto counts = lists_.counts(&layers, "layers of each stage", {0, kMostLayers});
    const auto& nodes = lists_.items(&machines, "machines of each stage");
    for (const auto& [node, size] : {std::pair(&layers, counts.size()), std::pair(&machines, nodes.size())}) {
      if (!lists_.good() || size == tp.size()) continue;
      lists_.complain(*node, "wrong-length", fmt::format("{} stages here, {} in hetero_configs", size, tp.size()));
    }
    std::int64_t first = 0;
    for (std::size_t s = 0; s < tp.size() && lists_.good(); ++s) {
      JobStage stage;
      stage.first = first;
      stage.last = first += counts[s];
      stage.place = lists_.place(layers.items[s]);
      stage.replicas.push_back({static_cast<int>(tp[s]), 1, gpus(nodes[s], tp[s])});
      pipeline.stages.push_back(std::move(stage));
    }
    return pipeline;
  }

  std::vector<GpuRequest> gpus(const io::Node& machines, std::int64_t tp) {
    std::vector<GpuRequest> requests;
    for (const std::int64_t machine : lists_.counts(&machines, "the machine of each GPU", {0, kMostGpus})) {
      requests.push_back({{}, static_cast<int>(machine)});
    }
    if (lists_.good() && static_cast<std::int64_t>(requests.size()) != tp) {
      lists_.complain(machines, "wrong-length", fmt::format("machines of {} GPUs for tp {}", requests.size(), tp));
    }
    return requests;
  }

  void set_batch(JobPipeline& pipeline, const io::Node& samples, const io::Node& chunks) {
    const std::int64_t all = lists_.count(samples);
    pipeline.microbatches = lists_.count(chunks);
    if (lists_.good() && all % pipeline.microbatches != 0) {
      lists_.complain(chunks, "batch-does-not-divide",
                      fmt::format("{} samples are not {} whole microbatches", all, pipeline.microbatches));
    }
    pipeline.microbatch = all / pipeline.microbatches;
    for (JobStage& stage : pipeline.stages) stage.replicas.front().samples = pipeline.microbatch;
  }

  const io::Node& root_;
  Lists lists_;
};

}  // namespace

Job read_flashflex(SortedFiles files, Diagnostics& sink) {
  const auto document = parse_job(files.job, sink);
  if (!document) return {};
  Job job = FlashFlexReader(*document, sink).read();
  job.ranks = std::move(files.ranks);
  if (job.ranks.empty()) job.notes.emplace_back("no host file: machine 0 is the first host of the cluster, and so on");
  return job;
}

}  // namespace tangram::importing
