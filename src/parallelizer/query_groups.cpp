#include "query_groups.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tangram/parallelizer/degrees.hpp"

namespace tangram::parallelizer {
namespace {

/// The degrees of a group, with what they cost, until its space is made of them.
struct Costed {
  std::vector<cost::Degrees> degrees;
  std::vector<Expected<cost::UnitCosts>> units;  ///< of `degrees`, in their order
};

/// Demands may differ at the ends of a pipeline.
bool demand_alike(const Query& a, const Query& b) {
  if (a.demands != b.demands) return false;
  const bool nothing = a.demands == Demands{};
  return nothing || (a.slice.embedding == b.slice.embedding && a.slice.head == b.slice.head);
}

bool belongs(const Query& query, const SliceTraits& traits, const QueryGroup& group) {
  return traits == group.traits && query.allow == group.example->allow && query.shape == group.example->shape &&
         demand_alike(query, *group.example);
}

std::vector<cost::Degrees> degrees_of(const model::Model& model, const Query& query, const SliceTraits& traits) {
  std::vector<cost::Degrees> degrees = enumerate_degrees(query.shape, query.samples, traits, query.allow);
  std::erase_if(degrees, [&](const cost::Degrees& d) { return !admits(query.demands, model, query.slice, d); });
  return degrees;
}

/// Groups without spaces yet.
Grouping group_alike(const model::Model& model, std::span<const Query> queries) {
  Grouping out;
  out.group_of.reserve(queries.size());
  std::map<std::tuple<int, int, int>, std::vector<std::size_t>> buckets;  // narrows the comparison of whole shapes
  for (const Query& query : queries) {
    const SliceTraits traits = traits_of(model, query.slice);
    auto& bucket = buckets[{query.shape.nodes, query.shape.per_node, query.samples}];
    const auto found = std::find_if(bucket.begin(), bucket.end(),
                                    [&](std::size_t g) { return belongs(query, traits, out.groups[g]); });
    if (found != bucket.end()) {
      out.group_of.push_back(*found);
      continue;
    }
    out.group_of.push_back(out.groups.size());
    bucket.push_back(out.groups.size());
    out.groups.push_back({&query, traits, {}});
  }
  return out;
}

std::vector<Costed> cost_degrees(const model::Model& model, const cost::ProfileSet* profiles,
                                 const std::vector<QueryGroup>& groups) {
  std::vector<Costed> costed(groups.size());
  std::vector<std::pair<std::size_t, std::size_t>> work;  // group, index of the degrees
  for (std::size_t g = 0; g < groups.size(); ++g) {
    costed[g].degrees = degrees_of(model, *groups[g].example, groups[g].traits);
    costed[g].units.assign(costed[g].degrees.size(), cost::UnitCosts{});
    for (std::size_t d = 0; d < costed[g].degrees.size(); ++d) work.emplace_back(g, d);
  }
  tbb::parallel_for(std::size_t{0}, work.size(), [&](std::size_t i) {
    const auto [g, d] = work[i];
    const Query& query = *groups[g].example;
    costed[g].units[d] = cost::unit_costs(model, query.shape, costed[g].degrees[d], query.samples, profiles);
  });
  return costed;
}

StrategySpace space_of(const QueryGroup& group, Costed costed) {
  const Query& query = *group.example;
  StrategySpace space =
      make_strategy_space(costed.degrees, std::move(costed.units), group.traits, query.allow, query.demands);
  if (costed.degrees.empty()) {
    space.unsupported = fmt::format("no allowed tp x cp x dp makes up {} GPUs with dp dividing {} samples",
                                    query.shape.gpus(), query.samples);
  }
  return space;
}

}  // namespace

Grouping group_queries(const model::Model& model, const cost::ProfileSet* profiles, std::span<const Query> queries) {
  Grouping out = group_alike(model, queries);
  std::vector<Costed> costed = cost_degrees(model, profiles, out.groups);
  tbb::parallel_for(std::size_t{0}, out.groups.size(),
                    [&](std::size_t g) { out.groups[g].space = space_of(out.groups[g], std::move(costed[g])); });
  return out;
}

}  // namespace tangram::parallelizer
