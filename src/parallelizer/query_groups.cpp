#include "query_groups.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tangram/parallelizer/degrees.hpp"

namespace tangram::parallelizer {
namespace {

/// When more are remembered than this, all are forgotten: some 130 MB.
constexpr std::size_t kMostUnits = 100'000;

/// Of searches that demand one set of degrees after the other, which seldom ask for one again: what is forgotten at
/// once is still in the processor's caches. A tenth less time on 2,048 GPUs x DeepSeek-V3 for Megatron-LM.
constexpr std::size_t kMostDemanded = 3'000;

/// The degrees of a group, with what they cost, until its space is made of them.
struct Costed {
  std::vector<cost::Degrees> degrees;
  std::vector<Expected<cost::UnitCosts>> units;  ///< of `degrees`, in their order
};

std::vector<cost::Degrees> all_degrees(const model::Model& model, const Query& query, const SliceTraits& traits) {
  return with_sharding_groups(enumerate_degrees(query.shape, query.samples, traits, query.allow), query.shape, traits,
                              query.allow, model.job.sharding_group);
}

StrategySpace space_of(const Query& query, const SliceTraits& traits, const model::ShardingGroup& wanted,
                       Costed costed) {
  StrategySpace space = make_strategy_space(costed.degrees, std::move(costed.units), query, traits, wanted);
  if (costed.degrees.empty()) {
    space.unsupported =
        fmt::format("no allowed tp x cp x dp makes up {} GPUs with dp {} {} samples", query.shape.gpus(),
                    query.demands.equal_samples ? "dividing" : "of at most", query.samples);
  }
  return space;
}

}  // namespace

std::shared_ptr<const std::vector<cost::Degrees>> DegreeCosts::degrees_of(const Query& query,
                                                                          const SliceTraits& traits) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Listed>& bucket = listed_[{query.shape.nodes, query.shape.per_node, query.samples}];
  const auto known = std::ranges::find_if(bucket, [&](const Listed& each) {
    return each.traits == traits && each.allow == query.allow && each.shape == query.shape;
  });
  if (known != bucket.end()) return known->degrees;
  auto degrees = std::make_shared<const std::vector<cost::Degrees>>(all_degrees(model_, query, traits));
  bucket.push_back({query.shape, traits, query.allow, degrees});
  return degrees;
}

Expected<cost::UnitCosts> DegreeCosts::unit_costs(const Query& query, const cost::Degrees& degrees) const {
  const CostBucket key{query.shape.nodes, query.shape.per_node, query.samples, degrees};
  {
    const std::scoped_lock lock(mutex_);
    for (const Costed& each : costed_[key]) {
      if (each.shape == query.shape) return *each.units;
    }
  }
  auto units = std::make_shared<const Expected<cost::UnitCosts>>(
      cost::unit_costs(model_, query.shape, degrees, query.samples, profiles_));
  const std::scoped_lock lock(mutex_);
  if (costed_.size() > kMostDemanded) costed_.clear();
  costed_[key].push_back({query.shape, units});
  return *units;
}

Grouping QueryGroups::of(std::span<const Query> queries) const {
  Grouping grouping;
  std::vector<Group> groups;
  group_alike(queries, groups, grouping);
  recall(groups);
  std::vector<Group*> unknown;
  for (Group& group : groups) {
    if (group.space == nullptr) unknown.push_back(&group);
  }
  make_spaces(unknown);
  remember(groups);
  for (Group& group : groups) grouping.spaces.push_back(std::move(group.space));
  return grouping;
}

QueryGroups::Bucket QueryGroups::bucket_of(const cluster::DeviceShape& shape, int samples, const Demands& demands) {
  const cost::Degrees degrees = demands.degrees.value_or(cost::Degrees{});
  return {shape.nodes, shape.per_node, samples, degrees.tp, degrees.cp, degrees.ep};
}

GroupKey QueryGroups::key_of(const Query& query, const SliceTraits& traits) {
  const bool ends = depend_on_ends(query.demands);
  return {query.samples, traits, query.allow, query.demands, ends && query.slice.embedding, ends && query.slice.head,
          query.shape};
}

bool QueryGroups::belongs(const Query& query, const SliceTraits& traits, const GroupKey& key) {
  const bool alike =
      !depend_on_ends(query.demands) || (query.slice.embedding == key.embedding && query.slice.head == key.head);
  return alike && query.samples == key.samples && traits == key.traits && query.allow == key.allow &&
         query.demands == key.demands && query.shape == key.shape;
}

void QueryGroups::group_alike(std::span<const Query> queries, std::vector<Group>& groups, Grouping& grouping) const {
  grouping.space_of.reserve(queries.size());
  std::map<Bucket, std::vector<std::size_t>> buckets;
  for (const Query& query : queries) {
    const SliceTraits traits = traits_of(model_, query.slice);
    auto& bucket = buckets[bucket_of(query.shape, query.samples, query.demands)];
    const auto found =
        std::ranges::find_if(bucket, [&](std::size_t g) { return belongs(query, traits, groups[g].key); });
    if (found != bucket.end()) {
      grouping.space_of.push_back(*found);
      continue;
    }
    grouping.space_of.push_back(groups.size());
    bucket.push_back(groups.size());
    groups.push_back({&query, key_of(query, traits), nullptr});
  }
}

void QueryGroups::recall(std::vector<Group>& groups) const {
  const std::scoped_lock lock(mutex_);
  for (Group& group : groups) {
    const auto bucket = remembered_.find(bucket_of(group.key.shape, group.key.samples, group.key.demands));
    if (bucket == remembered_.end()) continue;
    const auto known = std::ranges::find(bucket->second, group.key, &Group::key);
    if (known != bucket->second.end()) group.space = known->space;
  }
}

std::vector<cost::Degrees> QueryGroups::degrees_of(const Query& query, const SliceTraits& traits) const {
  const auto suits = [&](const cost::Degrees& d) {
    const bool unequal = query.samples % d.dp != 0;
    return !(unequal && query.demands.equal_samples) && admits(query.demands, model_, query.slice, d) &&
           !zero_stages_of(query, traits, d, model_.job.sharding_group).empty();
  };
  std::vector<cost::Degrees> degrees;
  if (query.demands.degrees) {
    std::ranges::copy_if(*demanded_.degrees_of(query, traits), std::back_inserter(degrees), suits);
  } else {
    std::ranges::copy_if(all_degrees(model_, query, traits), std::back_inserter(degrees), suits);
  }
  return degrees;
}

Expected<cost::UnitCosts> QueryGroups::unit_costs(const Query& query, const cost::Degrees& degrees) const {
  return query.demands.degrees ? demanded_.unit_costs(query, degrees)
                               : cost::unit_costs(model_, query.shape, degrees, query.samples, profiles_);
}

void QueryGroups::make_spaces(const std::vector<Group*>& groups) const {
  std::vector<Costed> costed(groups.size());
  std::vector<std::pair<std::size_t, std::size_t>> work;  // group, index of the degrees
  for (std::size_t g = 0; g < groups.size(); ++g) {
    costed[g].degrees = degrees_of(*groups[g]->example, groups[g]->key.traits);
    costed[g].units.assign(costed[g].degrees.size(), cost::UnitCosts{});
    for (std::size_t d = 0; d < costed[g].degrees.size(); ++d) work.emplace_back(g, d);
  }
  tbb::parallel_for(std::size_t{0}, work.size(), [&](std::size_t i) {
    const auto [g, d] = work[i];
    const Query& query = *groups[g]->example;
    costed[g].units[d] = unit_costs(query, costed[g].degrees[d]);
  });
  tbb::parallel_for(std::size_t{0}, groups.size(), [&](std::size_t g) {
    groups[g]->space = std::make_shared<const StrategySpace>(
        space_of(*groups[g]->example, groups[g]->key.traits, model_.job.sharding_group, std::move(costed[g])));
  });
}

/// Those that another thread has made meanwhile are there twice, which does no harm.
void QueryGroups::remember(std::vector<Group>& groups) const {
  const bool demanded = !groups.empty() && groups.front().key.demands.degrees;
  const std::scoped_lock lock(mutex_);
  if (units_ > (demanded ? kMostDemanded : kMostUnits)) {
    remembered_.clear();
    units_ = 0;
  }
  for (Group& group : groups) {
    std::vector<Group>& bucket = remembered_[bucket_of(group.key.shape, group.key.samples, group.key.demands)];
    if (std::ranges::find(bucket, group.space, &Group::space) != bucket.end()) continue;
    bucket.push_back({nullptr, std::move(group.key), group.space});
    units_ += group.space->units.size();
  }
}

}  // namespace tangram::parallelizer
