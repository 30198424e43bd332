// Mixes strategies between the layers of a stage. Galvatron (Miao et al., arXiv 2211.13878) chooses layer by layer with
// a dynamic program over memory in units of a megabyte, once per number of stages behind. Here lists of trade-offs
// between time and memory take the place of the units, and one pass answers for every number in flight.
//
// Degrees hold for a stage. Layer by layer, a block keeps all its activations, recomputes some or recomputes all; and
// its parameters are sharded with ZeRO-3 or treated as all others of the stage that are not (ZeRO-0, 1 or 2); the
// embedding and the head choose the latter, together.
//
// Recompute changes backward and activations, sharding changes forward, backward and what is held all the time: one
// chooses without the other (layer_lists.hpp). With n in flight a stage holds
//     held(sharding) + buffers(both) + n activations(recompute)
// so that for each sharding, fastest first, the fastest recompute that fits is found by going down one list while n
// grows. Returned is for each n the fastest of all.
//
// Activations are counted per microbatch, hence a number in flight needs no list of its own; and equal blocks are told
// apart by how many of them choose what, so that the lists of n blocks follow from those of n - 1.
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>
#include <utility>

#include "keep_frontier.hpp"
#include "layer_lists.hpp"
#include "query_groups.hpp"
#include "search.hpp"
#include "tangram/base/at.hpp"

namespace tangram::parallelizer {
namespace {

using cost::RecomputeMode;

/// Sums of the lists and of stage_cost are rounded at different places: so many bytes lie between them.
constexpr double kRounding = 8;

/// The pairs that are looked at together.
constexpr std::size_t kManyPairs = 4096;

/// Degrees and the ZeRO stage of what is not sharded with ZeRO-3.
struct Chain {
  std::size_t units = 0;
  int zero = 0;
  bool shards = false;  ///< something is sharded: without, the chain is one of other degrees
};

/// Of those that suit the slice in the order of their families, simplest first. Where ZeRO-3 is allowed it is in every
/// chain. Beside ZeRO-3 inside groups there is ZeRO-0, which is no family of these degrees.
std::vector<Chain> chains_of(const StrategySpace& space, const model::SliceSignature& slice) {
  std::vector<Chain> chains;
  for (const Family& family : space.families) {
    if (family.recompute != RecomputeMode::kNone || !space.supports(family, slice)) continue;
    if (family.zero < 3) {
      chains.push_back({family.units, family.zero});
    } else if (space.units[family.units].degrees.dp_replicate > 1) {
      chains.push_back({family.units, 0, true});
    }
  }
  return chains;
}

std::vector<RecomputeMode> modes_of(const StrategySpace& space) {
  std::set<RecomputeMode> modes;
  for (const Family& family : space.families) modes.insert(family.recompute);
  return {modes.begin(), modes.end()};
}

bool shards(const StrategySpace& space, std::size_t units) {
  return std::ranges::any_of(space.families, [&](const Family& f) { return f.units == units && f.zero == 3; });
}

/// One way to shard the slice.
struct Sharding {
  double time = 0;
  double held = 0;
  double buffers = 0;       ///< beside any working set, where some layers are sharded and some are not
  int peak = 0;             ///< which of the peaks of recompute counts
  bool ends = false;        ///< embedding and head are sharded
  std::vector<int> blocks;  ///< sharded, by position in type_counts
};

class Mixer {
 public:
  Mixer(const StrategySpace& space, const RecomputeLists& lists, const Query& query)
      : space_(space), lists_(lists), query_(query), counts_(type_counts(query.slice)) {}

  /// For each number in flight the fastest plan, before those that others beat are left out.
  std::vector<PartialPlan> run(const std::string& name) {
    std::vector<Start> starts;
    for (const Chain& chain : chains_of(space_, query_.slice)) starts.push_back(start(chain));
    std::ranges::stable_sort(starts, {}, &Start::time);
    for (const Start& from : starts) try_chain(from);
    drop_slower(pairs_);
    std::vector<PartialPlan> plans;
    for (const Pair& pair : pairs_) add(pair, name, plans);
    return plans;
  }

 private:
  /// A chain with nothing sharded with ZeRO-3 and nothing recomputed.
  struct Start {
    Chain chain;
    double time = 0;  ///< seconds, forward and backward; others of the chain take longer
    std::int64_t in_flight = 0;
  };

  /// A chain whose lists were made.
  struct Tried {
    Chain chain;
    std::vector<Sharding> shardings;
    Steps recompute;
  };

  /// A sharding with a way to recompute.
  struct Pair {
    double time = 0;
    std::int64_t in_flight = 0;  ///< as far as they are of use
    std::size_t tried = 0;
    std::size_t sharding = 0;
    std::size_t recompute = 0;
  };

  [[nodiscard]] Start start(const Chain& chain) const {
    const cost::StageCoster plain(space_.units[chain.units], query_.slice, chain.zero);
    const cost::StageCost cost = plain.cost(RecomputeMode::kNone, 0);
    return {chain, to_seconds(cost.forward + cost.backward),
            std::min(max_in_flight(cost, query_.shape.device.usable()), query_.max_in_flight)};
  }

  void try_chain(const Start& from) {
    const bool slower = from.time >= enough_ || from.time > to_seconds(query_.upper_bound);
    if (slower && !sharding_saves_time(from.chain)) return;
    const cost::UnitCosts& units = space_.units[from.chain.units];
    if (from.in_flight == query_.max_in_flight && !sharding_saves_time(from.chain)) {
      if (from.chain.shards) return;  // without groups nothing needs to be sharded
      enough_ = from.time;            // no lists are needed
      pairs_.push_back({from.time, from.in_flight, tried_.size(), 0, 0});
      tried_.push_back({from.chain, {alike(from.chain, from.chain.zero)}, Steps(counts_.size() + 1, {Tradeoff{}})});
      return;
    }
    Tried tried{from.chain, shardings_of(from.chain), {}};
    tried.recompute = recompute_steps(lists_, units, from.chain.units, query_.slice);
    tried_.push_back(std::move(tried));
    try_pairs(tried_.size() - 1, from.time, boundary_buffers(units, query_.slice));
  }

  void add(const Pair& pair, const std::string& name, std::vector<PartialPlan>& plans) const {
    const Tried& tried = tried_[pair.tried];
    PartialPlan plan;
    plan.strategy = strategy_of(tried.chain, tried.shardings[pair.sharding], choices(tried.recompute, pair.recompute));
    plan.cost = stage_cost(space_.units[tried.chain.units], query_.slice, plan.strategy.policy);
    plan.n_max = cost::max_in_flight(plan.cost, query_.shape.device.usable());
    plan.parallelizer = name;
    if (plan.n_max >= 1 && plan.cost.forward + plan.cost.backward <= query_.upper_bound) plans.push_back(plan);
  }

  /// Measured scatters of ZeRO-2 may take longer than all that ZeRO-3 does.
  [[nodiscard]] bool sharding_saves_time(const Chain& chain) const {
    if (chain.zero < 2 || !shards(space_, chain.units)) return false;
    const cost::UnitCosts& units = space_.units[chain.units];
    const auto saves = [](const cost::UnitCost& unit) {
      return unit.zero3_gather + unit.zero3_backward < unit.zero2_scatter;
    };
    return saves(units.embedding) || saves(units.head) || std::ranges::any_of(units.blocks, saves);
  }

  /// Fastest first.
  [[nodiscard]] std::vector<Sharding> shardings_of(const Chain& chain) const {
    std::vector<Sharding> out;
    if (!chain.shards) out.push_back(alike(chain, chain.zero));
    if (!shards(space_, chain.units)) return out;
    out.push_back(alike(chain, 3));
    const Steps steps = sharding_steps(space_.units[chain.units], query_.slice, chain.zero);
    for (std::size_t entry = 0; entry < steps.back().size(); ++entry) {
      Sharding sharding = mixed(steps, entry);
      int plain = has_ends() && !sharding.ends ? 1 : 0;
      int sharded = sharding.ends ? 1 : 0;
      for (std::size_t t = 0; t < counts_.size(); ++t) {
        plain += counts_[t].second - sharding.blocks[t];
        sharded += sharding.blocks[t];
      }
      if (plain > 0 && sharded > 0) out.push_back(std::move(sharding));
    }
    std::ranges::stable_sort(out, {}, &Sharding::time);
    return out;
  }

  [[nodiscard]] bool has_ends() const { return query_.slice.embedding || query_.slice.head; }

  /// All layers under one ZeRO stage.
  [[nodiscard]] Sharding alike(const Chain& chain, int zero) const {
    const auto time_of = [&](int stage) {
      const cost::StageCoster coster(space_.units[chain.units], query_.slice, stage);
      return coster.fixed().forward + coster.recompute(RecomputeMode::kNone, 0).backward;
    };
    const cost::StageCoster coster(space_.units[chain.units], query_.slice, zero);
    Sharding out;
    out.time = to_seconds(time_of(zero) - time_of(chain.zero));
    out.held = coster.fixed().static_memory().as_double();
    out.peak = zero < 2 ? 0 : zero - 1;
    out.ends = zero == 3;
    for (const auto& [type, blocks] : counts_) out.blocks.push_back(zero == 3 ? blocks : 0);
    return out;
  }

  [[nodiscard]] static Sharding mixed(const Steps& steps, std::size_t entry) {
    const Tradeoff& total = steps.back()[entry];
    const auto chosen = choices(steps, entry);
    Sharding out{total.time, total.memory, total.peaks[0], 0, chosen.front()[0] > 0, {}};
    for (std::size_t step = 1; step < chosen.size(); ++step) out.blocks.push_back(chosen[step][0]);
    return out;
  }

  /// Adds what may be the fastest for some number in flight. `start`: the time of the chain's start.
  void try_pairs(std::size_t index, double start, double boundary) {
    const Tried& tried = tried_[index];
    const std::vector<Tradeoff>& recompute = tried.recompute.back();
    const double usable = query_.shape.device.usable().as_double() - boundary - kRounding;
    for (std::size_t s = 0; s < tried.shardings.size() && start + tried.shardings[s].time < enough_; ++s) {
      const Sharding& sharding = tried.shardings[s];
      const double room = usable - sharding.held - sharding.buffers;
      std::int64_t most = 0;
      for (std::size_t r = 0; r < recompute.size() && most < query_.max_in_flight; ++r) {
        const double time = start + sharding.time + recompute[r].time;
        if (time >= enough_) break;
        const std::int64_t holds = in_flight(room - at(recompute[r].peaks, sharding.peak), recompute[r].memory);
        if (holds <= most) continue;
        most = holds;
        pairs_.push_back({time, holds, index, s, r});
      }
      if (most == query_.max_in_flight) enough_ = pairs_.back().time;
      if (pairs_.size() > kManyPairs) drop_slower(pairs_);
    }
  }

  /// Keeps for each number in flight the fastest; of equals the first.
  static void drop_slower(std::vector<Pair>& pairs) {
    std::ranges::stable_sort(pairs, {}, [](const Pair& p) { return std::pair(p.time, -p.in_flight); });
    std::int64_t most = 0;
    std::erase_if(pairs,
                  [&](const Pair& p) { return p.in_flight <= std::exchange(most, std::max(most, p.in_flight)); });
  }

  [[nodiscard]] std::int64_t in_flight(double room, double activation) const {
    if (room < activation || room < 0) return 0;
    const double most = room / std::max(1.0, std::ceil(activation));
    return most >= static_cast<double>(query_.max_in_flight) ? query_.max_in_flight : static_cast<std::int64_t>(most);
  }

  /// The first blocks of each type are sharded, and the first recomputed: in full, then selectively. What is not
  /// sharded stands last, where backward begins: its gradients are under way while the others are still being made.
  [[nodiscard]] cost::Strategy strategy_of(const Chain& chain, const Sharding& sharding,
                                           const std::vector<std::array<std::int32_t, 2>>& recomputed) const {
    std::vector<cost::BlockRun> runs;
    std::vector<int> seen(counts_.size(), 0);
    for (const auto& [type, count] : query_.slice.runs) {
      const auto t = std::ranges::find(counts_, type, &TypeCounts::value_type::first) - counts_.begin();
      const auto [full, selective] = at(recomputed, t + 1);
      const int sharded = at(sharding.blocks, t);
      int& block = at(seen, t);
      for (const int end = block + count; block < end; ++block) {
        const RecomputeMode mode = block < full               ? RecomputeMode::kFull
                                   : block < full + selective ? RecomputeMode::kSelective
                                                              : RecomputeMode::kNone;
        runs.push_back({1, {block < sharded ? 3 : chain.zero, mode}});
      }
    }
    const bool all = !has_ends() && std::ranges::all_of(runs, [](const auto& run) { return run.policy.zero == 3; });
    return {space_.units[chain.units].degrees, cost::policy_of_runs(sharding.ends || all ? 3 : chain.zero, runs)};
  }

  const StrategySpace& space_;
  const RecomputeLists& lists_;
  const Query& query_;
  const TypeCounts counts_;
  std::vector<Tried> tried_;
  std::vector<Pair> pairs_;
  double enough_ = std::numeric_limits<double>::infinity();  ///< seconds: so fast, max_in_flight are held
};

/// Where the runtime treats the blocks of a stage alike, there is nothing to mix.
bool may_mix(const Demands& demands) { return !demands.alike && !demands.recompute && !demands.zero1; }

Outcome solve_one(const StrategySpace& space, const RecomputeLists& lists, const Query& query,
                  const std::string& name) {
  Outcome outcome;
  if (may_mix(query.demands)) outcome.plans = Mixer(space, lists, query).run(name);
  // Without a plan the enumeration says why; what it finds is what the lists left out for its rounding.
  if (outcome.plans.empty()) return search(space, query, name);
  keep_frontier(outcome.plans, query.max_in_flight);
  return outcome;
}

class Layerwise final : public Parallelizer {
 public:
  Layerwise(const model::Model& model, const cost::ProfileSet* profiles) : groups_(model, profiles) {}

  [[nodiscard]] const ParallelizerInfo& info() const override { return info_; }

  [[nodiscard]] std::vector<Outcome> solve(std::span<const Query> queries) const override {
    const Grouping grouping = groups_.of(queries);
    const std::deque<RecomputeLists> lists = lists_of(grouping, queries);
    std::vector<Outcome> outcomes(queries.size());
    tbb::parallel_for(std::size_t{0}, queries.size(), [&](std::size_t q) {
      const std::size_t space = grouping.space_of[q];
      outcomes[q] = solve_one(*grouping.spaces[space], lists[space], queries[q], info_.name);
    });
    return outcomes;
  }

 private:
  /// By space.
  static std::deque<RecomputeLists> lists_of(const Grouping& grouping, std::span<const Query> queries) {
    std::vector<TypeCounts> most(grouping.spaces.size());
    for (std::size_t q = 0; q < queries.size(); ++q) {
      TypeCounts& known = most[grouping.space_of[q]];
      for (const auto& [type, blocks] : type_counts(queries[q].slice)) {
        const auto found = std::ranges::find(known, type, &TypeCounts::value_type::first);
        if (found == known.end()) {
          known.emplace_back(type, blocks);
        } else {
          found->second = std::max(found->second, blocks);
        }
      }
    }
    std::deque<RecomputeLists> lists;
    for (std::size_t s = 0; s < grouping.spaces.size(); ++s) {
      const StrategySpace& space = *grouping.spaces[s];
      lists.emplace_back(space, most[s], modes_of(space));
    }
    return lists;
  }

  QueryGroups groups_;
  ParallelizerInfo info_{.name = "layerwise", .version = "1", .deterministic = true, .modelled = true};
};

}  // namespace

std::unique_ptr<Parallelizer> make_layerwise(const model::Model& model, const cost::ProfileSet* profiles) {
  return std::make_unique<Layerwise>(model, profiles);
}

}  // namespace tangram::parallelizer
