#include "place.hpp"

namespace tangram::execute {

Task<Matrix> Place::enter(Matrix activation) const {
  if (!sequence_parallel()) co_return activation;
  co_return co_await ranks.gather_positions(*tensor, rank, std::move(activation), samples);
}

Task<Matrix> Place::enter_backward(Matrix gradient) const { return leave(std::move(gradient)); }

Task<Matrix> Place::leave(Matrix partial) const {
  if (sequence_parallel()) return ranks.scatter_positions(*tensor, rank, std::move(partial), samples);
  return ranks.all_reduce(*tensor, rank, std::move(partial));
}

Task<Matrix> Place::leave_backward(Matrix gradient) const { return enter(std::move(gradient)); }

Matrix Place::to_shard(const Matrix& activation) const {
  if (sequence_parallel() || degrees.tp == 1) return activation;
  return slice_positions(activation, samples, tensor_range());
}

Task<Matrix> Place::from_shard(Matrix shard) const {
  if (sequence_parallel() || degrees.tp == 1) co_return shard;
  co_return co_await ranks.gather_positions(*tensor, rank, std::move(shard), samples);
}

}  // namespace tangram::execute
