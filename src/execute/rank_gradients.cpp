// Gradients and weights across copies: ZeRO 0 sums gradients everywhere, 1 and 2 leave each copy its shard of the sum,
// 3 gathers the weights of a block whenever it is used (Rajbhandari et al., arXiv 1910.02054, section 5). Where it
// shards inside groups, all of this happens there, and the groups sum their shards once at the end.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "rank.hpp"

#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

constexpr double kLearningRate = 0.5;  // plain SGD: a wrong scale of a gradient shows in the weights

std::vector<double> part_of(const Matrix& matrix, Range range) {
  return {matrix.values().begin() + range.first, matrix.values().begin() + range.last};
}

void add(std::vector<double>& into, const std::vector<double>& other) {
  if (into.empty()) into.assign(other.size(), 0.0);
  for (std::size_t i = 0; i < into.size(); ++i) into[i] += other[i];
}

Matrix as_row(const std::vector<double>& values) {
  Matrix row(1, static_cast<int>(values.size()));
  row.values() = values;
  return row;
}

/// The whole matrix, from the shards that members brought; who holds an equal copy brings nothing.
Matrix sum_of_slices(const Rendezvous& rendezvous, const Holders& holders) {
  const Slice& any = holders.pieces.front()->slice;
  Matrix whole(any.rows, any.columns);
  for (std::size_t i = 0; i < holders.pieces.size(); ++i) {
    const Parameter& piece = *holders.pieces[i];
    const std::vector<double>& values = rendezvous.contributions[i].front().values();
    for (std::size_t k = 0; k < values.size(); ++k) {
      whole.values()[piece.slice.place(piece.shard.first + static_cast<int>(k))] += values[k];
    }
  }
  return whole;
}

Task<Matrix> gathered(Communicator& ranks, int rank, const Parameter& p, const std::vector<double>& shard) {
  Contribution contribution;
  contribution.push_back(as_row(shard));
  const auto rendezvous =
      co_await ranks.exchange(*p.copies.shards, rank, Collective::kAllGather, std::move(contribution));
  Matrix whole(p.gradient.rows(), p.gradient.columns());
  auto to = whole.values().begin();
  for (const Contribution& member : rendezvous->contributions) to = std::ranges::copy(member.front().values(), to).out;
  co_return whole;
}

}  // namespace

Task<void> RankProgram::gather(const std::vector<Parameter*>& weights) {
  for (Parameter* p : weights) {
    if (p->zero == 3 && p->value.empty()) {
      p->value = co_await gathered(place_.ranks, place_.rank, *p, p->shard_value);
    }
  }
}

Task<void> RankProgram::release(const std::vector<Parameter*>& weights, bool with_gradients) {
  for (Parameter* p : weights) {
    if (p->zero >= 2 && with_gradients && p->trained) co_await reduce_over_copies(*p);
    if (p->zero == 3) p->value = Matrix();
  }
}

Task<void> RankProgram::reduce_over_copies(Parameter& p) {
  Matrix gradient = std::move(p.gradient);
  p.gradient = Matrix(gradient.rows(), gradient.columns());
  if (p.partial != nullptr) gradient = co_await place_.ranks.all_reduce(*p.partial, place_.rank, std::move(gradient));
  add(p.own_gradient, part_of(gradient, p.shard));
  if (p.encoder >= 0 || misbehaviour_.unreduced_stage != stage_.id) {
    gradient = co_await place_.ranks.all_reduce(*p.copies.shards, place_.rank, std::move(gradient));
  }
  add(p.shard_gradient, part_of(gradient, p.shard));
}

Task<void> RankProgram::reduce_over_replicas(Parameter& p) {
  if (p.copies.replicas == nullptr || p.copies.replicas->size() == 1) co_return;
  if (misbehaviour_.unreduced_stage == stage_.id || misbehaviour_.divided_stage == stage_.id) co_return;
  const Matrix sum = co_await place_.ranks.all_reduce(*p.copies.replicas, place_.rank, as_row(p.shard_gradient));
  p.shard_gradient = sum.values();
}

Task<void> RankProgram::sum_over_holders(Parameter& p) {
  const auto found = holders_->find(p.name);
  if (found == holders_->end()) co_return;
  const Holders& holders = found->second;
  p.holders = holders.group;
  const Group* equal = p.zero > 0 ? p.copies.replicas : p.copies.all;  // hold the same as this rank
  const bool counts = p.first_copy && equal->position(place_.rank) == 0;
  Contribution contribution;
  contribution.push_back(counts ? as_row(p.shard_gradient) : Matrix());
  const auto rendezvous =
      co_await place_.ranks.exchange(*holders.group, place_.rank, Collective::kSumOfSlices, std::move(contribution));
  if (misbehaviour_.unreduced_stage == stage_.id && p.copies.all->size() == 1) co_return;
  rendezvous->combined.resize(1);
  std::optional<Matrix>& shared = rendezvous->combined.front();
  const Matrix& whole = shared ? *shared : shared.emplace(sum_of_slices(*rendezvous, holders));
  for (int k = 0; k < p.shard.length(); ++k) {
    at(p.shard_gradient, k) = whole.values()[p.slice.place(p.shard.first + k)];
  }
}

Task<void> RankProgram::synchronise() {
  std::vector<Parameter*> all;
  all.reserve(parameters_.size());
  for (Parameter& p : parameters_) {
    if (p.trained) all.push_back(&p);
  }
  std::ranges::sort(all, {}, [](const Parameter* p) { return p->order; });
  for (Parameter* p : all) {
    if (p->zero < 2) co_await reduce_over_copies(*p);
    p->group_gradient = p->shard_gradient;
    co_await reduce_over_replicas(*p);
    p->part_gradient = p->shard_gradient;
    co_await sum_over_holders(*p);
    const bool scaled = p->encoder < 0 && misbehaviour_.scaled_stage == stage_.id;
    const bool scaled_encoder = p->encoder >= 0 && misbehaviour_.scaled_encoder == p->encoder;
    if (scaled || scaled_encoder) {
      for (double& value : p->shard_gradient) value *= scaled ? 2 : misbehaviour_.encoder_scale;
    }
  }
}

bool RankProgram::counts(const Parameter& p) const {
  const Group* equal = p.zero > 0 ? p.copies.replicas : p.copies.all;  // hold the same as this rank
  if (!p.trained || !p.first_copy || equal->position(place_.rank) != 0) return false;
  return p.holders == nullptr || &job_.part_of(at(job_.ranks, p.holders->members.front())) == &part_;
}

Task<std::vector<double>> RankProgram::gradient_squares() {
  Matrix squares(1, static_cast<int>(job_.encoders.size()) + 1);
  for (const Parameter& p : parameters_) {
    if (!counts(p)) continue;
    for (const double value : p.shard_gradient) squares.at(0, p.encoder + 1) += value * value;
  }
  std::vector<int> everyone(job_.ranks.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  Group* world = place_.ranks.group("all ranks", std::move(everyone));
  squares = co_await place_.ranks.all_reduce(*world, place_.rank, std::move(squares));
  co_return squares.values();
}

double RankProgram::rate_of(const Parameter& p, const std::vector<double>& squares) const {
  if (squares.empty()) return kLearningRate;
  const bool alone = misbehaviour_.own_norms && p.encoder >= 0;
  const double sum = alone ? at(squares, p.encoder + 1) : std::accumulate(squares.begin(), squares.end(), 0.0);
  return kLearningRate / std::sqrt(sum);
}

Task<void> RankProgram::step() {
  std::vector<double> squares;
  if (!encoders_.empty()) squares = co_await gradient_squares();
  for (Parameter& p : parameters_) {
    if (!p.trained) {
      if (misbehaviour_.steps_frozen && p.encoder >= 0) p.value *= 1 - kLearningRate;
      continue;
    }
    const double rate = rate_of(p, squares);
    std::vector<double> shard = p.zero == 3 ? p.shard_value : part_of(p.value, p.shard);
    for (std::size_t k = 0; k < shard.size(); ++k) shard[k] -= rate * p.shard_gradient[k];
    if (p.zero == 0) {
      p.value.values() = shard;
    } else if (p.zero == 3) {
      p.shard_value = shard;
    } else {
      p.value = co_await gathered(place_.ranks, place_.rank, p, shard);
    }
  }
}

}  // namespace tangram::execute
