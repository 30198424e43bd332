#include "slice_price.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tangram/base/at.hpp"
#include "tangram/model/slice.hpp"
#include "tangram/model/split.hpp"

namespace tangram::accuracy {
namespace {

/// Samples of a chunk that make one of the language model.
std::int64_t items_in(const Experiment& experiment, const Chunk& chunk) {
  return chunk.last <= model::encoder_blocks(experiment.model) ? experiment.items : 1;
}

model::SliceSignature signature_of(const Experiment& experiment, const Chunk& chunk, int blocks) {
  const model::Model& model = experiment.model;
  model::SliceSignature slice;
  const int first = std::min(static_cast<int>(chunk.first), model.block_count() - 1);
  for (int i = first; i < first + blocks; ++i) {
    const int type = at(model.blocks, std::min(i, model.block_count() - 1));
    if (slice.runs.empty() || slice.runs.back().first != type) slice.runs.emplace_back(type, 0);
    ++slice.runs.back().second;
  }
  slice.embedding = chunk.embedding;
  slice.head = chunk.head;
  slice.tied_elsewhere = model.tied_embeddings && chunk.embedding != chunk.head;
  slice.entry_bytes = chunk.embedding && chunk.first == 0 ? 0 : passed_bytes(experiment, chunk.first);
  slice.exit_bytes = chunk.head ? 0 : passed_bytes(experiment, chunk.last) / items_in(experiment, chunk);
  return slice;
}

SlicePrice price_whole(const Experiment& experiment, const Chunk& chunk, const cost::UnitCosts& units, int blocks,
                       cost::RecomputeMode mode) {
  const auto slice = signature_of(experiment, chunk, blocks);
  const cost::StageCoster coster(units, slice, experiment.zero);
  const cost::StageCost cost = coster.cost(mode, mode == cost::RecomputeMode::kFull ? blocks : 0);
  SlicePrice price;
  price.forward = to_seconds(cost.forward);
  price.backward = to_seconds(cost.backward);
  price.sync = to_seconds(cost.gradient_sync);
  price.step = to_seconds(cost.optimizer_step);
  price.last_sync = coster.last_sync();
  price.static_memory = cost.static_memory().as_double();
  if (experiment.keeps_both_gradients) {
    const model::Job& job = experiment.model.job;
    price.static_memory +=
        cost.gradients.as_double() * static_cast<double>(job.parameter_bytes) / static_cast<double>(job.gradient_bytes);
  }
  price.transient = cost.transient.as_double();
  price.update = coster.update().as_double();
  price.activation = cost.activation.as_double();
  price.gradient_volume = cost.gradient_volume.as_double();
  return price;
}

/// The two whole numbers around x, and the weight of the upper one.
struct Between {
  int low = 0;
  double weight = 0;
  explicit Between(double x) : low(static_cast<int>(std::floor(x + 1e-9))), weight(std::max(0.0, x - low)) {
    if (weight < 1e-9) weight = 0;
  }
};

}  // namespace

void SlicePrice::add(const SlicePrice& other, double weight) {
  forward += weight * other.forward;
  backward += weight * other.backward;
  sync += weight * other.sync;
  step += weight * other.step;
  last_sync += weight * other.last_sync;
  static_memory += weight * other.static_memory;
  transient = std::max(transient, other.transient);
  update += weight * other.update;
  activation += weight * other.activation;
  gradient_volume += weight * other.gradient_volume;
}

std::int64_t passed_bytes(const Experiment& experiment, double blocks) {
  const model::Model& model = experiment.model;
  if (model.block_count() < 2) return 0;
  const int cut = std::clamp(static_cast<int>(blocks), 1, model.block_count() - 1);
  if (cut == model::encoder_blocks(model)) return model::encoder_output_bytes(model, 0) * experiment.items;
  return model::cut_bytes(model, cut);
}

SlicePrice price_chunk(const Experiment& experiment, const Chunk& chunk, const cost::UnitCosts& units) {
  const double count = chunk.last - chunk.first;
  const Between blocks(count);
  const double full = count > 0 ? chunk.recomputed / count : 0;
  const double selective = count > 0 ? chunk.selective / count : 0;
  const std::pair<cost::RecomputeMode, double> modes[] = {{cost::RecomputeMode::kNone, 1 - full - selective},
                                                          {cost::RecomputeMode::kSelective, selective},
                                                          {cost::RecomputeMode::kFull, full}};
  SlicePrice price;
  for (const int up : {0, 1}) {
    const double block_weight = up == 1 ? blocks.weight : 1 - blocks.weight;
    for (const auto& [mode, share] : modes) {
      const double weight = block_weight * share;
      if (weight > 1e-9) price.add(price_whole(experiment, chunk, units, blocks.low + up, mode), weight);
    }
  }
  return price;
}

}  // namespace tangram::accuracy
