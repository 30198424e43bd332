#include "tangram/ensemble/ensemble.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "allocations.hpp"
#include "ensemble_price.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/compute.hpp"

namespace tangram::ensemble {

namespace {

/// What a group has of the level: the next pieces of every class behind those that are `taken`.
cluster::IslandLevel held_level(const cluster::IslandLevel& level, const std::vector<int>& taken,
                                const std::vector<int>& pieces) {
  cluster::IslandLevel held = level;
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    cluster::IslandClass& island_class = held.classes[k];
    const std::vector<int>& all = level.classes[k].islands;
    if (pieces[k] == 0) {
      island_class.islands.clear();
    } else if (all.size() > 1) {
      island_class.islands.assign(all.begin() + taken[k], all.begin() + taken[k] + pieces[k]);
    } else {
      island_class.members_per_island = pieces[k];
      std::vector<cluster::IslandMember>& members = at(held.islands, all.front()).members;
      members = {members.begin() + taken[k], members.begin() + taken[k] + pieces[k]};
    }
  }
  return held;
}

/// A level without the classes that have no islands.
struct SubLevel {
  cluster::IslandHierarchy hierarchy;
  std::vector<int> class_of;  ///< its class: class of the level
};

SubLevel sub_level(const cluster::IslandLevel& level) {
  SubLevel sub;
  cluster::IslandLevel own = level;
  own.classes.clear();
  own.links.clear();
  for (const cluster::IslandClass& island_class : level.classes) {
    if (island_class.islands.empty()) continue;
    sub.class_of.push_back(island_class.id);
    own.classes.push_back(island_class);
    own.classes.back().id = static_cast<int>(own.classes.size()) - 1;
  }
  for (const int a : sub.class_of) {
    for (const int b : sub.class_of) own.links.push_back(level.link(a, b));
  }
  sub.hierarchy.levels.push_back(std::move(own));
  return sub;
}

/// Samples of each group's share.
using Shares = std::vector<std::int64_t>;

/// What a group of islands does with a share; nothing where it cannot hold the model or is far too slow.
using Answer = std::optional<compose::Composition>;

class Improver {
 public:
  Improver(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
           std::span<const parallelizer::Parallelizer* const> parallelizers, const compose::SearchOptions& options,
           EnsembleEffort effort, const compose::ProgressCallback& progress)
      : model_(model),
        hierarchy_(hierarchy),
        parallelizers_(parallelizers),
        options_(options),
        tuning_(options.tuning.ensemble),
        extent_(effort == EnsembleEffort::kLook ? tuning_.look : tuning_.full),
        progress_(progress),
        to_beat_(options.incumbent) {}

  EnsembleSearch run() {
    if (model_.job.allow.replicas && options_.max_replicas > 1) {
      for (std::size_t level = 0; level < hierarchy_.levels.size(); ++level) try_level(static_cast<int>(level));
      while (!out_of_budget() && climb()) {
      }
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] const cluster::IslandLevel& level_at(int level) const { return at(hierarchy_.levels, level); }
  [[nodiscard]] bool out_of_budget() const {
    return found_.allocations >= extent_.tried || found_.statistics.labels >= options_.label_budget ||
           options_.deadline.has_passed();
  }

  void try_level(int level) {
    std::vector<double> power;
    for (const cluster::IslandClass& c : level_at(level).classes) power.push_back(power_of(c));
    for (const Allocation& allocation : allocations_of(level_at(level), power, options_.max_replicas, tuning_)) {
      if (out_of_budget()) return;
      try_allocation(level, allocation);
    }
  }

  /// From the best allocation to a better one beside it.
  bool climb() {
    if (!found_.best) return false;
    const int level = found_.best->level;
    for (const Allocation& allocation : neighbours_of(best_allocation_)) {
      if (out_of_budget()) return false;
      if (try_allocation(level, allocation)) return true;
    }
    return false;
  }

  [[nodiscard]] double power_of(const cluster::IslandClass& c) const {
    const double gpus = static_cast<double>(c.gpu_count()) / pieces_of(c);
    return gpus * cost::matrix_peak(c.device, model_.job.precision).value();
  }

  /// Whether it is the best so far.
  bool try_allocation(int level, const Allocation& allocation) {
    if (!tried_.insert({level, allocation}).second) return false;
    ++found_.allocations;
    report();
    bool better = false;
    Shares shares = shares_by(powers_of(level, allocation));
    std::set<Shares> known;
    for (int round = 0; round < extent_.rounds && !shares.empty() && known.insert(shares).second; ++round) {
      auto ensemble = ensemble_of(level, allocation, shares);
      if (!ensemble) break;
      shares = balanced(*ensemble);
      if (ensemble->closed_form >= to_beat_) continue;
      to_beat_ = ensemble->closed_form;
      found_.best = std::move(ensemble);
      best_allocation_ = allocation;
      better = true;
    }
    return better;
  }

  [[nodiscard]] std::vector<double> powers_of(int level, const Allocation& allocation) const {
    std::vector<double> powers;
    for (const std::vector<int>& group : allocation) {
      double power = 0;
      for (std::size_t k = 0; k < group.size(); ++k) power += group[k] * power_of(level_at(level).classes[k]);
      powers.push_back(power);
    }
    return powers;
  }

  /// Shares are multiples of this.
  [[nodiscard]] std::int64_t quantum() const {
    const model::Job& job = model_.job;
    std::int64_t quantum = std::max<std::int64_t>(1, job.microbatch);
    while (job.global_batch % (2 * quantum) == 0 && 2 * quantum * tuning_.shares_of_batch <= job.global_batch)
      quantum *= 2;
    return quantum;
  }

  /// The batch in proportion to weights, in whole quanta, at least one for each; empty: there are not so many.
  [[nodiscard]] Shares shares_by(const std::vector<double>& weights) const {
    const std::int64_t unit = quantum();
    const std::int64_t quanta = model_.job.global_batch / unit;
    if (model_.job.global_batch % unit != 0 || quanta < static_cast<std::int64_t>(weights.size())) return {};
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    Shares shares;
    std::int64_t given = 0;
    for (const double weight : weights) {
      const double wanted = static_cast<double>(quanta) * weight / sum;
      shares.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted)));
      given += shares.back();
    }
    const auto lack = [&](std::size_t g) {
      return static_cast<double>(quanta) * weights[g] / sum - static_cast<double>(shares[g]);
    };
    for (; given != quanta; given += given < quanta ? 1 : -1) {
      std::size_t chosen = 0;
      for (std::size_t g = 1; g < shares.size(); ++g) {
        const bool larger = lack(g) > lack(chosen);
        if (given < quanta ? larger : (shares[g] > 1 && (!larger || shares[chosen] == 1))) chosen = g;
      }
      shares[chosen] += given < quanta ? 1 : -1;
    }
    for (std::int64_t& share : shares) share *= unit;
    return shares;
  }

  /// A group takes A - P + o and P / (b R) for each sample: shares with which all would finish together.
  [[nodiscard]] Shares balanced(const compose::Ensemble& ensemble) const {
    double samples = static_cast<double>(model_.job.global_batch);
    double rate = 0;
    std::vector<std::pair<double, double>> lines;  // fixed time, samples per time
    for (const compose::PipelineGroup& group : ensemble.groups) {
      const compose::Composition& c = group.composition;
      const double fixed = (c.closed_form - c.period * c.microbatches).as_double();
      lines.emplace_back(fixed, static_cast<double>(c.microbatch * c.replicas) / c.period.as_double());
      samples += fixed * lines.back().second;
      rate += lines.back().second;
    }
    const double time = samples / rate;
    std::vector<double> weights;
    weights.reserve(lines.size());
    for (const auto& [fixed, per_time] : lines) weights.push_back(std::max(0.0, (time - fixed) * per_time));
    return shares_by(weights);
  }

  std::optional<compose::Ensemble> ensemble_of(int level, const Allocation& allocation, const Shares& shares) {
    compose::Ensemble ensemble;
    ensemble.level = level;
    std::vector<int> taken(allocation.front().size(), 0);
    for (std::size_t g = 0; g < allocation.size(); ++g) {
      compose::PipelineGroup group{{}, held_level(level_at(level), taken, allocation[g])};
      std::transform(taken.begin(), taken.end(), allocation[g].begin(), taken.begin(), std::plus<>());
      const Answer& answer =
          answer_of(level, allocation[g], group.level, shares[g], static_cast<int>(allocation.size()));
      if (!answer) return std::nullopt;
      group.composition = *answer;
      ensemble.groups.push_back(std::move(group));
    }
    price_ensemble(model_, level_at(level), ensemble);
    return ensemble;
  }

  const Answer& answer_of(int level, const std::vector<int>& counts, const cluster::IslandLevel& held,
                          std::int64_t share, int groups) {
    const auto [entry, is_new] = answers_.try_emplace({level, counts, share, groups});
    if (is_new) entry->second = search_group(level, held, share, groups);
    return entry->second;
  }

  Answer search_group(int level, const cluster::IslandLevel& held, std::int64_t share, int groups) {
    const SubLevel sub = sub_level(held);
    model::Model part = model_;
    part.job.global_batch = share;
    compose::SearchOptions options = options_;
    options.top = 1;
    options.label_budget = std::max<std::int64_t>(1, options_.label_budget / extent_.searches);
    options.max_replicas = std::max(1, options_.max_replicas / groups);
    options.accepted_gap = std::max(tuning_.group_gap, options_.accepted_gap);
    options.incumbent = Nanoseconds(static_cast<std::int64_t>(options_.incumbent.as_double() * extent_.slowest));
    options.max_parts = std::min(options.max_parts, extent_.parts);
    options.timed = false;                   // groups are compared by closed form
    options.relaxed_bound = Nanoseconds(0);  // and nothing is proven of them
    compose::SearchResult result = compose::search(part, sub.hierarchy, parallelizers_, options);
    found_.statistics += result.statistics;
    if (found_.parallelizers.empty()) {
      found_.parallelizers = result.parallelizers;
    } else {
      for (std::size_t i = 0; i < result.parallelizers.size(); ++i)
        found_.parallelizers[i].add(result.parallelizers[i]);
    }
    if (result.best.empty()) return std::nullopt;
    compose::Composition& best = result.best.front();
    best.level = level;
    for (compose::StageChoice& stage : best.stages) {
      for (compose::PartChoice& p : stage.parts) p.island_class = at(sub.class_of, p.island_class);
    }
    return std::move(best);
  }

  void report() const {
    if (!progress_) return;
    compose::Progress progress;
    progress.done = static_cast<int>(found_.allocations);
    progress.total = static_cast<int>(extent_.tried);
    progress.phase = "unequal pipelines";
    progress.best = to_beat_;
    progress_(progress);
  }

  const model::Model& model_;
  const cluster::IslandHierarchy& hierarchy_;
  std::span<const parallelizer::Parallelizer* const> parallelizers_;
  const compose::SearchOptions& options_;
  const compose::EnsembleTuning& tuning_;
  const compose::AllocationTuning& extent_;
  const compose::ProgressCallback& progress_;
  Nanoseconds to_beat_;
  Allocation best_allocation_;
  std::set<std::pair<int, Allocation>> tried_;
  /// By level, pieces of each class, samples and number of groups.
  std::map<std::tuple<int, std::vector<int>, std::int64_t, int>, Answer> answers_;
  EnsembleSearch found_;
};

}  // namespace

EnsembleSearch search_ensemble(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                               std::span<const parallelizer::Parallelizer* const> parallelizers,
                               const compose::SearchOptions& options, const compose::ProgressCallback& progress,
                               EnsembleEffort effort) {
  return Improver(model, hierarchy, parallelizers, options, effort, progress).run();
}

}  // namespace tangram::ensemble
