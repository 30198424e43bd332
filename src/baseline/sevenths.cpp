// The load balancer of Metis: layers cut into sevenths that are handed out greedily.
#include <algorithm>
#include <numeric>

#include "metis.hpp"

namespace tangram::baseline {

namespace {

constexpr int kPieces = 7;     // of each layer
constexpr int kMostMoves = 3;  // corrections at the end
constexpr int kNobody = -1;

class Sevenths {
 public:
  Sevenths(const std::vector<double>& weights, std::vector<double> shares)
      : weights_(weights), left_(std::move(shares)), owner_(weights.size() * kPieces, kNobody) {}

  std::vector<int> cuts() {
    forward();
    backward();
    leftovers();
    std::vector<int> counts = majorities();
    for (int move = 0; move < kMostMoves && improve(counts); ++move) {
    }
    std::vector<int> cuts(1, 0);
    for (const int count : counts) cuts.push_back(cuts.back() + count);
    return cuts;
  }

 private:
  [[nodiscard]] int stages() const { return static_cast<int>(left_.size()); }
  [[nodiscard]] double piece(int index) const { return weights_[static_cast<std::size_t>(index / kPieces)] / kPieces; }
  double& left(int stage) { return left_[static_cast<std::size_t>(stage)]; }
  int& owner(int index) { return owner_[static_cast<std::size_t>(index)]; }
  void give(int index, int stage) {
    owner(index) = stage;
    left(stage) -= piece(index);
  }

  /// All stages but the last, which keeps the last layer; the first piece that does not fit belongs to nobody yet.
  void forward() {
    const int end = static_cast<int>(owner_.size()) - kPieces;
    int next = 0;
    for (int s = 0; s + 1 < stages(); ++s) {
      for (; next < end && left(s) >= piece(next); ++next) give(next, s);
      ++next;
    }
  }

  void backward() {
    const int last = stages() - 1;
    int taken = 0;
    for (int i = static_cast<int>(owner_.size()) - 1; i >= 0 && owner(i) == kNobody; --i, ++taken) {
      if (taken >= kPieces && left(last) < piece(i)) break;
      give(i, last);
    }
  }

  void leftovers() {
    for (int i = 0; i < static_cast<int>(owner_.size()); ++i) {
      if (owner(i) != kNobody) continue;
      const int before = i == 0 ? 0 : owner(i - 1);
      int after = i;
      while (after < static_cast<int>(owner_.size()) && owner(after) == kNobody) ++after;
      const int behind = after == static_cast<int>(owner_.size()) ? stages() - 1 : owner(after);
      give(i, left(before) >= left(behind) ? before : behind);
    }
  }

  /// Layers of each stage; one that no stage has most of is in none.
  std::vector<int> majorities() {
    std::vector<int> counts(left_.size(), 0);
    for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
      const auto first = owner_.begin() + static_cast<std::ptrdiff_t>(layer * kPieces);
      for (int s = 0; s < stages(); ++s) {
        if (2 * std::count(first, first + kPieces, s) > kPieces) ++counts[static_cast<std::size_t>(s)];
      }
    }
    return counts;
  }

  /// The stage with the most room takes a layer of its fuller neighbour where the worse of the two gets better.
  bool improve(std::vector<int>& counts) {
    const auto widest = std::ranges::max_element(left_);
    const int s = static_cast<int>(widest - left_.begin());
    int from = kNobody;
    for (const int n : {s - 1, s + 1}) {
      if (n < 0 || n >= stages() || counts[static_cast<std::size_t>(n)] < 2) continue;
      if (from == kNobody || left(n) < left(from)) from = n;
    }
    if (from == kNobody) return false;
    const int boundary = std::accumulate(counts.begin(), counts.begin() + std::max(s, from), 0);
    const double weight = weights_[static_cast<std::size_t>(from < s ? boundary - 1 : boundary)];
    if (std::min(left(s) - weight, left(from) + weight) <= std::min(left(s), left(from))) return false;
    left(s) -= weight;
    left(from) += weight;
    ++counts[static_cast<std::size_t>(s)];
    --counts[static_cast<std::size_t>(from)];
    return true;
  }

  const std::vector<double>& weights_;
  std::vector<double> left_;  // of each stage's share
  std::vector<int> owner_;    // of each piece
};

}  // namespace

std::vector<int> balance_by_sevenths(const std::vector<double>& weights, std::vector<double> shares) {
  return Sevenths(weights, std::move(shares)).cuts();
}

std::vector<std::int64_t> split_samples(std::int64_t samples, const std::vector<double>& times) {
  double speed = 0;
  for (const double time : times) speed += 1 / time;
  std::vector<std::int64_t> shares;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double exact = static_cast<double>(samples) / times[i] / speed;
    shares.push_back(static_cast<std::int64_t>(exact));
    given += shares.back();
    remainders.emplace_back(static_cast<double>(shares.back()) - exact, i);  // largest remainder first
  }
  std::ranges::sort(remainders);
  for (std::size_t i = 0; given < samples; ++i, ++given) ++shares[remainders[i % remainders.size()].second];
  return shares;
}

}  // namespace tangram::baseline
