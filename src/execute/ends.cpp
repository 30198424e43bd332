// Where the model begins and ends: tables over the vocabulary, split over tp, and the loss.
#include <algorithm>
#include <cmath>
#include <limits>

#include "block.hpp"

#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

/// The token at each row of the rank's context range; `shift` 1: the one behind it.
std::vector<int> tokens_of(const Place& place, const SmallModel& model, const std::vector<std::int64_t>& samples,
                           int shift) {
  const Range range = place.context_range();
  std::vector<int> tokens;
  for (const std::int64_t sample : samples) {
    for (int p = range.first; p < range.last; ++p) tokens.push_back(token(model, sample, p + shift));
  }
  return tokens;
}

Matrix rows_of(const Parameter& table, const std::vector<int>& tokens) {
  Matrix out(static_cast<int>(tokens.size()), table.slice.columns);
  const Range held = table.slice.row_range;
  for (int i = 0; i < out.rows(); ++i) {
    const int row = at(tokens, i);
    if (row < held.first || row >= held.last) continue;
    std::copy_n(table.value.row(row - held.first), out.columns(), out.row(i));
  }
  return out;
}

void add_to_rows(Parameter& table, const std::vector<int>& tokens, const Matrix& gradient) {
  const Range held = table.slice.row_range;
  for (int i = 0; i < gradient.rows(); ++i) {
    const int row = at(tokens, i);
    if (row < held.first || row >= held.last) continue;
    for (int j = 0; j < gradient.columns(); ++j) table.gradient.at(row - held.first, j) += gradient.at(i, j);
  }
}

/// Of the rows that the rank works on outside of what is split over tp.
Range local_positions(const Place& place) {
  return place.sequence_parallel() ? place.shard_range() : place.context_range();
}

void add_positions(const Place& place, const Parameter& positions, Matrix& stream) {
  const Range range = local_positions(place);
  for (int i = 0; i < stream.rows(); ++i) {
    const double* from = positions.value.row(range.first + i % range.length());
    for (int j = 0; j < stream.columns(); ++j) stream.at(i, j) += from[j];
  }
}

void add_to_positions(const Place& place, Parameter& positions, const Matrix& gradient) {
  const Range range = local_positions(place);
  for (int i = 0; i < gradient.rows(); ++i) {
    double* to = positions.gradient.row(range.first + i % range.length());
    for (int j = 0; j < gradient.columns(); ++j) to[j] += gradient.at(i, j);
  }
}

}  // namespace

Task<Stream> embed(const Place& place, const SmallModel& model, const EmbeddingWeights& weights,
                   std::vector<std::int64_t> samples) {
  const std::vector<int> tokens = tokens_of(place, model, samples, 0);
  Stream stream;
  stream.current = co_await place.leave(rows_of(*weights.tokens, tokens));
  add_positions(place, *weights.positions, stream.current);
  if (weights.patches != nullptr) {
    stream.text = std::move(stream.current);
    stream.current = co_await place.leave(rows_of(*weights.patches, tokens));
  }
  co_return stream;
}

Task<void> embed_backward(const Place& place, const SmallModel& model, const EmbeddingWeights& weights,
                          std::vector<std::int64_t> samples, Stream gradient) {
  const std::vector<int> tokens = tokens_of(place, model, samples, 0);
  if (weights.patches != nullptr) {
    const Matrix patches = co_await place.leave_backward(std::move(gradient.current));
    add_to_rows(*weights.patches, tokens, patches);
    gradient.current = std::move(gradient.text);
  }
  add_to_positions(place, *weights.positions, gradient.current);
  const Matrix wide = co_await place.leave_backward(std::move(gradient.current));
  add_to_rows(*weights.tokens, tokens, wide);
}

// With z the logits of a token over the whole vocabulary, t its target: loss = log sum exp z - z_t,
// slope_j = softmax_j - [j = t]. Each rank has the logits of its rows of the table.
Task<double> head(const Place& place, const SmallModel& model, const HeadWeights& weights,
                  std::vector<std::int64_t> samples, double tokens_of_batch, Matrix input, KeptHead& kept) {
  const std::vector<int> targets = tokens_of(place, model, samples, 1);
  kept.wide = co_await place.enter(norm_forward(*weights.norm, std::move(input), kept.norm));
  kept.slopes = product_transposed(kept.wide, weights.table->value);
  const Range held = weights.table->slice.row_range;
  Matrix& z = kept.slopes;
  Matrix highest(z.rows(), 1);
  for (int i = 0; i < z.rows(); ++i) {
    highest.at(i, 0) = -std::numeric_limits<double>::infinity();
    for (int j = 0; j < z.columns(); ++j) highest.at(i, 0) = std::max(highest.at(i, 0), z.at(i, j));
  }
  highest = co_await place.ranks.maximum(*place.tensor, place.rank, std::move(highest));
  Matrix sums(z.rows(), 2);  // of the exponentials, and the target's logit
  for (int i = 0; i < z.rows(); ++i) {
    const int target = at(targets, i) - held.first;
    if (target >= 0 && target < held.length()) sums.at(i, 1) = z.at(i, target) - highest.at(i, 0);
    for (int j = 0; j < z.columns(); ++j) sums.at(i, 0) += z.at(i, j) = std::exp(z.at(i, j) - highest.at(i, 0));
  }
  sums = co_await place.ranks.all_reduce(*place.tensor, place.rank, std::move(sums));
  double loss = 0;
  for (int i = 0; i < z.rows(); ++i) {
    loss += (std::log(sums.at(i, 0)) - sums.at(i, 1)) / tokens_of_batch;
    const int target = at(targets, i) - held.first;
    for (int j = 0; j < z.columns(); ++j) {
      z.at(i, j) = (z.at(i, j) / sums.at(i, 0) - (j == target ? 1 : 0)) / tokens_of_batch;
    }
  }
  co_return loss;
}

Task<Matrix> head_backward(const Place& place, const HeadWeights& weights, const KeptHead& kept) {
  add_transposed_product(weights.table->gradient, kept.slopes, kept.wide);
  const Matrix d = co_await place.enter_backward(product(kept.slopes, weights.table->value));
  co_return norm_backward(*weights.norm, kept.norm, d);
}

}  // namespace tangram::execute
