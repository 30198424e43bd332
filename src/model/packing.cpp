#include "tangram/model/packing.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "blueprint.hpp"
#include "tangram/base/lognormal.hpp"

namespace tangram::model {

namespace {

double standard_normal(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

/// E[min(l, longest)^k] of a lognormal: exp(k m + k^2 s^2 / 2) P(z < (log longest - m) / s - k) and what is cut.
double lognormal_moment(double mean, double deviation, int power, double longest) {
  const double k = power;
  const double center = std::log(mean) - deviation * deviation / 2;
  const double cut = (std::log(longest) - center) / deviation;
  const double below = std::exp(k * center + k * k * deviation * deviation / 2) * standard_normal(cut - k * deviation);
  return below + std::pow(longest, k) * standard_normal(-cut);
}

double counted_moment(const std::vector<LengthCount>& lengths, int power, double longest) {
  double sum = 0;
  double count = 0;
  for (const LengthCount& length : lengths) {
    const auto sequences = static_cast<double>(length.sequences);
    sum += sequences * std::pow(std::min(static_cast<double>(length.tokens), longest), power);
    count += sequences;
  }
  return sum / count;
}

}  // namespace

double length_moment(const Packing& packing, int power, double longest) {
  if (!packing.lengths.empty()) return counted_moment(packing.lengths, power, longest);
  const double deviation = lognormal_deviation(packing.mean, packing.p95);
  if (deviation <= 0) return std::pow(std::min(packing.mean, longest), power);
  return lognormal_moment(packing.mean, deviation, power, longest);
}

double attended_length(const Packing& packing, std::int64_t sample) {
  const auto longest = static_cast<double>(sample);
  const double length = length_moment(packing, 2, longest) / length_moment(packing, 1, longest);
  return std::clamp(length, 1.0, longest);
}

double packing_variation(const Packing& packing, std::int64_t sample) {
  const auto longest = static_cast<double>(sample);
  const auto moment = [&](int power) { return length_moment(packing, power, longest); };
  const double each = moment(2) / moment(1);
  const double square = std::max(0.0, moment(4) - 2 * each * moment(3) + each * each * moment(2));
  const double sequences = std::max(1.0, longest / moment(1));
  return std::sqrt(square / sequences) / (each * moment(1));
}

void set_packing(Model& model) {
  const Packing& packing = model.job.packing;
  const bool had = std::ranges::any_of(model.types, [](const BlockType& t) { return t.attention.packed_length > 0; });
  if (!packing.any() && !had) return;
  const double length = packing.any() ? attended_length(packing, model.job.sequence_length) : 0;
  const BlockRange decoder = language_blocks(model);
  change_types(model, [&](BlockType type, int b) {
    const bool packs = type.attends() && decoder.first <= b && b < decoder.last;
    type.attention.packed_length = packs ? length : 0;
    return type;
  });
}

}  // namespace tangram::model
