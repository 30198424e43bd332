// A recurrence as layers have it: projections, an exchange of positions for heads over cp, what happens between
// (recurrence_heads.hpp), the exchange back and the projection back.
#include "recurrence.hpp"

#include <utility>

#include "context_exchange.hpp"
#include "recurrence_heads.hpp"

namespace tangram::execute {

namespace {

std::vector<Parameter*> projections(const RecurrenceWeights& weights) {
  std::vector<Parameter*> all{weights.gate, weights.value, weights.key, weights.query, weights.step};
  if (weights.strength != nullptr) all.push_back(weights.strength);
  return all;
}

std::vector<ColumnShares> equal_columns_of(const Place& place, const std::vector<Matrix>& all, int of_all) {
  std::vector<ColumnShares> shares;
  for (const Matrix& matrix : all) shares.push_back(equal_columns(place, matrix.columns() * of_all));
  return shares;
}

/// Own positions of all columns become all positions of own columns, and back.
Task<std::vector<Matrix>> to_own_columns(const Place& place, std::vector<Matrix> all) {
  std::vector<ColumnShares> shares = equal_columns_of(place, all, 1);
  return to_heads(place, std::move(all), std::move(shares));
}
Task<std::vector<Matrix>> to_own_positions(const Place& place, std::vector<Matrix> all) {
  std::vector<ColumnShares> shares = equal_columns_of(place, all, place.degrees.cp);
  return to_positions(place, std::move(all), std::move(shares));
}

}  // namespace

Task<Matrix> recurrence(const Place& place, const RecurrenceWeights& weights, Matrix input, KeptRecurrence& kept) {
  std::vector<Matrix> projected;
  for (const Parameter* weight : projections(weights)) projected.push_back(product(input, weight->value));
  projected = co_await to_own_columns(place, std::move(projected));
  kept.gate = std::move(projected[0]);
  kept.value = std::move(projected[1]);
  kept.key = std::move(projected[2]);
  kept.query = std::move(projected[3]);
  kept.step = std::move(projected[4]);
  if (weights.strength != nullptr) kept.strength = std::move(projected[5]);
  std::vector<Matrix> given;
  given.push_back(heads_forward(place, weights, kept));
  given = co_await to_own_positions(place, std::move(given));
  kept.given = std::move(given.front());
  kept.input = std::move(input);
  co_return product(kept.given, weights.output->value);
}

Task<Matrix> recurrence_backward(const Place& place, const RecurrenceWeights& weights, const KeptRecurrence& kept,
                                 const Matrix& gradient) {
  add_product(*weights.output, kept.given, gradient);
  std::vector<Matrix> to_given;
  to_given.push_back(product_transposed(gradient, weights.output->value));
  to_given = co_await to_own_columns(place, std::move(to_given));
  std::vector<Matrix> to_projected = heads_backward(place, weights, kept, to_given.front());
  to_projected = co_await to_own_positions(place, std::move(to_projected));
  Matrix out(kept.input.rows(), kept.input.columns());
  const std::vector<Parameter*> all = projections(weights);
  for (std::size_t i = 0; i < all.size(); ++i) {
    add_product(*all[i], kept.input, to_projected[i]);
    out += product_transposed(to_projected[i], all[i]->value);
  }
  co_return out;
}

}  // namespace tangram::execute
