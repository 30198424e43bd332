// What people do without a planner: one set of degrees for all GPUs, as Megatron-LM has them, layers in equal numbers,
// every GPU taken for the slowest. All GPUs, or those of one type alone. The degrees, recompute and the distributed
// optimizer are tried exhaustively with Tangram's own cost model, which is more than people do.
#include <algorithm>
#include <cmath>

#include "planners.hpp"
#include "row.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/cost/validity.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::baseline {

namespace {

using cost::RecomputeMode;

struct Degrees3 {
  int tp = 1;
  int dp = 1;
  int pp = 1;
  int ep = 1;
};

/// All that one choice of degrees shares.
struct Layout {
  std::vector<int> kinds;
  std::vector<int> row;
  Degrees3 degrees;
  std::int64_t samples = 1;  ///< of one replica
  std::int64_t microbatches = 1;
};

class MegatronSearch {
 public:
  MegatronSearch(const PlannerInput& input, const Budget& budget) : input_(input), budget_(budget) {
    for (const model::BlockType& type : input.model.types) {
      if (type.feed_forward.is_moe()) experts_ = std::max(experts_, type.feed_forward.experts);
    }
  }

  Proposals run() {
    std::vector<int> all;
    for (int k = 0; k < static_cast<int>(input_.kinds.size()); ++k) {
      all.push_back(k);
      if (input_.kinds.size() > 1) use({k});
    }
    use(all);
    keep_best(result_.drafts, budget_.kept);
    return std::move(result_);
  }

 private:
  void use(const std::vector<int>& kinds) {
    Layout layout;
    layout.kinds = kinds;
    layout.row = row_of(input_, kinds);
    int node = at(input_.kinds, kinds.front()).per_node;
    for (const int k : kinds) node = std::min(node, at(input_.kinds, k).per_node);
    const auto gpus = static_cast<std::int64_t>(layout.row.size());
    for (int tp = 1; tp <= node; tp *= 2) {
      for (const std::int64_t pp : divisors_of(input_.blocks)) {
        if (gpus % (tp * pp) != 0) continue;
        const auto dp = static_cast<int>(gpus / (tp * pp));
        for (int ep = 1; ep <= std::max(experts_, 1) && ep <= dp; ep *= 2) {
          if (dp % ep != 0 || (experts_ > 0 && experts_ % ep != 0)) continue;
          layout.degrees = {tp, dp, static_cast<int>(pp), ep};
          batches(layout);
        }
      }
    }
  }

  void batches(Layout& layout) {
    const int dp = layout.degrees.dp;
    if (input_.batch % dp != 0) return;
    const std::int64_t each = input_.batch / dp;
    for (layout.samples = 1; layout.samples <= 8 && each % layout.samples == 0; layout.samples *= 2) {
      layout.microbatches = each / layout.samples;
      if (result_.effort.examined >= budget_.plans) {
        result_.effort.cut = true;
        return;
      }
      ++result_.effort.layouts;
      policies(layout);
    }
  }

  [[nodiscard]] cost::Degrees degrees_of(const Layout& layout) const {
    cost::Degrees d;
    d.tp = layout.degrees.tp;
    d.dp = layout.degrees.dp;
    d.ep = layout.degrees.ep;
    d.etp = experts_ > 0 ? d.tp : 1;
    d.sequence_parallel = d.tp > 1 && input_.model.job.allow.sp;
    return d;
  }

  [[nodiscard]] cluster::DeviceShape shape_of(const Layout& layout, int kind) const {
    const GpuKind& k = at(input_.kinds, kind);
    cluster::DeviceShape shape;
    shape.device = k.device;
    const int gpus = layout.degrees.tp * layout.degrees.dp;
    shape.per_node = std::min(gpus, k.per_node);
    while (gpus % shape.per_node != 0) --shape.per_node;
    shape.nodes = gpus / shape.per_node;
    shape.intra = {BytesPerSecond(k.inside), k.latency};
    shape.inter = {BytesPerSecond(k.outside * shape.per_node / k.per_node), k.latency};
    return shape;
  }

  void policies(const Layout& layout) {
    const cost::Degrees degrees = degrees_of(layout);
    const auto all = static_cast<int>(layout.samples * layout.degrees.dp);
    if (!cost::why_unsupported(input_.model, degrees, all).empty()) return;
    std::vector<cost::UnitCosts> units;
    for (const int kind : layout.kinds) {
      auto costs = cost::unit_costs(input_.model, shape_of(layout, kind), degrees, all);
      if (!costs) return;
      units.push_back(std::move(*costs));
    }
    const auto replicas =
        uniform_replicas(layout.row, layout.degrees.pp, layout.degrees.dp, layout.degrees.tp, layout.samples);
    if (!replicas) return;
    const model::Techniques& allow = input_.model.job.allow;
    for (const RecomputeMode mode : {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull}) {
      if ((mode == RecomputeMode::kSelective && !allow.recompute_selective) ||
          (mode == RecomputeMode::kFull && !allow.recompute_full)) {
        continue;
      }
      for (int zero = 0; zero <= (allow.zero1 && layout.degrees.dp > 1 ? 1 : 0); ++zero) {
        ++result_.effort.examined;
        propose(layout, units, *replicas, {zero, mode, 0});
      }
    }
  }

  /// Seconds of an iteration; negative: out of memory on some type.
  double iteration(const Layout& layout, const std::vector<cost::UnitCosts>& units, cost::MemoryPolicy policy) const {
    const int stages = layout.degrees.pp;
    const int each = input_.blocks / stages;
    if (policy.recompute == RecomputeMode::kFull) policy.recompute_layers = each;
    double slowest = 0;
    double sum = 0;
    double tail = 0;
    for (int s = 0; s < stages; ++s) {
      const auto slice = model::signature(input_.model, s * each, (s + 1) * each);
      double seconds = 0;
      for (std::size_t k = 0; k < units.size(); ++k) {
        const cost::StageCost stage = cost::stage_cost(units[k], slice, policy);
        const auto held = std::min<std::int64_t>(stages - s, layout.microbatches);
        if (stage.peak(held) > units[k].shape.device.usable()) return -1;
        seconds = std::max(seconds, to_seconds(stage.forward + stage.backward));
        tail =
            std::max(tail, to_seconds(cost::exposed_sync(stage.gradient_sync, stage.backward) + stage.optimizer_step));
      }
      slowest = std::max(slowest, seconds);
      sum += seconds;
    }
    return static_cast<double>(layout.microbatches - 1) * slowest + sum + tail;
  }

  void propose(const Layout& layout, const std::vector<cost::UnitCosts>& units,
               const std::vector<std::vector<Replica>>& replicas, const cost::MemoryPolicy& policy) {
    const double claimed = iteration(layout, units, policy);
    if (claimed < 0) return;
    ++result_.effort.costed;
    Draft draft;
    draft.claimed = claimed;
    draft.common = units.front().degrees;
    draft.policy = policy;
    DraftPipeline pipeline{layout.samples * layout.degrees.dp, layout.microbatches, {}};
    const int each = input_.blocks / layout.degrees.pp;
    for (int s = 0; s < layout.degrees.pp; ++s) {
      const bool closing = s + 1 == layout.degrees.pp;
      pipeline.stages.push_back({s == 0 ? 0 : s * each + 1, (s + 1) * each + 1 + (closing ? 1 : 0), at(replicas, s)});
    }
    draft.pipelines.push_back(std::move(pipeline));
    result_.drafts.push_back(std::move(draft));
  }

  const PlannerInput& input_;
  const Budget& budget_;
  int experts_ = 0;
  Proposals result_;
};

class MegatronPlanner : public BaselinePlanner {
 public:
  [[nodiscard]] const PlannerInfo& info() const override {
    static const PlannerInfo info{"megatron",
                                  "one set of degrees everywhere, equal layers; all GPUs or one type alone",
                                  {"cp", "zero2", "zero3", "replicas"}};
    return info;
  }
  /// It has no defects to repair.
  [[nodiscard]] Proposals propose(const PlannerInput& input, Mode, const Budget& budget) const override {
    return MegatronSearch(input, budget).run();
  }
};

}  // namespace

std::unique_ptr<BaselinePlanner> make_megatron() { return std::make_unique<MegatronPlanner>(); }

}  // namespace tangram::baseline
