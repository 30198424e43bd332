#include "rank.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>

#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

Place place_of(const Job& job, int rank, Communicator& communicator) {
  const JobRank& self = at(job.ranks, rank);
  const JobPart& part = job.part_of(self);
  return {communicator,
          rank,
          part.degrees,
          self.tp,
          self.cp,
          self.ep,
          self.etp,
          nullptr,
          nullptr,
          nullptr,
          at(part.lanes, self.dp).length(),
          job.model.positions};
}

/// Cells of the first range that lie in the second, counted from the second's begin.
Range within(Range range, Range frame) {
  return {std::max(range.first, frame.first) - frame.first, std::min(range.last, frame.last) - frame.first};
}

/// What is left of a range that ends earlier.
Range up_to(Range range, int end) { return {std::min(range.first, end), std::min(range.last, end)}; }

}  // namespace

RankProgram::RankProgram(const Job& job, int rank, Communicator& communicator, const Misbehaviour& misbehaviour)
    : job_(job),
      self_(at(job.ranks, rank)),
      pipeline_(job.pipeline_of(self_)),
      stage_(job.stage_of(self_)),
      part_(job.part_of(self_)),
      misbehaviour_(misbehaviour),
      place_(place_of(job, rank, communicator)) {
  find_groups();
  make_weights();
  make_encoders(communicator);
  make_routes();
}

std::vector<Route> RankProgram::routes(const std::vector<JobTransfer>& transfers, bool incoming) const {
  const Range samples = lane();
  const Range shard = place_.shard_range();
  std::vector<Route> routes;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const JobTransfer& t = transfers[i];
    if ((incoming ? t.target : t.source) != place_.rank) continue;
    if (!samples.holds(t.samples) || !shard.holds(t.positions)) {
      throw RunStopped{{"transfer-misdirected", "rank " + std::to_string(self_.number),
                        incoming ? "is sent what it does not work on" : "is to send what it does not have"}};
    }
    routes.push_back(
        {incoming ? t.source : t.target, static_cast<int>(i), within(t.samples, samples), within(t.positions, shard)});
  }
  return routes;
}

// Every cell of the shard exactly once, or the pass would compute on what was never sent.
void RankProgram::require_cover(const std::vector<Route>& routes, const std::string& what) const {
  const int length = place_.shard_range().length();
  Matrix times(place_.samples, length);
  for (const Route& route : routes) {
    for (int s = route.samples.first; s < route.samples.last; ++s) {
      for (int p = route.positions.first; p < route.positions.last; ++p) times.at(s, p) += 1;
    }
  }
  const auto refuse = [&](const char* code, const char* how) {
    throw RunStopped{{code, "rank " + std::to_string(self_.number), what + how}};
  };
  for (const double count : times.values()) {
    if (count < 1) refuse("transfer-missing", " leave out something that it works on");
    if (count > 1) refuse("transfer-duplicate", " bring something twice");
  }
}

void RankProgram::make_routes() {
  const std::int64_t s = self_.stage;
  const std::int64_t stages = std::ssize(pipeline_.stages);
  const bool round = pipeline_.chunks() > 1;
  if (s > 0 || round) {
    const std::int64_t before = (s + stages - 1) % stages;
    from_before_ = routes(at(pipeline_.boundaries, before), true);
    to_before_ = from_before_;
    require_cover(from_before_, "the transfers from stage " + std::to_string(at(pipeline_.stages, before).id));
  }
  if (s + 1 < stages || round) {
    to_behind_ = routes(at(pipeline_.boundaries, s), false);
    from_behind_ = to_behind_;
    require_cover(to_behind_, "the transfers to stage " + std::to_string(at(pipeline_.stages, (s + 1) % stages).id));
  }
}

Range RankProgram::lane() const { return at(part_.lanes, self_.dp); }

std::vector<std::int64_t> RankProgram::begin(std::int64_t microbatch) {
  const Range own = up_to(lane(), pipeline_.samples_of(microbatch));
  place_.samples = own.length();
  std::vector<std::int64_t> samples(static_cast<std::size_t>(place_.samples));
  std::iota(samples.begin(), samples.end(), pipeline_.first_sample + microbatch * pipeline_.microbatch + own.first);
  return samples;
}

std::span<Block> RankProgram::blocks_of(int chunk) {
  auto first = blocks_.begin();
  for (int c = 0; c < chunk; ++c) first += chunk_of(c).length();
  return {first, first + chunk_of(chunk).length()};
}

void RankProgram::send(const std::vector<Route>& routes, const Pass& pass, const Matrix& activation) {
  const int cut = position_of(pass.chunk) - (pass.backward ? 1 : 0);
  const Matrix shard = place_.to_shard(activation);
  const int length = place_.shard_range().length();
  for (const Route& route : routes) {
    const Range samples = up_to(route.samples, place_.samples);
    if (samples.length() == 0) continue;
    Matrix message(samples.length() * route.positions.length(), shard.columns());
    int row = 0;
    for (int s = samples.first; s < samples.last; ++s) {
      for (int p = route.positions.first; p < route.positions.last; ++p) {
        std::copy_n(shard.row(s * length + p), shard.columns(), message.row(row++));
      }
    }
    place_.ranks.send({place_.rank, route.peer, route.transfer, pass.backward, pass.microbatch, cut},
                      std::move(message));
  }
}

Task<Matrix> RankProgram::receive(const std::vector<Route>& routes, const Pass& pass, int columns) {
  const int cut = position_of(pass.chunk) - (pass.backward ? 0 : 1);
  const int length = place_.shard_range().length();
  Matrix shard(place_.samples * length, columns);
  for (const Route& route : routes) {
    const Range samples = up_to(route.samples, place_.samples);
    if (samples.length() == 0) continue;
    const MessageKey key{route.peer, place_.rank, route.transfer, pass.backward, pass.microbatch, cut};
    const Matrix message = co_await place_.ranks.receive(key);
    int row = 0;
    for (int s = samples.first; s < samples.last; ++s) {
      for (int p = route.positions.first; p < route.positions.last; ++p) {
        std::copy_n(message.row(row++), columns, shard.row(s * length + p));
      }
    }
  }
  co_return co_await place_.from_shard(std::move(shard));
}

// Behind the last encoder block text and stream are one; in front of it both cross the boundary.
Task<void> RankProgram::forward_pass(const Pass& pass) {
  const SmallModel& model = job_.model;
  const int first = chunk_of(pass.chunk).first;
  const std::span<Block> blocks = blocks_of(pass.chunk);
  KeptMicrobatch& kept = in_flight_[{pass.chunk, pass.microbatch}];
  most_in_flight_ = std::max(most_in_flight_, static_cast<std::int64_t>(in_flight_.size()));
  const std::vector<std::int64_t> samples = begin(pass.microbatch);
  Stream stream;
  if (has_embedding(pass.chunk)) {
    co_await gather(embedding_list_);
    stream = co_await embed(place_, model, embedding_, samples);
    co_await release(embedding_list_, false);
    co_await add_encoded(samples, stream.current);
  } else if (first <= model.encoder_blocks && model.encoder_blocks > 0) {
    const Matrix both = co_await receive(from_before_, pass, 2 * model.width);
    stream.current = slice_columns(both, {0, model.width});
    stream.text = slice_columns(both, {model.width, 2 * model.width});
  } else {
    stream.current = co_await receive(from_before_, pass, model.width);
  }
  kept.blocks.resize(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (!stream.text.empty() && first + static_cast<int>(b) == model.encoder_blocks) {
      stream.current += stream.text;
      stream.text = Matrix();
    }
    co_await gather(blocks[b].weights);
    stream.current = co_await forward(place_, blocks[b], std::move(stream.current), kept.blocks[b]);
    co_await release(blocks[b].weights, false);
  }
  if (has_head(pass.chunk)) {
    co_await gather(head_list_);
    const double tokens = static_cast<double>(job_.samples) * model.positions;
    samples_judged_ += std::ssize(samples);
    loss_ += co_await head(place_, model, head_, samples, tokens, std::move(stream.current), kept.head);
    co_await release(head_list_, false);
  } else if (!stream.text.empty()) {
    send(to_behind_, pass, join_columns(stream.current, stream.text));
  } else {
    send(to_behind_, pass, stream.current);
  }
}

Task<void> RankProgram::backward_pass(const Pass& pass) {
  const SmallModel& model = job_.model;
  const Range chunk = chunk_of(pass.chunk);
  const std::span<Block> blocks = blocks_of(pass.chunk);
  const auto found = in_flight_.find({pass.chunk, pass.microbatch});
  if (found == in_flight_.end()) {
    throw RunStopped{{"pass-order", "rank " + std::to_string(self_.number),
                      "runs backward " + std::to_string(pass.microbatch) + " of chunk " + std::to_string(pass.chunk) +
                          " before its forward pass"}};
  }
  KeptMicrobatch& kept = found->second;
  const std::vector<std::int64_t> samples = begin(pass.microbatch);
  Stream gradient;
  if (has_head(pass.chunk)) {
    co_await gather(head_list_);
    gradient.current = co_await head_backward(place_, head_, kept.head);
    co_await release(head_list_, true);
  } else if (chunk.last <= model.encoder_blocks) {
    const Matrix both = co_await receive(from_behind_, pass, 2 * model.width);
    gradient.current = slice_columns(both, {0, model.width});
    gradient.text = slice_columns(both, {model.width, 2 * model.width});
  } else {
    gradient.current = co_await receive(from_behind_, pass, model.width);
  }
  if (has_embedding(pass.chunk) && misbehaviour_.gradients_of_next) return_gradients(samples, gradient.current);
  for (std::size_t b = blocks.size(); b-- > 0;) {
    co_await gather(blocks[b].weights);
    gradient.current = co_await backward(place_, blocks[b], kept.blocks[b], std::move(gradient.current));
    if (stage_.puts_off) keep_put_off(blocks[b], pass.microbatch);
    co_await release(blocks[b].weights, !stage_.puts_off);
    const int index = chunk.first + static_cast<int>(b);
    if (model.encoder_blocks > 0 && index == model.encoder_blocks) gradient.text = gradient.current;
  }
  if (has_embedding(pass.chunk)) {
    if (!misbehaviour_.gradients_of_next) return_gradients(samples, gradient.current);
    co_await gather(embedding_list_);
    co_await embed_backward(place_, model, embedding_, samples, std::move(gradient));
    co_await release(embedding_list_, true);
  } else if (!gradient.text.empty()) {
    send(to_before_, pass, join_columns(gradient.current, gradient.text));
  } else {
    send(to_before_, pass, gradient.current);
  }
  in_flight_.erase(found);
}

void RankProgram::keep_put_off(const Block& block, std::int64_t microbatch) {
  std::vector<PutOffProduct>& kept = put_off_[microbatch];
  for (Parameter* p : block.weights) {
    for (auto& [read, gave] : p->put_off) kept.push_back({p, std::move(read), std::move(gave)});
    p->put_off.clear();
  }
}

// From ZeRO-2 on this is where the gradients of a microbatch are whole, and summed over copies.
Task<void> RankProgram::weight_pass(const Pass& pass) {
  const auto found = put_off_.find(pass.microbatch);
  if (found == put_off_.end()) {
    throw RunStopped{{"pass-order", "rank " + std::to_string(self_.number),
                      "has put off no weight gradients of microbatch " + std::to_string(pass.microbatch)}};
  }
  const bool forgets = misbehaviour_.forgetful_stage == stage_.id && pass.microbatch == 0;
  for (const PutOffProduct& product : found->second) {
    if (!forgets) add_transposed_product(product.weight->gradient, product.read, product.gave);
  }
  put_off_.erase(found);
  for (Block& block : blocks_) co_await release(block.weights, true);
}

Task<void> RankProgram::run_pass(const Pass& pass) {
  if (skips(pass)) co_return;
  if (pass.weights) {
    co_await weight_pass(pass);
  } else if (pass.backward) {
    co_await backward_pass(pass);
    if (takes_turns()) co_await encode_backward(pass.microbatch);
  } else {
    if (takes_turns()) co_await encode(pass.microbatch);
    co_await forward_pass(pass);
  }
}

Task<void> RankProgram::run() {
  if (job_.three_phases) co_await encode(0);
  if (stage_.puts_off) {
    for (const Pass& pass : zero_bubble_passes(pipeline_.microbatches, stage_.warmup, stage_.put_off)) {
      co_await run_pass(pass);
    }
  } else {
    const PassOrder order(pipeline_.microbatches, stage_.warmup, pipeline_.chunks(), pipeline_.group);
    for (std::int64_t k = 0; k < order.size(); ++k) {
      const Pass pass = order.at(k);
      co_await run_pass(pass);
    }
  }
  if (job_.three_phases) co_await encode_backward(0);
  co_await synchronise();
  co_await step();
}

}  // namespace tangram::execute
