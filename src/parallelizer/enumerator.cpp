#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "search.hpp"
#include "strategy_space.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/parallelizer/degrees.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {
namespace {

/// Queries that share their strategy space.
struct Group {
  const Query* example = nullptr;  ///< shape, samples and techniques of all
  SliceTraits traits;
  std::vector<cost::Degrees> degrees;
  std::vector<Expected<cost::UnitCosts>> costed;  ///< of `degrees`, in their order
  StrategySpace space;
};

/// Demands may differ at the ends of a pipeline.
bool demand_alike(const Query& a, const Query& b) {
  if (a.demands != b.demands) return false;
  const bool nothing = a.demands == Demands{};
  return nothing || (a.slice.embedding == b.slice.embedding && a.slice.head == b.slice.head);
}

bool belongs(const Query& query, const SliceTraits& traits, const Group& group) {
  return traits == group.traits && query.allow == group.example->allow && query.shape == group.example->shape &&
         demand_alike(query, *group.example);
}

std::vector<cost::Degrees> degrees_of(const model::Model& model, const Query& query, const SliceTraits& traits) {
  std::vector<cost::Degrees> degrees = enumerate_degrees(query.shape, query.samples, traits, query.allow);
  std::erase_if(degrees, [&](const cost::Degrees& d) { return !admits(query.demands, model, query.slice, d); });
  return degrees;
}

/// The groups in the order of their first queries, and the group of each query.
struct Grouping {
  std::vector<Group> groups;
  std::vector<std::size_t> group_of;
};

Grouping group_queries(const model::Model& model, std::span<const Query> queries) {
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
    out.groups.push_back({&query, traits, degrees_of(model, query, traits), {}, {}});
  }
  return out;
}

void cost_degrees(const model::Model& model, const cost::ProfileSet* profiles, std::vector<Group>& groups) {
  std::vector<std::pair<std::size_t, std::size_t>> work;  // group, index of the degrees
  for (std::size_t g = 0; g < groups.size(); ++g) {
    groups[g].costed.assign(groups[g].degrees.size(), cost::UnitCosts{});
    for (std::size_t d = 0; d < groups[g].degrees.size(); ++d) work.emplace_back(g, d);
  }
  tbb::parallel_for(std::size_t{0}, work.size(), [&](std::size_t i) {
    const auto [g, d] = work[i];
    const Query& query = *groups[g].example;
    groups[g].costed[d] = cost::unit_costs(model, query.shape, groups[g].degrees[d], query.samples, profiles);
  });
}

StrategySpace space_of(Group& group) {
  StrategySpace space = make_strategy_space(group.degrees, std::move(group.costed), group.traits, group.example->allow,
                                            group.example->demands);
  if (group.degrees.empty()) {
    space.unsupported = fmt::format("no allowed tp x cp x dp makes up {} GPUs with dp dividing {} samples",
                                    group.example->shape.gpus(), group.example->samples);
  }
  return space;
}

class Enumerator final : public Parallelizer {
 public:
  Enumerator(const model::Model& model, const cost::ProfileSet* profiles) : model_(model), profiles_(profiles) {}

  [[nodiscard]] const ParallelizerInfo& info() const override { return info_; }

  [[nodiscard]] std::vector<Outcome> solve(std::span<const Query> queries) const override {
    auto [groups, group_of] = group_queries(model_, queries);
    cost_degrees(model_, profiles_, groups);
    tbb::parallel_for(std::size_t{0}, groups.size(), [&](std::size_t g) { groups[g].space = space_of(groups[g]); });

    std::vector<Outcome> outcomes(queries.size());
    tbb::parallel_for(std::size_t{0}, queries.size(),
                      [&](std::size_t q) { outcomes[q] = search(groups[group_of[q]].space, queries[q], info_.name); });
    return outcomes;
  }

 private:
  const model::Model& model_;
  const cost::ProfileSet* profiles_;
  ParallelizerInfo info_{.name = "enumerator", .version = "1", .deterministic = true};
};

}  // namespace

std::unique_ptr<Parallelizer> make_enumerator(const model::Model& model, const cost::ProfileSet* profiles) {
  return std::make_unique<Enumerator>(model, profiles);
}

}  // namespace tangram::parallelizer
