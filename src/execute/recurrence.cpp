// A recurrence as layers have it: projections, an exchange of positions for heads over cp, what happens between
// (recurrence_heads.hpp), the exchange back and the projection back.
#include "recurrence.hpp"

#include <utility>

#include "recurrence_heads.hpp"
#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

// Own positions of all columns become all positions of own columns, and back.

using Pieces = std::vector<const Matrix*>;

Matrix columns_for(const Place& place, const Matrix& matrix, int member) {
  return slice_columns(matrix, piece(matrix.columns(), member, place.degrees.cp));
}
Matrix positions_for(const Place& place, const Matrix& matrix, int member) {
  return slice_positions(matrix, place.samples, piece(place.positions, member, place.degrees.cp));
}
Matrix beside_each_other(const Place& /*place*/, const Pieces& pieces) {
  Matrix out = *pieces.front();
  for (std::size_t i = 1; i < pieces.size(); ++i) out = join_columns(out, *pieces[i]);
  return out;
}
Matrix behind_each_other(const Place& place, const Pieces& pieces) { return join_positions(pieces, place.samples); }

/// All to all over cp, one exchange for all matrices: `cut` is what a member gets of one, `join` makes one of what all
/// sent.
Task<std::vector<Matrix>> exchanged(const Place& place, std::vector<Matrix> all,
                                    Matrix (*cut)(const Place&, const Matrix&, int),
                                    Matrix (*join)(const Place&, const Pieces&)) {
  const int ranks = place.degrees.cp;
  if (ranks == 1) co_return all;
  Contribution outgoing;
  for (int member = 0; member < ranks; ++member) {
    for (const Matrix& matrix : all) outgoing.push_back(cut(place, matrix, member));
  }
  const auto rendezvous =
      co_await place.ranks.exchange(*place.context, place.rank, Collective::kAllToAll, std::move(outgoing));
  const int own = place.context->position(place.rank);
  const int count = static_cast<int>(all.size());
  for (int m = 0; m < count; ++m) {
    Pieces pieces;
    for (const Contribution& member : rendezvous->contributions) pieces.push_back(&at(member, own * count + m));
    at(all, m) = join(place, pieces);
  }
  co_return all;
}

Task<std::vector<Matrix>> to_heads(const Place& place, std::vector<Matrix> all) {
  return exchanged(place, std::move(all), columns_for, behind_each_other);
}
Task<std::vector<Matrix>> to_positions(const Place& place, std::vector<Matrix> all) {
  return exchanged(place, std::move(all), positions_for, beside_each_other);
}

std::vector<Parameter*> projections(const RecurrenceWeights& weights) {
  std::vector<Parameter*> all{weights.gate, weights.value, weights.key, weights.query, weights.step};
  if (weights.strength != nullptr) all.push_back(weights.strength);
  return all;
}

}  // namespace

Task<Matrix> recurrence(const Place& place, const RecurrenceWeights& weights, Matrix input, KeptRecurrence& kept) {
  std::vector<Matrix> projected;
  for (const Parameter* weight : projections(weights)) projected.push_back(product(input, weight->value));
  projected = co_await to_heads(place, std::move(projected));
  kept.gate = std::move(projected[0]);
  kept.value = std::move(projected[1]);
  kept.key = std::move(projected[2]);
  kept.query = std::move(projected[3]);
  kept.step = std::move(projected[4]);
  if (weights.strength != nullptr) kept.strength = std::move(projected[5]);
  std::vector<Matrix> given;
  given.push_back(heads_forward(place, weights, kept));
  given = co_await to_positions(place, std::move(given));
  kept.given = std::move(given.front());
  kept.input = std::move(input);
  co_return product(kept.given, weights.output->value);
}

Task<Matrix> recurrence_backward(const Place& place, const RecurrenceWeights& weights, const KeptRecurrence& kept,
                                 const Matrix& gradient) {
  add_product(*weights.output, kept.given, gradient);
  std::vector<Matrix> to_given;
  to_given.push_back(product_transposed(gradient, weights.output->value));
  to_given = co_await to_heads(place, std::move(to_given));
  std::vector<Matrix> to_projected = heads_backward(place, weights, kept, to_given.front());
  to_projected = co_await to_positions(place, std::move(to_projected));
  Matrix out(kept.input.rows(), kept.input.columns());
  const std::vector<Parameter*> all = projections(weights);
  for (std::size_t i = 0; i < all.size(); ++i) {
    add_product(*all[i], kept.input, to_projected[i]);
    out += product_transposed(to_projected[i], all[i]->value);
  }
  co_return out;
}

}  // namespace tangram::execute
