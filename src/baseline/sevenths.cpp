// The load balancer of Metis: layers cut into sevenths that are handed out greedily.
#include <algorithm>
#include <numeric>

#include "metis.hpp"
#include "tangram/base/at.hpp"

namespace tangram::baseline {

namespace {

constexpr int kPieces = 7;     // of each layer
constexpr int kMostMoves = 3;  // corrections at the end
constexpr int kNobody = -1;

/// Pieces of layers, handed out in order: what each stage holds lies between its first and its last piece, seldom with
/// another stage's piece among them.
class Pieces {
 public:
  Pieces(const std::vector<double>& weights, std::vector<double> shares)
      : weights_(weights),
        room_(std::move(shares)),
        first_(room_.size(), kNobody),
        last_(room_.size(), kNobody),
        owner_(weights.size() * kPieces, kNobody) {}

  /// The layers of which each stage has most pieces; a layer that no stage has most of is in none.
  std::vector<std::vector<int>> hand_out() {
    forward();
    backward();
    leftovers();
    return majorities();
  }

 private:
  [[nodiscard]] int stages() const { return static_cast<int>(room_.size()); }
  [[nodiscard]] int count() const { return static_cast<int>(owner_.size()); }
  [[nodiscard]] double piece(int index) const { return at(weights_, index / kPieces) / kPieces; }
  [[nodiscard]] bool fits(int index, int stage) const { return at(room_, stage) > piece(index); }

  void give(int index, int stage) {
    at(owner_, index) = stage;
    at(room_, stage) -= piece(index);
    int& first = at(first_, stage);
    first = first == kNobody ? index : std::min(first, index);
    int& last = at(last_, stage);
    last = std::max(last, index);
  }

  /// All stages but the last, which keeps the last layer and a piece; a piece that does not fit belongs to nobody yet.
  void forward() {
    const int end = count() - kPieces - 1;
    int next = 0;
    for (int s = 0; s + 1 < stages(); ++s) {
      for (; next < end && fits(next, s); ++next) give(next, s);
      ++next;
    }
  }

  void backward() {
    const int last = stages() - 1;
    int taken = 0;
    for (int i = count() - 1; i >= 0 && at(owner_, i) == kNobody; --i, ++taken) {
      if (taken >= kPieces && !fits(i, last)) break;
      give(i, last);
    }
  }

  void leftovers() {
    for (int i = 0; i < count(); ++i) {
      if (at(owner_, i) == kNobody) give(i, widest_around(i));
    }
  }

  /// The stage with the most room from the one that ends last before the piece to the one that begins first behind it;
  /// those between them may hold nothing yet.
  [[nodiscard]] int widest_around(int index) const {
    int before = 0;
    int behind = stages() - 1;
    int end = kNobody;
    int begin = count();
    for (int s = 0; s < stages(); ++s) {
      const int first = at(first_, s);
      const int last = at(last_, s);
      if (first == kNobody) continue;
      if (last < index && last > end) {
        before = s;
        end = last;
      }
      if (first > index && first < begin) {
        behind = s;
        begin = first;
      }
    }
    const auto widest = std::max_element(room_.begin() + before, room_.begin() + std::max(before, behind) + 1);
    return static_cast<int>(widest - room_.begin());
  }

  [[nodiscard]] std::vector<std::vector<int>> majorities() const {
    std::vector<std::vector<int>> layers(room_.size());
    for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
      const auto first = owner_.begin() + static_cast<std::ptrdiff_t>(layer * kPieces);
      for (int s = 0; s < stages(); ++s) {
        if (2 * std::count(first, first + kPieces, s) > kPieces) {
          at(layers, s).push_back(static_cast<int>(layer));
        }
      }
    }
    return layers;
  }

  const std::vector<double>& weights_;
  std::vector<double> room_;  // of each stage's share
  std::vector<int> first_;    // piece of each stage
  std::vector<int> last_;
  std::vector<int> owner_;  // of each piece
};

/// Whole layers that move between neighbours.
class Correction {
 public:
  Correction(const std::vector<double>& weights, const std::vector<double>& shares,
             std::vector<std::vector<int>> layers)
      : weights_(weights), room_(shares), layers_(std::move(layers)) {
    for (std::size_t s = 0; s < layers_.size(); ++s) {
      if (layers_[s].empty()) continue;
      room_[s] -= std::accumulate(weights_.begin() + layers_[s].front(), weights_.begin() + layers_[s].back() + 1, 0.0);
    }
  }

  /// The stage with the most room takes a layer of its fuller neighbour, unless that one then has more room than the
  /// taker had. A fuller neighbour of one layer keeps it; the other neighbour is not asked.
  bool improve() {
    const auto widest = std::ranges::max_element(room_);
    const auto taker = static_cast<std::size_t>(widest - room_.begin());
    const std::size_t giver = fuller_neighbour(taker);
    if (giver == taker || layers_[giver].size() < 2) return false;
    const bool leftward = giver < taker;
    const int layer = leftward ? layers_[giver].back() : layers_[giver].front();
    if (room_[giver] + weight(layer) > *widest) return false;
    layers_[giver].erase(leftward ? layers_[giver].end() - 1 : layers_[giver].begin());
    layers_[taker].insert(std::ranges::lower_bound(layers_[taker], layer), layer);
    room_[taker] -= weight(layer);
    room_[giver] += weight(layer);
    return true;
  }

  [[nodiscard]] std::vector<int> cuts() const {
    std::vector<int> cuts(1, 0);
    for (const auto& layers : layers_) cuts.push_back(cuts.back() + static_cast<int>(layers.size()));
    return cuts;
  }

 private:
  [[nodiscard]] double weight(int layer) const { return at(weights_, layer); }

  /// The stage itself where it is alone.
  [[nodiscard]] std::size_t fuller_neighbour(std::size_t stage) const {
    if (stage == 0) return std::min<std::size_t>(1, room_.size() - 1);
    if (stage + 1 == room_.size()) return stage - 1;
    return room_[stage + 1] < room_[stage - 1] ? stage + 1 : stage - 1;
  }

  const std::vector<double>& weights_;
  std::vector<double> room_;
  std::vector<std::vector<int>> layers_;  // of each stage, in order
};

}  // namespace

std::vector<int> balance_by_sevenths(const std::vector<double>& weights, const std::vector<double>& shares) {
  Correction correction(weights, shares, Pieces(weights, shares).hand_out());
  for (int move = 0; move < kMostMoves && correction.improve(); ++move) {
  }
  return correction.cuts();
}

std::vector<std::int64_t> split_samples(std::int64_t samples, const std::vector<double>& times) {
  double speed = 0;
  for (const double time : times) speed += 1 / time;
  std::vector<std::int64_t> shares;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double exact = static_cast<double>(samples) * (1 / times[i] / speed);
    shares.push_back(static_cast<std::int64_t>(exact));
    given += shares.back();
    remainders.emplace_back(static_cast<double>(shares.back()) - exact, i);  // largest remainder first
  }
  std::ranges::sort(remainders);
  for (std::size_t i = 0; given < samples; ++i, ++given) ++shares[remainders[i % remainders.size()].second];
  return shares;
}

}  // namespace tangram::baseline
