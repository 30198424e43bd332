#include "context_exchange.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tangram::execute {

namespace {

/// All to all over cp, one exchange for all matrices: what this rank gets of each from each member.
Task<std::vector<std::vector<Matrix>>> exchanged(const Place& place, std::vector<Contribution> of_members) {
  const std::size_t count = of_members.front().size();
  Contribution outgoing;
  for (Contribution& pieces : of_members) std::ranges::move(pieces, std::back_inserter(outgoing));
  const auto rendezvous =
      co_await place.ranks.exchange(*place.context, place.rank, Collective::kAllToAll, std::move(outgoing));
  const auto own = static_cast<std::size_t>(place.context->position(place.rank));
  std::vector<std::vector<Matrix>> received(count);
  for (const Contribution& member : rendezvous->contributions) {
    for (std::size_t m = 0; m < count; ++m) received[m].push_back(member[own * count + m]);
  }
  co_return received;
}

Matrix behind_each_other(const std::vector<Matrix>& pieces, int samples) {
  std::vector<const Matrix*> all;
  for (const Matrix& piece : pieces) all.push_back(&piece);
  return join_positions(all, samples);
}

Matrix added_up(const std::vector<Matrix>& pieces, const ColumnShares& shares) {
  int width = 0;
  for (const Range& share : shares) width = std::max(width, share.last);
  Matrix out(pieces.front().rows(), width);
  for (std::size_t member = 0; member < pieces.size(); ++member) {
    for (int row = 0; row < out.rows(); ++row) {
      double* into = out.row(row) + shares[member].first;
      const double* from = pieces[member].row(row);
      for (int c = 0; c < shares[member].length(); ++c) into[c] += from[c];
    }
  }
  return out;
}

}  // namespace

ColumnShares equal_columns(const Place& place, int columns) {
  ColumnShares shares;
  for (int member = 0; member < place.degrees.cp; ++member) shares.push_back(piece(columns, member, place.degrees.cp));
  return shares;
}

Task<std::vector<Matrix>> to_heads(const Place& place, std::vector<Matrix> all, std::vector<ColumnShares> shares) {
  if (place.degrees.cp == 1) co_return all;
  std::vector<Contribution> outgoing(static_cast<std::size_t>(place.degrees.cp));
  for (std::size_t member = 0; member < outgoing.size(); ++member) {
    for (std::size_t m = 0; m < all.size(); ++m) {
      outgoing[member].push_back(slice_columns(all[m], shares[m][member]));
    }
  }
  const std::vector<std::vector<Matrix>> received = co_await exchanged(place, std::move(outgoing));
  for (std::size_t m = 0; m < all.size(); ++m) all[m] = behind_each_other(received[m], place.samples);
  co_return all;
}

Task<std::vector<Matrix>> to_positions(const Place& place, std::vector<Matrix> all, std::vector<ColumnShares> shares) {
  if (place.degrees.cp == 1) co_return all;
  std::vector<Contribution> outgoing(static_cast<std::size_t>(place.degrees.cp));
  for (std::size_t member = 0; member < outgoing.size(); ++member) {
    const Range range = piece(place.positions, static_cast<int>(member), place.degrees.cp);
    for (const Matrix& matrix : all) outgoing[member].push_back(slice_positions(matrix, place.samples, range));
  }
  const std::vector<std::vector<Matrix>> received = co_await exchanged(place, std::move(outgoing));
  for (std::size_t m = 0; m < all.size(); ++m) all[m] = added_up(received[m], shares[m]);
  co_return all;
}

}  // namespace tangram::execute
