#include "encoder.hpp"

#include <algorithm>
#include <string>

#include "weight_layout.hpp"

#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

Place lane_place(const Job& job, int rank, const cost::EncoderLayout& layout, const std::vector<int>& lane,
                 Communicator& communicator) {
  Place place{communicator, rank};
  place.degrees.tp = layout.tp;
  place.degrees.sequence_parallel = layout.sequence_parallel;
  place.tp = rank - lane.front();
  place.positions = job.model.positions;
  return place;
}

}  // namespace

EncoderProgram::EncoderProgram(const Job& job, int rank, int number, Communicator& communicator,
                               std::deque<Parameter>& parameters, const Misbehaviour& misbehaviour)
    : job_(job),
      encoder_(at(job.encoders, number)),
      number_(number),
      misbehaviour_(misbehaviour),
      pipeline_(job.pipeline_of(at(job.ranks, rank))),
      handover_(job, pipeline_, encoder_.layout.tp),
      lane_(handover_.lane_of(rank)),
      place_(lane_place(job, rank, encoder_.layout, handover_.ranks_of(lane_), communicator)) {
  find_groups();
  make_weights(parameters);
}

// All lanes of all pipelines hold the same weights, each rank of a lane its slices.
void EncoderProgram::find_groups() {
  place_.tensor = place_.ranks.group("tp of encoder " + encoder_.name, handover_.ranks_of(lane_));
  place_.context = place_.experts = place_.ranks.group("rank of encoder " + encoder_.name, {place_.rank});
  std::vector<int> members;
  for (const JobPipeline& pipeline : job_.pipelines) {
    const Handover lanes(job_, pipeline, encoder_.layout.tp);
    for (int lane = 0; lane < lanes.lanes(); ++lane) members.push_back(at(lanes.ranks_of(lane), place_.tp));
  }
  copies_.all = copies_.shards = place_.ranks.group("lanes of encoder " + encoder_.name, std::move(members));
  copies_.replicas = place_.context;
}

void EncoderProgram::make_weights(std::deque<Parameter>& parameters) {
  constexpr int kPerBlock = 10'000;         // more weights than a block has
  constexpr int kPerEncoder = 100'000'000;  // more than an encoder has
  WeightLayout layout{place_, job_.model, copies_, copies_, parameters, false, number_};
  const cost::BlockPolicy policy{encoder_.layout.zero1 ? 1 : 0, encoder_.layout.recompute};
  const int first = -(number_ + 1) * kPerEncoder;  // in front of the language model's
  layout.zero = policy.zero;
  layout.order = first;
  layout.list = &embedding_list_;
  layout.trained = encoder_.trained_patches;
  embedding_.tokens = layout.table(encoder_.name + " patch table");
  embedding_.positions = layout.positions(encoder_.name + " position table");
  for (std::size_t b = 0; b < encoder_.blocks.size(); ++b) {
    const SmallBlock& shape = encoder_.blocks[b];
    layout.order = first + (static_cast<int>(b) + 1) * kPerBlock;
    blocks_.push_back(layout.block(encoder_.name + " block " + std::to_string(shape.index), shape, policy));
  }
  if (!encoder_.connector) return;
  layout.list = &connector_list_;
  layout.trained = encoder_.trained_connector;
  layout.order = first + (static_cast<int>(encoder_.blocks.size()) + 1) * kPerBlock;
  connector_ = layout.wide_feed_forward(encoder_.name + " connector", job_.model.connector_width, false);
}

std::vector<std::int64_t> EncoderProgram::samples_of(std::int64_t microbatch) const {
  const SampleRange own = handover_.share(handover_.round(microbatch), lane_);
  std::vector<std::int64_t> samples;
  for (std::int64_t sample = own.first; sample < own.last; ++sample) {
    if (encoder_.has_items(sample)) samples.push_back(sample);
  }
  return samples;
}

std::int64_t EncoderProgram::planned_held() const {
  if (!encoder_.trains()) return 0;
  const std::int64_t rounds = job_.three_phases ? 1 : pipeline_.microbatches;
  std::size_t most = 0;
  for (std::int64_t round = 0; round < rounds; ++round) most = std::max(most, samples_of(round).size());
  return static_cast<std::int64_t>(most);
}

Task<Matrix> EncoderProgram::encode(std::int64_t sample, Kept& kept) {
  place_.samples = 1;
  std::vector<std::int64_t> alone{sample};
  Stream stream = co_await embed(place_, job_.model, embedding_, std::move(alone));
  kept.blocks.resize(blocks_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    stream.current = co_await execute::forward(place_, blocks_[b], std::move(stream.current), kept.blocks[b]);
  }
  if (!encoder_.connector) co_return std::move(stream.current);
  Matrix wide = co_await place_.enter(std::move(stream.current));
  Matrix sum = feed_forward(connector_, std::move(wide), kept.connector);
  co_return co_await place_.leave(std::move(sum));
}

// No further than to the first thing that is trained.
Task<void> EncoderProgram::encode_backward(std::int64_t sample, Kept& kept, Matrix gradient) {
  place_.samples = 1;
  if (encoder_.connector) {
    const Matrix d = co_await place_.leave_backward(std::move(gradient));
    Matrix to_wide = feed_forward_backward(connector_, kept.connector, d);
    gradient = co_await place_.enter_backward(std::move(to_wide));
  }
  for (std::size_t b = blocks_.size(); b-- > encoder_.first_trained();) {
    gradient = co_await execute::backward(place_, blocks_[b], kept.blocks[b], std::move(gradient));
  }
  if (!encoder_.trained_patches) co_return;
  std::vector<std::int64_t> alone{sample};
  Stream to_input;
  to_input.current = std::move(gradient);
  co_await embed_backward(place_, job_.model, embedding_, std::move(alone), std::move(to_input));
}

void EncoderProgram::send(std::int64_t sample, const Matrix& made) {
  place_.samples = 1;
  const Matrix shard = place_.to_shard(made);
  const Range held = place_.shard_range();
  for (const Piece& reader : handover_.readers(sample)) {
    const Range positions = common(held, reader.positions);
    if (positions.length() == 0) continue;
    place_.ranks.send({place_.rank, reader.rank, number_, false, sample, kHandover},
                      rows_of(shard, 0, held, positions));
  }
}

Task<Matrix> EncoderProgram::receive(std::int64_t sample) {
  place_.samples = 1;
  const Range held = place_.shard_range();
  Matrix shard(held.length(), job_.model.width);
  for (const Piece& reader : handover_.readers(sample)) {
    const Range positions = common(held, reader.positions);
    if (positions.length() == 0) continue;
    const MessageKey key{reader.rank, place_.rank, number_, true, sample, kHandover};
    const Matrix rows = co_await place_.ranks.receive(key);
    put_rows(shard, 0, held, positions, rows);
  }
  returned_[sample] = shard;
  co_return co_await place_.from_shard(std::move(shard));
}

Task<void> EncoderProgram::forward(std::int64_t microbatch) {
  const std::vector<std::int64_t> samples = samples_of(microbatch);
  for (const std::int64_t sample : samples) {
    Kept& kept = held_[sample];
    const Matrix made = co_await encode(sample, kept);
    if (!encoder_.trains() || misbehaviour_.frees_early) held_.clear();
    most_held_ = std::max(most_held_, static_cast<std::int64_t>(held_.size()));
    send(sample, made);
  }
}

Task<void> EncoderProgram::backward(std::int64_t microbatch) {
  if (!encoder_.trains()) co_return;
  const std::vector<std::int64_t> samples = samples_of(microbatch);
  for (const std::int64_t sample : samples) {
    Matrix gradient = co_await receive(sample);
    Kept& kept = held_[sample];
    if (misbehaviour_.frees_early) const Matrix again = co_await encode(sample, kept);
    co_await encode_backward(sample, kept, std::move(gradient));
    held_.erase(sample);
  }
}

}  // namespace tangram::execute
