// Queries that share their degrees. Goes in: a batch of queries. Comes out: for each of them the unit costs of its
// degrees and the strategies that are to be tried. A slice is asked for after the shorter ones that it contains, on the
// same shapes, so that spaces are remembered from one batch to the next.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "strategy_space.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

/// What queries of one group have in common. Demands may differ at the ends of a pipeline.
struct GroupKey {
  int samples = 0;
  SliceTraits traits;
  model::Techniques allow;
  Demands demands;
  bool embedding = false;  ///< where more is demanded of the ends
  bool head = false;
  cluster::DeviceShape shape;

  bool operator==(const GroupKey&) const = default;
};

/// The spaces in the order of their first queries, and the one of each query.
struct Grouping {
  std::vector<std::shared_ptr<const StrategySpace>> spaces;
  std::vector<std::size_t> space_of;
};

/// What searches that demand one set of degrees after the other have in common: all degrees of a shape, and what a set
/// of them costs, whatever else is demanded. Thread-safe.
class DegreeCosts {
 public:
  /// Both must outlive it.
  DegreeCosts(const model::Model& model, const cost::ProfileSet* profiles) : model_(model), profiles_(profiles) {}

  /// As enumerate_degrees() and with_sharding_groups() list them.
  [[nodiscard]] std::shared_ptr<const std::vector<cost::Degrees>> degrees_of(const Query& query,
                                                                             const SliceTraits& traits) const;
  [[nodiscard]] Expected<cost::UnitCosts> unit_costs(const Query& query, const cost::Degrees& degrees) const;

 private:
  struct Listed {
    cluster::DeviceShape shape;
    SliceTraits traits;
    model::Techniques allow;
    std::shared_ptr<const std::vector<cost::Degrees>> degrees;
  };
  struct Costed {
    cluster::DeviceShape shape;
    std::shared_ptr<const Expected<cost::UnitCosts>> units;
  };
  /// Nodes, GPUs of each, samples: narrows the comparison of whole keys.
  using ListBucket = std::tuple<int, int, int>;
  using CostBucket = std::tuple<int, int, int, cost::Degrees>;

  const model::Model& model_;
  const cost::ProfileSet* profiles_;
  mutable std::mutex mutex_;
  mutable std::map<ListBucket, std::vector<Listed>> listed_;
  mutable std::map<CostBucket, std::vector<Costed>> costed_;
};

class QueryGroups {
 public:
  /// Both must outlive it.
  QueryGroups(const model::Model& model, const cost::ProfileSet* profiles)
      : model_(model), profiles_(profiles), demanded_(model, profiles) {}

  /// Costs degrees on the caller's oneTBB threads. Thread-safe.
  [[nodiscard]] Grouping of(std::span<const Query> queries) const;

 private:
  struct Group {
    const Query* example = nullptr;
    GroupKey key;
    std::shared_ptr<const StrategySpace> space;
  };
  /// Nodes, GPUs of each, samples; tp, cp and ep where demanded: narrows the comparison of whole keys.
  using Bucket = std::tuple<int, int, int, int, int, int>;

  [[nodiscard]] static Bucket bucket_of(const cluster::DeviceShape& shape, int samples, const Demands& demands);
  [[nodiscard]] static GroupKey key_of(const Query& query, const SliceTraits& traits);
  [[nodiscard]] static bool belongs(const Query& query, const SliceTraits& traits, const GroupKey& key);
  void group_alike(std::span<const Query> queries, std::vector<Group>& groups, Grouping& grouping) const;
  void recall(std::vector<Group>& groups) const;
  void remember(std::vector<Group>& groups) const;  ///< takes their keys
  void make_spaces(const std::vector<Group*>& groups) const;
  [[nodiscard]] std::vector<cost::Degrees> degrees_of(const Query& query, const SliceTraits& traits) const;
  [[nodiscard]] Expected<cost::UnitCosts> unit_costs(const Query& query, const cost::Degrees& degrees) const;

  const model::Model& model_;
  const cost::ProfileSet* profiles_;
  DegreeCosts demanded_;
  mutable std::mutex mutex_;
  mutable std::map<Bucket, std::vector<Group>> remembered_;  ///< without examples
  mutable std::size_t units_ = 0;                            ///< of all that are remembered
};

}  // namespace tangram::parallelizer
