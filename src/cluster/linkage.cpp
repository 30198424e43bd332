#include "linkage.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "tangram/base/assert.hpp"

namespace tangram::cluster {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t index(Eigen::Index i) { return static_cast<std::size_t>(i); }

void append(ItemSet& to, const ItemSet& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

CompleteLinkage::CompleteLinkage(Eigen::MatrixXd distance, std::vector<EqualClusters> rows)
    : distance_(std::move(distance)), rows_(std::move(rows)), nearest_(rows_.size()) {
  TANGRAM_ASSERT(distance_.rows() == distance_.cols() && index(distance_.rows()) == rows_.size());
  for (Eigen::Index i = 0; i < distance_.rows(); ++i) find_nearest(i);
}

double CompleteLinkage::next_distance() const { return nearest_pair().distance; }

void CompleteLinkage::merge_within(double distance) {
  for (Pair pair = nearest_pair(); pair.distance <= distance && pair.distance < kInfinity; pair = nearest_pair()) {
    if (pair.a == pair.b) {
      unite_with_itself(pair.a);
    } else {
      unite(pair.a, pair.b);
    }
  }
}

std::vector<EqualClusters> CompleteLinkage::clusters() const {
  std::vector<EqualClusters> present;
  for (const EqualClusters& row : rows_) {
    if (!row.empty()) present.push_back(row);
  }
  return present;
}

CompleteLinkage::Pair CompleteLinkage::nearest_pair() const {
  Pair best{0, 0, kInfinity};
  for (Eigen::Index i = 0; i < distance_.rows(); ++i) {
    const Nearest& nearest = nearest_[index(i)];
    if (nearest.row >= 0 && nearest.distance < best.distance) best = {i, nearest.row, nearest.distance};
  }
  return best;
}

void CompleteLinkage::find_nearest(Eigen::Index row) {
  Nearest best{-1, kInfinity};
  for (Eigen::Index j = 0; !rows_[index(row)].empty() && j < distance_.cols(); ++j) {
    const bool candidate = j == row ? rows_[index(j)].size() > 1 : !rows_[index(j)].empty();
    if (candidate && distance_(row, j) < best.distance) best = {j, distance_(row, j)};
  }
  nearest_[index(row)] = best;
}

void CompleteLinkage::unite_with_itself(Eigen::Index row) {
  EqualClusters& clusters = rows_[index(row)];
  for (std::size_t i = 1; i < clusters.size(); ++i) append(clusters.front(), clusters[i]);
  clusters.resize(1);
  find_nearest(row);
}

// One row becomes the union, the other keeps the surplus (if any). Distances only grow, hence only rows that lost their
// nearest need another look.
void CompleteLinkage::unite(Eigen::Index a, Eigen::Index b) {
  Eigen::Index united = std::min(a, b);
  Eigen::Index rest = std::max(a, b);
  if (rows_[index(united)].size() > rows_[index(rest)].size()) std::swap(united, rest);
  EqualClusters& shorter = rows_[index(united)];
  EqualClusters& longer = rows_[index(rest)];
  for (std::size_t i = 0; i < shorter.size(); ++i) append(shorter[i], longer[i]);
  longer.erase(longer.begin(), longer.begin() + static_cast<std::ptrdiff_t>(shorter.size()));

  const double across = distance_(united, rest);
  const double inside_rest = distance_(rest, rest);
  const double inside = std::max({distance_(united, united), inside_rest, across});
  for (Eigen::Index i = 0; i < distance_.rows(); ++i) {
    distance_(united, i) = distance_(i, united) = std::max(distance_(united, i), distance_(rest, i));
  }
  distance_(united, united) = inside;
  distance_(united, rest) = distance_(rest, united) = std::max(inside_rest, across);

  for (Eigen::Index i = 0; i < distance_.rows(); ++i) {
    const Nearest& nearest = nearest_[index(i)];
    const bool lost =
        nearest.row >= 0 && (rows_[index(nearest.row)].empty() || distance_(i, nearest.row) > nearest.distance);
    if (i == united || i == rest || lost) find_nearest(i);
  }
}

}  // namespace tangram::cluster
