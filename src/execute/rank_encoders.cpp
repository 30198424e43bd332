// Colocated encoders and the language model on one rank: whose turn it is, and what the first stage reads and returns.
#include <algorithm>
#include <cstddef>

#include "rank.hpp"

#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

/// Of the samples that have any items, in their order.
std::vector<std::size_t> places_with_items(const JobEncoder& encoder, const std::vector<std::int64_t>& samples) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (encoder.has_items(samples[i])) places.push_back(i);
  }
  return places;
}

}  // namespace

void RankProgram::make_encoders(Communicator& communicator) {
  for (std::size_t e = 0; e < job_.encoders.size(); ++e) {
    encoders_.emplace_back(job_, place_.rank, static_cast<int>(e), communicator, parameters_, misbehaviour_);
  }
}

bool RankProgram::skips(const Pass& pass) const {
  if (!misbehaviour_.skips_absent) return false;
  const std::int64_t first = pipeline_.first_sample + pass.microbatch * pipeline_.microbatch;
  return std::ranges::all_of(job_.encoders, [&](const JobEncoder& encoder) {
    for (int s = 0; s < pipeline_.samples_of(pass.microbatch); ++s) {
      if (encoder.has_items(first + s)) return false;
    }
    return true;
  });
}

Task<void> RankProgram::encode(std::int64_t microbatch) {
  for (EncoderProgram& encoder : encoders_) co_await encoder.forward(microbatch);
}

Task<void> RankProgram::encode_backward(std::int64_t microbatch) {
  for (auto it = encoders_.rbegin(); it != encoders_.rend(); ++it) co_await it->backward(microbatch);
}

Task<void> RankProgram::add_encoded(std::vector<std::int64_t> samples, Matrix& stream) {
  for (std::size_t e = 0; e < job_.encoders.size(); ++e) {
    Matrix shard = co_await receive_encoded(static_cast<int>(e), samples);
    stream += co_await place_.from_shard(std::move(shard));
  }
}

Task<Matrix> RankProgram::receive_encoded(int encoder, std::vector<std::int64_t> samples) {
  const JobEncoder& from = at(job_.encoders, encoder);
  const Handover handover(job_, pipeline_, from.layout.tp);
  const Range held = place_.shard_range();
  const std::vector<std::size_t> places = places_with_items(from, samples);
  Matrix shard(place_.samples * held.length(), job_.model.width);
  for (std::size_t k = 0; k < places.size(); ++k) {
    const std::int64_t sample = samples[places[k]];
    const std::size_t place = misbehaviour_.reversed_embeddings ? places[places.size() - 1 - k] : places[k];
    const std::vector<Piece> makers = handover.makers(sample);
    for (const Piece& maker : makers) {
      const Range positions = common(held, maker.positions);
      if (positions.length() == 0) continue;
      const MessageKey key{maker.rank, place_.rank, encoder, false, sample, kHandover};
      const Matrix rows = co_await place_.ranks.receive(key);
      put_rows(shard, static_cast<int>(place), held, positions, rows);
    }
  }
  for (const std::size_t place : places) {
    embeddings_[{encoder, samples[place]}] = rows_of(shard, static_cast<int>(place), held, held);
  }
  co_return shard;
}

void RankProgram::return_gradients(const std::vector<std::int64_t>& samples, const Matrix& gradient) {
  if (encoders_.empty()) return;
  const Matrix shard = place_.to_shard(gradient);
  const Range held = place_.shard_range();
  for (std::size_t e = 0; e < job_.encoders.size(); ++e) {
    const JobEncoder& to = job_.encoders[e];
    if (!to.trains()) continue;
    const Handover handover(job_, pipeline_, to.layout.tp);
    const std::vector<std::size_t> places = places_with_items(to, samples);
    for (std::size_t k = 0; k < places.size(); ++k) {
      const std::int64_t sample = samples[places[k]];
      const std::size_t place = misbehaviour_.reversed_gradients ? places[places.size() - 1 - k] : places[k];
      for (const Piece& maker : handover.makers(sample)) {
        const Range positions = common(held, maker.positions);
        if (positions.length() == 0) continue;
        place_.ranks.send({place_.rank, maker.rank, static_cast<int>(e), true, sample, kHandover},
                          rows_of(shard, static_cast<int>(place), held, positions));
      }
    }
  }
}

}  // namespace tangram::execute
