// FlashFlex, also HexiScale: several pipelines of different GPUs. Each node's GPUs are shared out to the pipelines,
// each pipeline's share of a node becomes one or a few stages, whose GPUs are its tensor parallelism.
//
// The original partitions a complete graph of GPUs by their TFLOPS, cutting links of 1 / bandwidth. All links inside a
// node are alike and so are all links between nodes, so that the least cut splits the GPUs of every node evenly; no
// partitioner is needed. Of its cost:
//   compute of a layer   96 MB S H^2 (1 + S/6H + V/16LH) / (TFLOPS tp)      peaks of datasheets; backward, recompute in
//   total                1.8 slowest pipeline + 1.1 gradients
// Layers go by memory, not by speed; a parameter has 8 bytes, and one microbatch is held. The original plans for the
// batch of its first number of pipelines, two, whatever it ends with. Repaired: layers by profiled speed within the
// profiled memory, and the batch that is trained.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "partition.hpp"
#include "planners.hpp"
#include "row.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/compute.hpp"

namespace tangram::baseline {

namespace {

constexpr int kFirstPipelines = 2;       // what its scripts start from
constexpr int kLeastGpus = 5;            // of a pipeline, where there are as many
constexpr double kPipelineFactor = 1.8;  // both fitted by its authors
constexpr double kGradientFactor = 1.1;
constexpr double kParameterBytes = 8;

/// What a pipeline has of a node.
struct Chunk {
  int kind = 0;
  int gpus = 0;
};

struct Stage {
  int kind = 0;
  int tp = 1;
};

/// `gpus` as powers of two, largest first, none above `most`.
std::vector<int> powers(int gpus, int most) {
  std::vector<int> parts;
  while (gpus > 0) {
    int part = 1;
    while (part * 2 <= std::min(gpus, most)) part *= 2;
    parts.push_back(part);
    gpus -= part;
  }
  return parts;
}

class FlashFlexSearch {
 public:
  FlashFlexSearch(const PlannerInput& input, Mode mode, const Budget& budget)
      : input_(input), mode_(mode), budget_(budget) {
    const model::BlockType& block = input.model.block(0);
    hidden_ = static_cast<double>(block.hidden);
    tokens_ = static_cast<double>(input.model.job.sequence_length);
    vocabulary_ = static_cast<double>(input.model.vocabulary);
  }

  Proposals run() {
    const int most = std::max(1, input_.gpus() / kLeastGpus);
    for (int pipelines = 1; pipelines <= most; ++pipelines) {
      if (input_.batch % pipelines != 0) continue;
      ++result_.effort.layouts;
      const auto parts = split_by_nodes(pipelines);
      for (const int widest : input_.tensor_degrees()) {
        for (const std::int64_t samples : input_.sample_counts()) {
          if (input_.batch / pipelines % samples == 0) propose(parts, widest, samples);
        }
      }
      if (result_.effort.cut) break;
    }
    keep_best(result_.drafts, budget_.kept);
    return std::move(result_);
  }

 private:
  [[nodiscard]] const GpuKind& kind(int index) const { return at(input_.kinds, index); }
  [[nodiscard]] double flops(int index) const {
    return cost::matrix_peak(kind(index).device, input_.model.job.precision).value();
  }

  /// Every node's GPUs in equal numbers to all; what remains to those with the least so far.
  [[nodiscard]] std::vector<std::vector<Chunk>> split_by_nodes(int pipelines) const {
    std::vector<std::vector<Chunk>> parts(static_cast<std::size_t>(pipelines));
    std::vector<double> weight(parts.size(), 0);
    for (int k = 0; k < static_cast<int>(input_.kinds.size()); ++k) {
      for (const auto& [node, gpus] : kind(k).nodes) {
        std::vector<std::size_t> order(parts.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, {}, [&](std::size_t p) { return weight[p]; });
        for (std::size_t i = 0; i < order.size(); ++i) {
          const int share = gpus / pipelines + (static_cast<int>(i) < gpus % pipelines ? 1 : 0);
          if (share == 0) continue;
          parts[order[i]].push_back({k, share});
          weight[order[i]] += share * flops(k);
        }
      }
    }
    return parts;
  }

  [[nodiscard]] std::vector<Stage> stages_of(const std::vector<Chunk>& chunks, int widest) const {
    std::vector<Stage> stages;
    for (const Chunk& chunk : chunks) {
      for (const int tp : powers(chunk.gpus, widest)) stages.push_back({chunk.kind, tp});
    }
    return stages;
  }

  [[nodiscard]] double layer_seconds(const Stage& stage, double samples) const {
    const double shape = 1 + tokens_ / (6 * hidden_) + vocabulary_ / (16 * input_.blocks * hidden_);
    return 96 * samples * tokens_ * hidden_ * hidden_ * shape / (flops(stage.kind) * stage.tp);
  }

  /// By memory: the original. A stage's last layer but one may be more than it holds; then there is no plan.
  [[nodiscard]] std::vector<int> cuts_by_memory(const std::vector<Stage>& stages, double samples) const {
    double all = 0;
    for (const Stage& stage : stages) all += stage.tp * kind(stage.kind).memory;
    std::vector<int> cuts(1, 0);
    double share = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      share += stages[s].tp * kind(stages[s].kind).memory / all;
      const int left = static_cast<int>(stages.size() - 1 - s);
      const int least = cuts.back() + (s == 0 ? 2 : 1);
      const int cut = left == 0 ? input_.units() : static_cast<int>(std::lround(1 + share * input_.blocks));
      cuts.push_back(left == 0 ? cut : std::clamp(cut, least, std::max(least, input_.units() - 1 - left)));
      const double layers = cuts.back() - cuts[s];
      const double state = layers * 12 * hidden_ * hidden_ * kParameterBytes / stages[s].tp;
      const double held = samples * tokens_ * hidden_ * (layers / stages[s].tp + 2) * 2;
      if (state + held > kind(stages[s].kind).memory) return {};
    }
    return cuts[cuts.size() - 2] < input_.units() - 1 ? cuts : std::vector<int>{};
  }

  [[nodiscard]] std::vector<int> cuts_by_speed(const std::vector<Stage>& stages, std::int64_t samples,
                                               std::int64_t microbatches) const {
    CutProblem problem{input_.units(), static_cast<int>(stages.size()), {}, {}};
    problem.seconds = [&](int s, int first, int last) {
      const Stage& stage = at(stages, s);
      return input_.seconds(stage.kind, stage.tp, samples, first, last);
    };
    problem.fits = [&](int s, int first, int last) {
      const Stage& stage = at(stages, s);
      const GridPoint* point = input_.at(stage.kind, stage.tp, samples);
      if (point == nullptr) return false;
      const auto depth = std::min<std::int64_t>(static_cast<std::int64_t>(stages.size()) - s, microbatches);
      double bytes = 0;
      double working = 0;
      for (int u = first; u < last; ++u) {
        const UnitProfile& unit = at(point->units, u);
        bytes += unit.state + static_cast<double>(depth) * unit.activation;
        working = std::max(working, unit.working);
      }
      return bytes + working <= kind(stage.kind).memory;
    };
    return fastest_cuts(problem);
  }

  [[nodiscard]] double pipeline_seconds(const std::vector<Stage>& stages, const std::vector<int>& cuts,
                                        std::int64_t samples, std::int64_t microbatches) const {
    double slowest = 0;
    double sum = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const double layers = cuts[s + 1] - cuts[s];
      double seconds = input_.seconds(stages[s].kind, stages[s].tp, samples, cuts[s], cuts[s + 1]);
      if (mode_ == Mode::kFaithful) seconds = layers * layer_seconds(stages[s], static_cast<double>(samples));
      slowest = std::max(slowest, seconds);
      sum += seconds;
    }
    return static_cast<double>(microbatches - 1) * slowest + sum;
  }

  /// Gradients of all layers between the pipelines, over the narrowest network.
  [[nodiscard]] double gradient_seconds(int pipelines) const {
    if (pipelines == 1) return 0;
    double network = std::numeric_limits<double>::infinity();
    for (const GpuKind& k : input_.kinds) network = std::min(network, k.outside);
    const double bytes = 12 * hidden_ * hidden_ * input_.blocks * 2;
    return 2.0 * (pipelines - 1) / pipelines * bytes / network;
  }

  void propose(const std::vector<std::vector<Chunk>>& parts, int widest, std::int64_t samples) {
    if (++result_.effort.examined > budget_.plans) {
      result_.effort.cut = true;
      return;
    }
    const auto pipelines = static_cast<int>(parts.size());
    const std::int64_t microbatches = input_.batch / pipelines / samples;
    const bool faithful = mode_ == Mode::kFaithful;
    // What the original believes each pipeline trains.
    const std::int64_t believed =
        faithful ? std::max<std::int64_t>(1, input_.batch / kFirstPipelines / samples) : microbatches;
    Draft draft;
    draft.common = replica_degrees(input_.model, widest);
    if (faithful && input_.model.job.allow.recompute_full) draft.policy.recompute = cost::RecomputeMode::kFull;
    double slowest = 0;
    for (const auto& chunks : parts) {
      const auto stages = stages_of(chunks, widest);
      const auto cuts = stages.empty() || static_cast<int>(stages.size()) > input_.blocks ? std::vector<int>{}
                        : faithful ? cuts_by_memory(stages, static_cast<double>(samples))
                                   : cuts_by_speed(stages, samples, microbatches);
      if (cuts.empty()) return;
      slowest = std::max(slowest, pipeline_seconds(stages, cuts, samples, believed));
      DraftPipeline pipeline{samples, microbatches, {}};
      for (std::size_t s = 0; s < stages.size(); ++s) {
        pipeline.stages.push_back({cuts[s], cuts[s + 1], {{stages[s].kind, stages[s].tp, samples}}});
      }
      draft.pipelines.push_back(std::move(pipeline));
    }
    draft.claimed = faithful ? kPipelineFactor * slowest + kGradientFactor * gradient_seconds(pipelines)
                             : slowest + gradient_seconds(pipelines);
    if (!std::isfinite(draft.claimed)) return;
    if (believed != microbatches) {
      draft.label = Label::kMisCosted;
      draft.reason = "the claim is of another batch than the pipelines train";
    }
    ++result_.effort.costed;
    result_.drafts.push_back(std::move(draft));
  }

  const PlannerInput& input_;
  Mode mode_;
  const Budget& budget_;
  double hidden_ = 0;
  double tokens_ = 0;
  double vocabulary_ = 0;
  Proposals result_;
};

class FlashFlexPlanner : public BaselinePlanner {
 public:
  [[nodiscard]] const PlannerInfo& info() const override {
    static const PlannerInfo info{"flashflex",
                                  "pipelines of different GPUs, tp by stage, layers by memory (FlashFlex, HexiScale)",
                                  {"cp", "ep", "sp", "zero", "dp", "mixed_stages"}};
    return info;
  }
  [[nodiscard]] Proposals propose(const PlannerInput& input, Mode mode, const Budget& budget) const override {
    return FlashFlexSearch(input, mode, budget).run();
  }
};

}  // namespace

std::unique_ptr<BaselinePlanner> make_flashflex() { return std::make_unique<FlashFlexPlanner>(); }

}  // namespace tangram::baseline
