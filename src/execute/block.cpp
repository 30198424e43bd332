#include "block.hpp"

#include <optional>
#include <utility>

namespace tangram::execute {

namespace {

Task<Matrix> mix(const Place& place, const Block& block, Matrix input, KeptBlock& kept) {
  if (block.recurrence) co_return co_await recurrence(place, *block.recurrence, std::move(input), kept.recurrence);
  co_return co_await attention(place, block.attention, std::move(input), block.keep_probabilities, kept.attention);
}

Task<Matrix> mix_backward(const Place& place, const Block& block, const KeptBlock& kept, const Matrix& gradient) {
  if (block.recurrence) co_return co_await recurrence_backward(place, *block.recurrence, kept.recurrence, gradient);
  co_return co_await attention_backward(place, block.attention, kept.attention, gradient);
}

// x -> a = x + mixer(norm x) -> a + feed-forward(norm a); with parallel attention both read norm x. Blocks may lack one
// of the two.
Task<Matrix> keep_all(const Place& place, const Block& block, Matrix input, KeptBlock& kept) {
  Matrix out = std::move(input);
  Matrix narrow, wide;
  if (block.first_norm != nullptr) {
    narrow = norm_forward(*block.first_norm, out, kept.first_norm);
    wide = co_await place.enter(narrow);
    Matrix mixed = co_await mix(place, block, wide, kept);
    out += co_await place.leave(std::move(mixed));
  }
  if (block.second_norm != nullptr) narrow = norm_forward(*block.second_norm, out, kept.second_norm);
  if (!block.wide.empty()) {
    if (!block.parallel_attention) wide = co_await place.enter(narrow);
    kept.wide.resize(block.wide.size());
    Matrix sum = feed_forward(block.wide.front(), wide, kept.wide.front());
    for (std::size_t i = 1; i < block.wide.size(); ++i) sum += feed_forward(block.wide[i], wide, kept.wide[i]);
    out += co_await place.leave(std::move(sum));
  }
  if (block.experts.experts > 0) {
    Matrix answers = co_await experts(place, block.experts, place.to_shard(narrow), kept.experts);
    out += co_await place.from_shard(std::move(answers));
  }
  co_return out;
}

}  // namespace

Task<Matrix> forward(const Place& place, const Block& block, Matrix input, KeptBlock& kept) {
  if (!block.recompute) co_return co_await keep_all(place, block, std::move(input), kept);
  kept.input = input;
  KeptBlock dropped;
  co_return co_await keep_all(place, block, std::move(input), dropped);
}

Task<Matrix> backward(const Place& place, const Block& block, KeptBlock& kept, Matrix gradient) {
  if (block.recompute) {
    Matrix input = std::move(kept.input);
    const Matrix again = co_await keep_all(place, block, std::move(input), kept);
  }
  Matrix to_narrow(gradient.rows(), gradient.columns());
  std::optional<Matrix> beside_attention;
  if (block.experts.experts > 0) {
    Matrix d = co_await experts_backward(place, block.experts, kept.experts, place.to_shard(gradient));
    to_narrow += co_await place.from_shard(std::move(d));
  }
  if (!block.wide.empty()) {
    const Matrix d = co_await place.leave_backward(gradient);
    Matrix to_wide = feed_forward_backward(block.wide.front(), kept.wide.front(), d);
    for (std::size_t i = 1; i < block.wide.size(); ++i) {
      to_wide += feed_forward_backward(block.wide[i], kept.wide[i], d);
    }
    if (block.parallel_attention) {
      beside_attention = std::move(to_wide);
    } else {
      to_narrow += co_await place.enter_backward(std::move(to_wide));
    }
  }
  if (block.second_norm != nullptr) gradient += norm_backward(*block.second_norm, kept.second_norm, to_narrow);
  if (block.first_norm == nullptr) co_return gradient;

  const Matrix d = co_await place.leave_backward(gradient);
  Matrix mixed = co_await mix_backward(place, block, kept, d);
  if (beside_attention) mixed += *beside_attention;
  Matrix to_normed = co_await place.enter_backward(std::move(mixed));
  if (block.parallel_attention) to_normed += to_narrow;
  gradient += norm_backward(*block.first_norm, kept.first_norm, to_normed);
  co_return gradient;
}

}  // namespace tangram::execute
