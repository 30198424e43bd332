#include "strategy_space.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tangram/base/assert.hpp"
#include "tangram/cost/sharding.hpp"

namespace tangram::parallelizer {
namespace {

using cost::Degrees;
using cost::RecomputeMode;
using cost::UnitCost;
using cost::UnitCosts;

constexpr std::size_t kZeroStages = 4;

/// In all of them less is better.
constexpr double UnitCost::* kTerms[] = {&UnitCost::forward,
                                         &UnitCost::backward,
                                         &UnitCost::recompute_selective,
                                         &UnitCost::recompute_full,
                                         &UnitCost::zero3_gather,
                                         &UnitCost::zero3_backward,
                                         &UnitCost::zero3_recompute,
                                         &UnitCost::zero2_scatter,
                                         &UnitCost::zero3_busy,
                                         &UnitCost::zero2_busy,
                                         &UnitCost::alone,
                                         &UnitCost::shared_parameters,
                                         &UnitCost::expert_parameters,
                                         &UnitCost::trained_shared,
                                         &UnitCost::trained_expert,
                                         &UnitCost::trained_parameters,
                                         &UnitCost::gathered_bytes,
                                         &UnitCost::copies,
                                         &UnitCost::gathered_copies,
                                         &UnitCost::kept_shared,
                                         &UnitCost::kept_expert,
                                         &UnitCost::cast,
                                         &UnitCost::tensor_share,
                                         &UnitCost::activation_none,
                                         &UnitCost::activation_selective,
                                         &UnitCost::activation_full,
                                         &UnitCost::working};
static_assert(std::size(kTerms) * sizeof(double) == sizeof(UnitCost), "a term is missing");

/// Buffers that recompute needs: the block's activations come back. Added up as stage_cost does.
double recompute_working(const UnitCost& unit) { return unit.working + (unit.activation_none - unit.activation_full); }
double selective_working(const UnitCost& unit) {
  return unit.working + (unit.activation_none - unit.activation_selective);
}

bool no_worse(const UnitCost& a, const UnitCost& b) {
  return std::all_of(std::begin(kTerms), std::end(kTerms), [&](auto term) { return a.*term <= b.*term; }) &&
         recompute_working(a) <= recompute_working(b) && selective_working(a) <= selective_working(b);
}

/// On every slice that b runs, which a then runs, too.
bool no_worse(const UnitCosts& a, const UnitCosts& b) {
  if (!a.unsupported.ends.empty() && b.unsupported.ends.empty()) return false;
  if (!no_worse(a.embedding, b.embedding) || !no_worse(a.head, b.head)) return false;
  for (std::size_t type = 0; type < a.blocks.size(); ++type) {
    if (!b.unsupported.of_type(type).empty()) continue;
    if (!a.unsupported.of_type(type).empty() || !no_worse(a.blocks[type], b.blocks[type])) return false;
  }
  return true;
}

/// Sequence parallelism moves as many bytes as plain tensor parallelism and keeps less (Korthikanti et al., arXiv
/// 2205.05198, section 4.2), but in two collectives instead of one, which a small message can feel. A stage's cost
/// grows with each unit cost, and both shard ZeRO alike: where sp is no worse in every unit cost, no plan without it is
/// needed.
bool made_superfluous_by_sequence_parallelism(const UnitCosts& plain, const std::vector<UnitCosts>& all) {
  if (plain.degrees.tp == 1 || plain.degrees.sequence_parallel) return false;
  Degrees twin = plain.degrees;
  twin.sequence_parallel = true;
  const auto found = std::lower_bound(all.begin(), all.end(), twin,
                                      [](const UnitCosts& units, const Degrees& d) { return units.degrees < d; });
  return found != all.end() && found->degrees == twin && no_worse(*found, plain);
}

std::vector<UnitCosts> keep_needed(std::vector<UnitCosts> all) {
  std::vector<std::size_t> needed;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!made_superfluous_by_sequence_parallelism(all[i], all)) needed.push_back(i);
  }
  std::vector<UnitCosts> out;
  out.reserve(needed.size());
  for (const std::size_t i : needed) out.push_back(std::move(all[i]));
  return out;
}

/// Whether collectives of no more bytes are no slower on `a`, and shards of no more parameters no larger. ZeRO-3
/// gathers and scatters inside forward and backward: at the end it has nothing but the all-reduce among groups.
bool no_worse(const cost::ProcessGroups& a, const cost::ProcessGroups& b, int zero) {
  const bool alike = a.data == b.data && a.expert_data == b.expert_data && a.shards == b.shards &&
                     a.copies == b.copies && a.expert_shards == b.expert_shards && a.expert_copies == b.expert_copies;
  const bool silent = zero == 3 && a.copies.size() == 1 && a.expert_copies.size() == 1;
  return alike || (silent && a.shards.size() >= b.shards.size() && a.expert_shards.size() >= b.expert_shards.size());
}

/// Whether collectives at the end of an iteration are known to take no longer with fewer bytes: the model's do, those
/// of a measured curve, which scatters, only with as many.
bool grows_with_bytes(const UnitCosts& a, const UnitCosts& b) {
  const auto shard = [](const Degrees& d) { return std::pair(d.tp, d.ep * d.etp); };
  return (a.curves.empty() && b.curves.empty()) || shard(a.degrees) == shard(b.degrees);
}

/// Whether `a` is no worse than `b` on every slice that `b` runs, with any recompute. A stage's cost never falls when a
/// unit cost grows, and is rounded in the same way, so that this holds to the nanosecond and the byte.
bool no_worse(const UnitCosts& a, const UnitCosts& b, int zero) {
  const auto shards = [](const Degrees& d) { return d.dp * d.cp * (d.sequence_parallel ? d.tp : 1); };
  const bool at_the_end = zero < 3 || a.degrees.dp_replicate > 1;
  return shards(a.degrees) >= shards(b.degrees) && a.tied_parameters <= b.tied_parameters &&
         no_worse(a.groups, b.groups, zero) && (!at_the_end || grows_with_bytes(a, b)) && no_worse(a, b);
}

/// Better is transitive: it is enough to compare with those that have no better one themselves. Chains of one ZeRO
/// stage are tried in the order of their degrees, whatever the mode of recompute.
void find_better(StrategySpace& space) {
  std::vector<std::size_t> units_of(space.chains);
  std::vector<int> zero_of(space.chains);
  for (const Family& family : space.families) {
    units_of[family.chain] = family.units;
    zero_of[family.chain] = family.zero;
  }
  const auto units = [&](std::size_t chain) -> const UnitCosts& { return space.units[units_of[chain]]; };
  std::vector<std::pair<int, std::size_t>> order;  // techniques, chain
  order.reserve(space.chains);
  for (std::size_t chain = 0; chain < space.chains; ++chain) {
    order.emplace_back(technique_count({units(chain).degrees, {}}), chain);
  }
  std::sort(order.begin(), order.end());
  space.better.resize(space.chains);
  std::vector<std::size_t> best;
  for (const auto& [techniques, chain] : order) {
    const UnitCosts& own = units(chain);
    const int zero = zero_of[chain];
    const auto found = std::find_if(best.begin(), best.end(), [&](std::size_t other) {
      return zero_of[other] == zero && no_worse(units(other), own, zero);
    });
    space.better[chain] = found == best.end() ? chain : *found;
    if (found == best.end()) best.push_back(chain);
  }
}

std::vector<RecomputeMode> recompute_modes(const model::Techniques& allow, const Demands& demands) {
  if (demands.recompute) return {*demands.recompute};
  std::vector<RecomputeMode> out{RecomputeMode::kNone};
  if (allow.recompute_selective) out.push_back(RecomputeMode::kSelective);
  if (allow.recompute_full) out.push_back(RecomputeMode::kFull);
  return out;
}

void sort_simplest_first(std::vector<Family>& families, const std::vector<UnitCosts>& units) {
  // They are listed by units, ZeRO and recompute, and `units` ascend by degrees, so that their places compare like
  // these.
  std::vector<std::pair<int, std::size_t>> order;  // techniques, place
  order.reserve(families.size());
  for (std::size_t i = 0; i < families.size(); ++i) {
    const Family& f = families[i];
    order.emplace_back(technique_count({units[f.units].degrees, {f.zero, f.recompute, 0}}), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<Family> sorted;
  sorted.reserve(families.size());
  for (const auto& [techniques, place] : order) sorted.push_back(families[place]);
  families = std::move(sorted);
}

/// Each reason once, in the order of the degrees.
class Reasons {
 public:
  void add(const std::string& reason) {
    if (std::ranges::find(seen_, reason) != seen_.end()) return;
    seen_.push_back(reason);
    text_ += (text_.empty() ? "" : "; ") + reason;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::vector<std::string> seen_;
  std::string text_;
};

std::string reasons(const std::vector<Expected<UnitCosts>>& costed) {
  Reasons reasons;
  for (const auto& entry : costed) {
    if (entry) continue;
    for (const Diagnostic& diagnostic : entry.error()) reasons.add(diagnostic.message);
  }
  return reasons.text();
}

}  // namespace

std::string StrategySpace::why_unsupported(const model::SliceSignature& slice) const {
  if (units.empty()) return unsupported;
  Reasons reasons;
  for (const UnitCosts& each : units) {
    const std::string& reason = each.unsupported.of(slice);
    if (reason.empty()) return {};
    reasons.add(reason);
  }
  return reasons.text();
}

int technique_count(const cost::Strategy& strategy) {
  const Degrees& d = strategy.degrees;
  return int{d.tp > 1} + int{d.sequence_parallel} + int{d.cp > 1} + int{d.ep > 1} + int{d.dp > 1} +
         int{strategy.policy.zero > 0} + int{d.dp_replicate > 1} +
         int{strategy.policy.recompute != RecomputeMode::kNone};
}

std::vector<int> zero_stages_of(const Query& query, const SliceTraits& traits, const Degrees& degrees,
                                const model::ShardingGroup& wanted) {
  std::vector<int> stages = zero_stages(degrees, query.shape, traits, query.allow, wanted);
  if (!query.demands.zero1) return stages;
  const int demanded = cost::has_shards(degrees, traits.experts > 0) ? 1 : 0;
  std::erase_if(stages, [&](int zero) { return zero != demanded; });
  return stages;
}

StrategySpace make_strategy_space(const std::vector<Degrees>& degrees, std::vector<Expected<UnitCosts>> costed,
                                  const Query& query, const SliceTraits& traits, const model::ShardingGroup& wanted) {
  TANGRAM_ASSERT(degrees.size() == costed.size());
  StrategySpace space;
  std::vector<UnitCosts> supported;
  supported.reserve(costed.size());
  for (Expected<UnitCosts>& entry : costed) {
    if (entry) supported.push_back(std::move(*entry));
  }
  TANGRAM_ASSERT(std::is_sorted(supported.begin(), supported.end(),
                                [](const UnitCosts& a, const UnitCosts& b) { return a.degrees < b.degrees; }));
  space.units = keep_needed(std::move(supported));
  if (space.units.empty()) space.unsupported = reasons(costed);
  TANGRAM_ASSERT(space.units.size() <= UINT16_MAX / kZeroStages);

  for (std::size_t i = 0; i < space.units.size(); ++i) {
    for (const int zero : zero_stages_of(query, traits, space.units[i].degrees, wanted)) {
      for (const RecomputeMode mode : recompute_modes(query.allow, query.demands))
        space.families.push_back({.units = static_cast<std::uint16_t>(i),
                                  .chain = static_cast<std::uint16_t>(space.chains),
                                  .zero = static_cast<std::uint8_t>(zero),
                                  .recompute = mode});
      ++space.chains;
    }
  }
  sort_simplest_first(space.families, space.units);
  find_better(space);
  return space;
}

}  // namespace tangram::parallelizer
