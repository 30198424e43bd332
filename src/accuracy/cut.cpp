#include "cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "reason.hpp"
#include "tangram/base/at.hpp"

namespace tangram::accuracy {
namespace {

std::int64_t sum_of(const std::vector<int>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

/// Equal numbers; where they do not divide, embedding and head count as one layer each; else the last ones get less.
Expected<Cut> even_cut(int layers, std::int64_t positions) {
  const bool ends_count = positions > 1 && layers % positions != 0 && (layers + 2) % positions == 0;
  if (layers < positions && !ends_count) {
    return fail(reason(fmt::format("{} layers cannot fill {} pipeline positions", layers, positions)));
  }
  Cut cut;
  const std::int64_t each = (ends_count ? layers + 2 : layers) / positions;
  cut.blocks.assign(static_cast<std::size_t>(positions), static_cast<double>(each));
  if (ends_count) {
    cut.blocks.front() -= 1;
    cut.blocks.back() -= 1;
    return cut;
  }
  for (std::int64_t i = 0; i < layers % positions; ++i) at(cut.blocks, i) += 1;
  return cut;
}

/// Layers as printed, where the two ends may count embedding and head as layers of their own.
Expected<Cut> printed_cut(const std::vector<int>& printed, int layers) {
  Cut cut;
  cut.blocks.assign(printed.begin(), printed.end());
  const std::int64_t sum = sum_of(printed);
  if (sum == layers + 2) {
    cut.blocks.front() -= 1;
    cut.blocks.back() -= 1;
  }
  if ((sum != layers && sum != layers + 2) || cut.blocks.front() < 0 || cut.blocks.back() < 0) {
    return fail(reason(fmt::format("layers per stage do not add up to {} layers", layers)));
  }
  return cut;
}

/// A partition into units, of which blocks are the middle ones: "embed, noop, 24 blocks, noop, noop, embed2v, noop".
Expected<Cut> unit_cut(const std::vector<int>& partition, int layers) {
  constexpr int kBefore = 2;
  const int end = kBefore + layers;
  if (!std::ranges::is_sorted(partition) || partition.front() > kBefore || partition.back() < end) {
    return fail(reason(fmt::format("the partition does not cover {} layers", layers)));
  }
  Cut cut;
  for (std::size_t i = 0; i + 1 < partition.size(); ++i) {
    cut.blocks.push_back(std::clamp(partition[i + 1], kBefore, end) - std::clamp(partition[i], kBefore, end));
  }
  return cut;
}

/// Scores, softmax, dropout and context: the operators that keep most for backward per FLOP.
constexpr int kCoreOperators = 4;

/// Blocks recomputed in full and in their core alone, when `again` operators of `blocks` blocks of `each` are.
struct Recomputed {
  double full = 0;
  double selective = 0;
};

Recomputed split_recomputed(double blocks, double again, std::int64_t each) {
  const double beyond_core = std::max(0.0, again - kCoreOperators * blocks);
  const double full = std::min(blocks, beyond_core / static_cast<double>(each - kCoreOperators));
  return {full, std::min(blocks - full, again / kCoreOperators)};
}

/// Operators of each stage to blocks: all blocks have equally many, the rest are embedding (first) and head (last).
Expected<Cut> operator_cut(const Measurement& m, int layers) {
  const std::int64_t total = sum_of(m.stage_operators);
  const std::int64_t each = total / layers;
  if (each <= kCoreOperators) {
    return fail(reason(fmt::format("{} operators are too few for {} layers", total, layers)));
  }
  const std::int64_t outside = total - each * layers;
  const std::int64_t embedding = std::min<std::int64_t>(1, outside);
  Cut cut;
  for (std::size_t i = 0; i < m.stage_operators.size(); ++i) {
    std::int64_t operators = m.stage_operators[i];
    if (i == 0) operators -= embedding;
    if (i + 1 == m.stage_operators.size()) operators -= outside - embedding;
    if (operators < 0) return fail(reason("a stage has fewer operators than the embedding or the head"));
    const double blocks = static_cast<double>(operators) / static_cast<double>(each);
    const double again = i < m.stage_recomputed_operators.size() ? m.stage_recomputed_operators[i] : 0;
    const Recomputed recomputed = split_recomputed(blocks, again, each);
    cut.blocks.push_back(blocks);
    cut.recomputed.push_back(recomputed.full);
    cut.selective.push_back(recomputed.selective);
  }
  return cut;
}

Expected<Cut> choose_cut(const Measurement& m, int layers, std::int64_t positions) {
  if (!m.stage_operators.empty()) return operator_cut(m, layers);
  if (!m.layers_per_stage.empty()) return printed_cut(m.layers_per_stage, layers);
  if (!m.partition.empty()) return unit_cut(m.partition, layers);
  return even_cut(layers, positions);
}

}  // namespace

Expected<Cut> find_cut(const Measurement& m, int layers, std::int64_t positions) {
  auto cut = choose_cut(m, layers, positions);
  if (cut && static_cast<std::int64_t>(cut->blocks.size()) != positions) {
    return fail(reason(
        fmt::format("{} parts of the model are printed for {} pipeline positions", cut->blocks.size(), positions)));
  }
  return cut;
}

}  // namespace tangram::accuracy
