// Galvatron's strategies, one value per layer in texts of numbers with commas (PKU-DAIR/Hetu-Galvatron,
// galvatron/utils/config_utils.py and core/runtime/hybrid_parallel_config.py). The file of a search says nothing of
// the GPUs: the job takes all that there are.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "limits.hpp"
#include "lists.hpp"
#include "readers.hpp"

namespace tangram::importing {

namespace {

constexpr std::int64_t kAbsent = -1;

/// One value per layer, and where it stands.
struct Layers {
  std::string key;
  const io::Node* node = nullptr;
  std::vector<std::int64_t> values;
  std::vector<Place> places;
};

class GalvatronReader {
 public:
  GalvatronReader(const io::Document& document, Diagnostics& sink) : root_(document.root), lists_(document, sink) {}

  Job read(int pipelines) {
    Job job;
    read_lists();
    const std::int64_t stages = number("pp_deg", {1, kMostDegree});
    const std::int64_t batch = number("global_bsz");
    const std::int64_t chunks = number("chunks");
    check_sums(stages);
    check_schedule(stages);
    const int plain = plain_zero();
    if (!lists_.good()) return job;
    JobPipeline pipeline;
    pipeline.microbatches = chunks;
    std::int64_t first = 0;
    for (std::size_t s = 0; s < division_.values.size() && lists_.good(); ++s) {
      pipeline.stages.push_back(stage(s, first, plain, job));
      first = pipeline.stages.back().last;
    }
    job.overrides.global_batch = batch;
    job.batch = lists_.place(*root_.find("chunks"));
    job.pipelines.assign(static_cast<std::size_t>(std::max(1, pipelines)), pipeline);
    job.fill = Fill::kMicrobatches;
    job.takes_all = true;
    job.gpus = root_.find("world_size") == nullptr ? 0 : number("world_size", {1, kMostGpus});
    if (lists_.good()) note_ends(job);
    return job;
  }

 private:
  void read_lists() {
    tp_ = layers("tp_sizes_enc", {1, kMostDegree});
    division_ = layers("pp_division", {1, kMostLayers});
    const io::IntegerRange flag{0, 1};
    sharded_ = layers("dp_types_enc", flag);
    consecutive_ = layers("tp_consecutive_flags", flag);
    cp_ = layers("cp_sizes_enc", {1, kMostDegree}, 1);
    ep_ = layers("ep_sizes_enc", {1, kMostDegree}, 1);
    etp_ = layers("tp_of_ep_sizes_enc", {1, kMostDegree}, 1);
    ulysses_ = layers("use_sp", flag, 0);
    recomputed_ = layers("checkpoint", flag, 0);
    for (Layers* list : {&sharded_, &consecutive_, &cp_, &ep_, &etp_, &ulysses_, &recomputed_}) {
      if (!lists_.good() || list->values.size() == tp_.values.size()) continue;
      lists_.complain(*list->node, "wrong-length",
                      fmt::format("{} layers here, {} in tp_sizes_enc", list->values.size(), tp_.values.size()));
    }
  }

  /// "2,2,4". Where the key is missing, `fallback` for every layer of tp_sizes_enc, if there is one.
  Layers layers(const std::string& key, io::IntegerRange range, std::int64_t fallback = kAbsent) {
    Layers list{key, root_.find(key), {}, {}};
    if (list.node == nullptr) {
      if (fallback == kAbsent) (void)lists_.member(root_, key);
      list.values.assign(tp_.values.size(), fallback);
      list.places = tp_.places;
      return list;
    }
    if (list.node->kind != io::NodeKind::kString) {
      lists_.complain(*list.node, "wrong-type", fmt::format("{} is a text of numbers: \"2,2,4\"", key));
      return list;
    }
    const std::string& text = list.node->text;
    for (std::size_t first = 0; first <= text.size();) {
      const std::size_t end = std::min(text.find(',', first), text.size());
      Place place = lists_.place(*list.node);
      place.where.column += static_cast<int>(first) + 1;  // behind the quote
      place.length = static_cast<int>(std::max<std::size_t>(end - first, 1));
      std::int64_t value = 0;
      const auto [stop, error] = std::from_chars(text.data() + first, text.data() + end, value);
      if (error != std::errc() || stop != text.data() + end || value < range.min || value > range.max) {
        complain(place, "not-a-count", fmt::format("a whole number from {} to {} was expected", range.min, range.max));
        return list;
      }
      list.values.push_back(value);
      list.places.push_back(std::move(place));
      first = end + 1;
    }
    return list;
  }

  void complain(Place place, std::string code, std::string message, std::string hint = {}) {
    lists_.sink().push_back(at(std::move(place), std::move(code), std::move(message), std::move(hint)));
  }

  std::int64_t number(const std::string& key, io::IntegerRange range = io::kCount) {
    const io::Node* node = lists_.member(root_, key);
    return node == nullptr ? 1 : lists_.count(*node, range);
  }

  void check_sums(std::int64_t stages) {
    if (!lists_.good()) return;
    if (static_cast<std::int64_t>(division_.values.size()) != stages) {
      lists_.complain(*division_.node, "wrong-length",
                      fmt::format("layers of {} stages, pp_deg is {}", division_.values.size(), stages));
    }
    std::int64_t sum = 0;
    for (const std::int64_t layers : division_.values) sum += layers;
    if (sum == static_cast<std::int64_t>(tp_.values.size())) return;
    lists_.complain(*division_.node, "layers-differ",
                    fmt::format("stages have {} layers, tp_sizes_enc has {}", sum, tp_.values.size()));
  }

  void check_schedule(std::int64_t stages) {
    const io::Node* type = root_.find("pipeline_type");
    if (type == nullptr || stages == 1 || type->text == "pipedream_flush") return;
    lists_.complain(*type, "other-schedule", fmt::format("the schedule is \"{}\"", type->text),
                    "a launch plan runs 1F1B, which Galvatron calls \"pipedream_flush\"");
  }

  /// ZeRO stage of layers that dp_types_enc leaves at the default.
  int plain_zero() {
    const io::Node* type = root_.find("default_dp_type");
    if (type == nullptr || type->text == "ddp") return 0;
    if (type->text == "zero2") return 2;
    if (type->text == "zero3") return 3;
    lists_.complain(*type, "unknown-value", "default_dp_type is \"ddp\", \"zero2\" or \"zero3\"");
    return 0;
  }

  JobStage stage(std::size_t s, std::int64_t first, int plain_zero, Job& job) {
    JobStage stage;
    stage.first = first;
    stage.last = first + division_.values[s];
    stage.place = division_.places[s];
    const auto [begin, end] = std::pair(static_cast<std::size_t>(stage.first), static_cast<std::size_t>(stage.last));
    for (const Layers* list : {&tp_, &cp_, &ep_, &etp_, &sharded_}) require_alike(*list, begin, end);
    for (std::size_t i = begin; i < end && lists_.good(); ++i) {
      if (ulysses_.values[i] != 0)
        complain(ulysses_.places[i], "ulysses", "attention exchanges heads (use_sp): a launch plan does not");
      if (consecutive_.values[i] == 0)
        complain(consecutive_.places[i], "rank-order", "ranks of tp that do not follow each other are not read");
    }
    if (!lists_.good()) return stage;
    const std::int64_t tp = tp_.values[begin];
    stage.common.cp = static_cast<int>(cp_.values[begin]);
    stage.common.ep = static_cast<int>(ep_.values[begin]);
    stage.common.etp = static_cast<int>(etp_.values[begin]);
    stage.common.sequence_parallel = true;
    stage.policy.zero = sharded_.values[begin] != 0 ? 3 : plain_zero;
    set_recompute(s, begin, end, stage.policy, job);
    stage.replicas.push_back(
        {static_cast<int>(tp), 1, std::vector<GpuRequest>(static_cast<std::size_t>(tp * stage.common.cp))});
    return stage;
  }

  void require_alike(const Layers& list, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin + 1; i < end && lists_.good(); ++i) {
      if (list.values[i] == list.values[begin]) continue;
      complain(list.places[i], "layers-vary",
               fmt::format("{} is {} for layer {} and {} for layer {} of the same stage", list.key, list.values[i], i,
                           list.values[begin], begin),
               "a stage of a launch plan treats its layers alike");
    }
  }

  void set_recompute(std::size_t s, std::size_t begin, std::size_t end, cost::MemoryPolicy& policy, Job& job) const {
    const auto first = recomputed_.values.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = recomputed_.values.begin() + static_cast<std::ptrdiff_t>(end);
    policy.recompute_layers = static_cast<int>(std::count(first, last, 1));
    if (policy.recompute_layers == 0) return;
    policy.recompute = cost::RecomputeMode::kFull;
    if (std::is_sorted(first, last, std::greater<>())) return;
    job.notes.push_back(fmt::format("stage {} recomputes {} layers that are not its first: taken as its first", s,
                                    policy.recompute_layers));
  }

  /// Embedding and head have degrees of their own; in a launch plan they have those of the layers beside them.
  void note_ends(Job& job) {
    const JobStage& first = job.pipelines.front().stages.front();
    const std::vector<std::pair<const char*, std::int64_t>> ends{{"vtp", first.replicas.front().tp},
                                                                 {"vcp", first.common.cp},
                                                                 {"embed_sdp", first.policy.zero == 3 ? 1 : 0},
                                                                 {"vsp", 0}};
    for (const auto& [key, value] : ends) {
      const io::Node* node = root_.find(key);
      if (node == nullptr || lists_.count(*node, {0, kMostDegree}) == value) continue;
      job.notes.push_back(
          fmt::format("{} is {}: embedding and head are taken as the first layer, with {}", key, node->integer, value));
    }
    const bool split = std::ranges::any_of(tp_.values, [](std::int64_t tp) { return tp > 1; });
    if (split) job.notes.emplace_back("sequence parallelism is taken as on, Galvatron's default");
  }

  const io::Node& root_;
  Lists lists_;
  Layers tp_, division_, sharded_, consecutive_, cp_, ep_, etp_, ulysses_, recomputed_;
};

}  // namespace

Job read_galvatron(SortedFiles files, Diagnostics& sink) {
  const auto document = parse_job(files.job, sink);
  if (!document) return {};
  Job job = GalvatronReader(*document, sink).read(files.pipelines);
  job.ranks = std::move(files.ranks);
  if (job.ranks.empty()) job.notes.emplace_back(kRanksUnknown);
  return job;
}

}  // namespace tangram::importing
