// A mixture of experts over an expert group: each rank sends its tokens to the ranks that hold the chosen experts (all
// to all over ep, to every expert-tp rank of the owner), these answer with their parts of the sum, and the sender adds
// them up, weighted by the softmax of the router.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "layers.hpp"
#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

int held_by(const Place& place, const ExpertsWeights& weights) { return weights.experts / place.degrees.ep; }

Matrix softmax_rows(Matrix scores) {
  for (int i = 0; i < scores.rows(); ++i) {
    double* row = scores.row(i);
    const double highest = *std::max_element(row, row + scores.columns());
    double sum = 0;
    for (int j = 0; j < scores.columns(); ++j) sum += row[j] = std::exp(row[j] - highest);
    for (int j = 0; j < scores.columns(); ++j) row[j] /= sum;
  }
  return scores;
}

/// The numbers of the `chosen` highest scores; of equal ones the first.
std::vector<int> highest(const std::vector<double>& scores, int chosen) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::partial_sort(order, order.begin() + chosen, [&](int a, int b) {
    return at(scores, a) != at(scores, b) ? at(scores, a) > at(scores, b) : a < b;
  });
  order.resize(static_cast<std::size_t>(chosen));
  return order;
}

/// Those of a row, without experts of other groups than the best ones, which are as good as their best expert (arXiv
/// 2405.04434, section 2.2.2).
std::vector<double> scores_of(const Matrix& gates, int row, const ExpertsWeights& weights) {
  std::vector<double> scores(gates.row(row), gates.row(row) + gates.columns());
  if (weights.chosen_groups == weights.groups) return scores;
  const int each = gates.columns() / weights.groups;
  std::vector<double> best;
  for (int g = 0; g < weights.groups; ++g) {
    best.push_back(*std::max_element(scores.begin() + g * each, scores.begin() + (g + 1) * each));
  }
  std::vector<double> allowed(scores.size(), -1);  // gates are not negative
  for (const int g : highest(best, weights.chosen_groups)) {
    std::copy_n(scores.begin() + g * each, each, allowed.begin() + g * each);
  }
  return allowed;
}

/// Rows of the input for each expert: every row goes to those with the highest gates.
std::vector<std::vector<int>> route(const Matrix& gates, const ExpertsWeights& weights) {
  std::vector<std::vector<int>> rows(static_cast<std::size_t>(gates.columns()));
  for (int i = 0; i < gates.rows(); ++i) {
    for (const int expert : highest(scores_of(gates, i, weights), weights.chosen)) at(rows, expert).push_back(i);
  }
  return rows;
}

Matrix take_rows(const Matrix& from, const std::vector<int>& rows) {
  Matrix out(static_cast<int>(rows.size()), from.columns());
  for (int i = 0; i < out.rows(); ++i) {
    std::copy_n(from.row(at(rows, i)), out.columns(), out.row(i));
  }
  return out;
}

/// Rows that the members sent an expert, one member's behind the other's.
Matrix stacked(const std::vector<Contribution>& members, std::size_t expert, std::vector<int>& counts) {
  int rows = 0;
  for (const Contribution& member : members) {
    counts.push_back(member[expert].rows());
    rows += counts.back();
  }
  Matrix out(rows, members.front()[expert].columns());
  auto to = out.values().begin();
  for (const Contribution& member : members) to = std::ranges::copy(member[expert].values(), to).out;
  return out;
}

Task<Dispatched> dispatch(const Place& place, const ExpertsWeights& weights, Contribution per_expert) {
  const auto rendezvous =
      co_await place.ranks.exchange(*place.experts, place.rank, Collective::kAllToAll, std::move(per_expert));
  const int held = held_by(place, weights);
  Dispatched arrived;
  for (int e = 0; e < held; ++e) {
    std::vector<int>& counts = arrived.counts.emplace_back();
    arrived.rows.push_back(stacked(rendezvous->contributions, flat_index(place.ep, held, e), counts));
  }
  co_return arrived;
}

/// Sends answers back, `answers[held expert]` stacked like what arrived, and adds up the owner's expert-tp parts of
/// what comes back: one matrix per expert, for the rows that this rank had sent.
Task<std::vector<Matrix>> combine(const Place& place, const ExpertsWeights& weights, const Dispatched& arrived,
                                  const std::vector<Matrix>& answers) {
  const int members = place.experts->size();
  const int held = held_by(place, weights);
  Contribution contribution(static_cast<std::size_t>(members * held));
  for (int e = 0; e < held; ++e) {
    const Matrix& all = at(answers, e);
    int next = 0;
    for (int m = 0; m < members; ++m) {
      Matrix one(at(at(arrived.counts, e), m), all.columns());
      for (int i = 0; i < one.rows(); ++i) std::copy_n(all.row(next++), all.columns(), one.row(i));
      contribution[flat_index(m, held, e)] = std::move(one);
    }
  }
  const auto rendezvous =
      co_await place.ranks.exchange(*place.experts, place.rank, Collective::kAllToAll, std::move(contribution));
  const int own = place.experts->position(place.rank);
  std::vector<Matrix> result;
  for (int expert = 0; expert < weights.experts; ++expert) {
    const int owner = expert / held * place.degrees.etp;
    const std::size_t index = flat_index(own, held, expert % held);
    Matrix sum = at(rendezvous->contributions, owner)[index];
    for (int t = 1; t < place.degrees.etp; ++t) sum += at(rendezvous->contributions, owner + t)[index];
    result.push_back(std::move(sum));
  }
  co_return result;
}

}  // namespace

Task<Matrix> experts(const Place& place, const ExpertsWeights& weights, Matrix input, KeptExperts& kept) {
  kept.gates = softmax_rows(product(input, weights.router->value));
  kept.rows = route(kept.gates, weights);
  Contribution outgoing;
  const Matrix sent = weights.down != nullptr ? product(input, weights.down->value) : input;
  for (const auto& rows : kept.rows) outgoing.push_back(take_rows(sent, rows));
  kept.arrived = co_await dispatch(place, weights, std::move(outgoing));
  std::vector<Matrix> answers;
  answers.reserve(weights.held.size());
  kept.held.resize(weights.held.size());
  for (std::size_t e = 0; e < weights.held.size(); ++e) {
    answers.push_back(feed_forward(weights.held[e], std::move(kept.arrived.rows[e]), kept.held[e]));
  }
  kept.answers = co_await combine(place, weights, kept.arrived, answers);
  Matrix out(input.rows(), sent.columns());
  for (int e = 0; e < weights.experts; ++e) {
    const auto& rows = at(kept.rows, e);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double* answer = at(kept.answers, e).row(static_cast<int>(i));
      for (int j = 0; j < out.columns(); ++j) out.at(rows[i], j) += kept.gates.at(rows[i], e) * answer[j];
    }
  }
  kept.input = std::move(input);
  if (weights.up == nullptr) co_return out;
  kept.latent = std::move(out);
  co_return product(kept.latent, weights.up->value);
}

// y = sum over chosen e of g_e f_e(x), g = softmax(x R):  df_e = g_e dy,  dg_e = dy f_e(x),
// dscore_e = g_e (dg_e - sum over chosen of g dg), also for experts that were not chosen.
Task<Matrix> experts_backward(const Place& place, const ExpertsWeights& weights, const KeptExperts& kept,
                              Matrix gradient) {
  if (weights.up != nullptr) {
    add_product(*weights.up, kept.latent, gradient);
    gradient = product_transposed(gradient, weights.up->value);
  }
  Contribution outgoing;
  Matrix gates(kept.gates.rows(), kept.gates.columns());
  for (int e = 0; e < weights.experts; ++e) {
    const auto& rows = at(kept.rows, e);
    Matrix d = take_rows(gradient, rows);
    for (int i = 0; i < d.rows(); ++i) {
      const int row = at(rows, i);
      const double* answer = at(kept.answers, e).row(i);
      for (int j = 0; j < d.columns(); ++j) {
        gates.at(row, e) += d.at(i, j) * answer[j];
        d.at(i, j) *= kept.gates.at(row, e);
      }
    }
    outgoing.push_back(std::move(d));
  }
  const Dispatched arrived = co_await dispatch(place, weights, std::move(outgoing));
  std::vector<Matrix> answers;
  answers.reserve(weights.held.size());
  for (std::size_t e = 0; e < weights.held.size(); ++e) {
    answers.push_back(feed_forward_backward(weights.held[e], kept.held[e], arrived.rows[e]));
  }
  const std::vector<Matrix> inputs = co_await combine(place, weights, arrived, answers);

  for (int i = 0; i < gates.rows(); ++i) {
    double along = 0;
    for (int e = 0; e < weights.experts; ++e) along += kept.gates.at(i, e) * gates.at(i, e);
    for (int e = 0; e < weights.experts; ++e) gates.at(i, e) = kept.gates.at(i, e) * (gates.at(i, e) - along);
  }
  add_product(*weights.router, kept.input, gates);
  Matrix out = product_transposed(gates, weights.router->value);
  Matrix to_sent(kept.input.rows(), gradient.columns());
  for (int e = 0; e < weights.experts; ++e) {
    const auto& rows = at(kept.rows, e);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double* d = at(inputs, e).row(static_cast<int>(i));
      for (int j = 0; j < to_sent.columns(); ++j) to_sent.at(rows[i], j) += d[j];
    }
  }
  if (weights.down != nullptr) {
    add_product(*weights.down, kept.input, to_sent);
    to_sent = product_transposed(to_sent, weights.down->value);
  }
  out += to_sent;
  co_return out;
}

}  // namespace tangram::execute
