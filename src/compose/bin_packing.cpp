#include "bin_packing.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "tangram/base/assert.hpp"

namespace tangram::compose {

namespace {

using Vector = std::vector<std::int64_t>;

// Numbers of items of each size that fill a bin: another item of any size would not fit.
class Patterns {
 public:
  Patterns(int bin, std::span<const int> sizes) : sizes_(sizes), counts_(sizes.size(), 0) { fill(sizes.size(), bin); }
  [[nodiscard]] const std::vector<Vector>& all() const { return found_; }

 private:
  void fill(std::size_t sizes, int left) {
    if (sizes == 0) {
      if (left < sizes_.front()) found_.push_back(counts_);
      return;
    }
    const int size = sizes_[sizes - 1];
    for (int count = 0; count * size <= left; ++count) {
      counts_[sizes - 1] = count;
      fill(sizes - 1, left - count * size);
    }
    counts_[sizes - 1] = 0;
  }

  std::span<const int> sizes_;
  Vector counts_;
  std::vector<Vector> found_;
};

std::int64_t dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), std::int64_t{0});
}

Vector reduced(Vector ray) {
  std::int64_t divisor = 0;
  for (const std::int64_t x : ray) divisor = std::gcd(divisor, x);
  for (std::int64_t& x : ray) x /= divisor;
  return ray;
}

// Extreme rays of a cone that is cut by one halfspace after the other (the double description method of Motzkin et
// al.). It begins as the nonnegative orthant.
class Cone {
 public:
  explicit Cone(std::size_t dimensions) : dimensions_(dimensions) {
    for (std::size_t i = 0; i < dimensions; ++i) {
      Vector axis(dimensions, 0);
      axis[i] = 1;
      halfspaces_.push_back(axis);
      rays_.push_back(std::move(axis));
    }
  }

  /// Keeps x with normal x >= 0.
  void cut(const Vector& normal) {
    const std::vector<std::vector<char>> tight = tight_at_rays();
    std::vector<Vector> kept;
    for (std::size_t a = 0; a < rays_.size(); ++a) {
      const std::int64_t at_a = dot(normal, rays_[a]);
      if (at_a >= 0) kept.push_back(rays_[a]);
      for (std::size_t b = 0; b < rays_.size() && at_a > 0; ++b) {
        const std::int64_t at_b = dot(normal, rays_[b]);
        if (at_b < 0 && are_adjacent(tight, a, b)) kept.push_back(between(a, at_a, b, at_b));
      }
    }
    rays_ = std::move(kept);
    halfspaces_.push_back(normal);
  }

  [[nodiscard]] const std::vector<Vector>& rays() const { return rays_; }

 private:
  [[nodiscard]] std::vector<std::vector<char>> tight_at_rays() const {
    std::vector<std::vector<char>> tight;
    for (const Vector& ray : rays_) {
      std::vector<char>& row = tight.emplace_back();
      for (const Vector& halfspace : halfspaces_) row.push_back(dot(halfspace, ray) == 0 ? 1 : 0);
    }
    return tight;
  }

  // Two extreme rays span a face of two dimensions if no third one lies on all halfspaces that both lie on.
  [[nodiscard]] bool are_adjacent(const std::vector<std::vector<char>>& tight, std::size_t a, std::size_t b) const {
    const auto both = [&](std::size_t h) { return tight[a][h] != 0 && tight[b][h] != 0; };
    for (std::size_t other = 0; other < tight.size(); ++other) {
      if (other == a || other == b) continue;
      bool on_all = true;
      for (std::size_t h = 0; h < halfspaces_.size() && on_all; ++h) on_all = !both(h) || tight[other][h] != 0;
      if (on_all) return false;
    }
    return true;
  }

  // Where the segment from a to b meets the halfspace's border.
  [[nodiscard]] Vector between(std::size_t a, std::int64_t at_a, std::size_t b, std::int64_t at_b) const {
    Vector ray(dimensions_, 0);
    for (std::size_t i = 0; i < dimensions_; ++i) ray[i] = at_a * rays_[b][i] - at_b * rays_[a][i];
    return reduced(std::move(ray));
  }

  std::size_t dimensions_;
  std::vector<Vector> halfspaces_;
  std::vector<Vector> rays_;
};

// By weights of `sizes`, then the capacity: no other vertex of the same polytope is as heavy everywhere.
bool is_dominated(const Vector& vertex, const std::vector<Vector>& vertices) {
  const std::size_t capacity = vertex.size() - 1;
  return std::ranges::any_of(vertices, [&](const Vector& other) {
    if (other[capacity] == 0 || other == vertex) return false;
    for (std::size_t i = 0; i < capacity; ++i) {
      if (other[i] * vertex[capacity] < vertex[i] * other[capacity]) return false;
    }
    return true;
  });
}

PackingInequality inequality_of(const Vector& vertex, int bin, std::span<const int> sizes) {
  PackingInequality inequality{Vector(static_cast<std::size_t>(bin) + 1, 0), vertex.back()};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    inequality.weight[static_cast<std::size_t>(sizes[i])] = vertex[i];
  }
  return inequality;
}

// The sum of sizes itself, or less.
bool is_sum(const Vector& vertex, int bin, std::span<const int> sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (vertex[i] * bin > sizes[i] * vertex.back()) return false;
  }
  return true;
}

std::vector<PackingInequality> facets(int bin, std::span<const int> sizes) {
  const Patterns patterns(bin, sizes);
  Cone cone(sizes.size() + 1);
  for (const Vector& pattern : patterns.all()) {
    Vector normal;
    for (const std::int64_t count : pattern) normal.push_back(-count);
    normal.push_back(1);
    cone.cut(normal);
  }
  std::vector<PackingInequality> result;
  for (const Vector& ray : cone.rays()) {
    if (ray.back() == 0 || is_sum(ray, bin, sizes) || is_dominated(ray, cone.rays())) continue;
    TANGRAM_ASSERT(sizes.front() > 1 || ray.front() == 0);
    result.push_back(inequality_of(ray, bin, sizes));
  }
  return result;
}

// Each size divides the next, but for whole bins: a bin has floor(bin / d) slots of size d, and larger items take a
// whole number of them.
std::vector<PackingInequality> slots(int bin, std::span<const int> sizes) {
  std::vector<PackingInequality> result;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int d = sizes[i];
    if (bin % d == 0) continue;
    PackingInequality inequality{Vector(static_cast<std::size_t>(bin) + 1, 0), bin / d};
    for (const int size : sizes.subspan(i)) {
      TANGRAM_ASSERT(size == bin || size % d == 0);
      inequality.weight[static_cast<std::size_t>(size)] = size / d;
    }
    result.push_back(std::move(inequality));
  }
  return result;
}

// Inequalities that were worked out. A search asks for the same few over and over, and facets take a millisecond.
class KnownInequalities {
 public:
  std::vector<PackingInequality> of(int bin, std::span<const int> sizes) {
    const std::scoped_lock lock(mutex_);
    const auto [entry, is_new] = known_.try_emplace({bin, {sizes.begin(), sizes.end()}});
    if (is_new) entry->second = bin <= kAnySizes ? facets(bin, sizes) : slots(bin, sizes);
    return entry->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, std::vector<int>>, std::vector<PackingInequality>> known_;
};

}  // namespace

std::vector<PackingInequality> packing_inequalities(int bin, std::span<const int> sizes) {
  TANGRAM_ASSERT(!sizes.empty() && sizes.front() >= 1 && sizes.back() <= bin && std::ranges::is_sorted(sizes));
  static KnownInequalities known;
  return known.of(bin, sizes);
}

}  // namespace tangram::compose
