// Complete-linkage agglomerative clustering of counted items. Goes in: a distance matrix, in which one row may stand
// for many interchangeable items. Comes out: the clusters at any distance, each row of equal clusters once.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <vector>

namespace tangram::cluster {

/// Items (by the caller's numbers) that are together.
using ItemSet = std::vector<std::size_t>;

/// Clusters that only differ in which of the interchangeable items they hold.
using EqualClusters = std::vector<ItemSet>;

/// Distance of two clusters is the largest distance of a pair of their items (complete linkage), so that a cluster cut
/// at distance d has no pair farther apart than d, and no two clusters could be united without such a pair. Equal items
/// share a row: merging two rows unites their clusters one to one and leaves the surplus where it was; a row of several
/// clusters may also merge with itself. Nearest pairs first; ties go to the smaller row numbers.
/// O(d^2) memory and typically as much time for d rows, whatever the number of items.
class CompleteLinkage {
 public:
  /// distance: symmetric; (i, i) is the distance of two different clusters of row i. Infinity: never together.
  CompleteLinkage(Eigen::MatrixXd distance, std::vector<EqualClusters> rows);

  /// Distance of the next merge; infinity when nothing is left to merge.
  [[nodiscard]] double next_distance() const;
  /// Merges everything up to and including `distance`.
  void merge_within(double distance);
  /// The present clusters, in the order of the rows they ended in.
  [[nodiscard]] std::vector<EqualClusters> clusters() const;

 private:
  struct Pair {
    Eigen::Index a = 0;
    Eigen::Index b = 0;
    double distance = 0;
  };
  [[nodiscard]] Pair nearest_pair() const;
  void find_nearest(Eigen::Index row);
  void unite_with_itself(Eigen::Index row);
  void unite(Eigen::Index a, Eigen::Index b);

  Eigen::MatrixXd distance_;
  std::vector<EqualClusters> rows_;  // empty: merged into another row
  struct Nearest {
    Eigen::Index row = -1;  // may be the row itself; -1: none
    double distance = 0;
  };
  std::vector<Nearest> nearest_;
};

}  // namespace tangram::cluster
