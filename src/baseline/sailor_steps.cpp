#include <algorithm>
#include <cmath>
#include <limits>

#include "sailor.hpp"

namespace tangram::baseline {

namespace {

constexpr double kSpeedup = 1.5;
constexpr double kBucket = 500e6;     // bytes
constexpr double kStateBytes32 = 24;  // of a parameter in 32 bits: optimizer 8, weights, gradients, copies 4 each
constexpr double kStateBytes16 = 16;  // in 16 bits, as its fork for fp16 counts
constexpr double kReserve = 1024.0 * 1024 * 1024;  // twice, and once more with tensor parallelism

double units_in(const GridPoint& point, int first, int last, double UnitProfile::* what) {
  double sum = 0;
  for (int u = first; u < last; ++u) sum += point.units[static_cast<std::size_t>(u)].*what;
  return sum;
}

}  // namespace

std::int64_t sailor_microbatches(std::int64_t batch, std::int64_t samples, int dp) {
  return (batch + samples * dp - 1) / (samples * dp);
}

bool Sailor::fits(int kind, int tp, std::int64_t samples, int first, int last, int behind) const {
  const GridPoint* point = input_.at(kind, tp, samples);
  if (point == nullptr) return false;
  const GpuKind& gpu = input_.kinds[static_cast<std::size_t>(kind)];
  const double held = units_in(*point, first, last, &UnitProfile::activation) * (behind + 1);
  if (mode_ == Mode::kRepaired) {
    double working = 0;
    for (int u = first; u < last; ++u) working = std::max(working, point->units[static_cast<std::size_t>(u)].working);
    return units_in(*point, first, last, &UnitProfile::state) + held + working <= gpu.memory;
  }
  const double bytes = input_.parameter_bytes > 2 ? kStateBytes32 : kStateBytes16;
  const double state = units_in(*point, first, last, &UnitProfile::parameters) * bytes;
  const double whole = std::max(gpu.memory, gpu.device.memory.as_double());
  return state + held + (tp == 1 ? 2 : 3) * kReserve <= whole;
}

int Sailor::least_tp(int kind, std::int64_t samples, int first, int last, int behind) const {
  for (const int tp : input_.tensor_degrees()) {
    if (fits(kind, tp, samples, first, last, behind)) return tp;
  }
  return 0;
}

int Sailor::scaling_tp(int kind, std::int64_t samples) const {
  int chosen = 0;
  double before = std::numeric_limits<double>::infinity();
  for (const int tp : input_.tensor_degrees()) {
    const double now = input_.seconds(kind, tp, samples, 0, input_.units());
    if (!std::isfinite(now)) continue;
    if (chosen != 0 && before < kSpeedup * now) break;
    chosen = tp;
    before = now;
  }
  return chosen;
}

double Sailor::compute(const SailorStage& stage, std::int64_t samples) const {
  double slowest = 0;
  for (const SailorShare& share : stage.shares) {
    slowest = std::max(slowest, input_.seconds(share.kind, share.tp, samples, stage.first, stage.last));
  }
  return slowest;
}

double Sailor::send(const SailorStage& from, const SailorStage& to, std::int64_t samples) const {
  const double bytes = input_.activation * static_cast<double>(samples);
  double slowest = 0;
  for (const SailorShare& a : from.shares) {
    for (const SailorShare& b : to.shares) {
      slowest = std::max(slowest, input_.message(bytes, a.kind, a.tp, b.kind, b.tp));
    }
  }
  return slowest;
}

double Sailor::sync(const SailorStage& stage, int dp) const {
  if (dp == 1) return 0;
  double slowest = 0;
  for (const SailorShare& share : stage.shares) {
    const GridPoint* whole = input_.at(share.kind, input_.tensor_degrees().front(), input_.sample_counts().front());
    if (whole == nullptr) whole = input_.at(share.kind, share.tp, input_.sample_counts().front());
    if (whole == nullptr) continue;
    double bytes = units_in(*whole, stage.first, stage.last, &UnitProfile::parameters) * input_.gradient_bytes;
    double seconds = 0;
    for (; bytes > 0; bytes -= kBucket) {
      seconds +=
          2.0 * (dp - 1) * input_.message(std::min(bytes, kBucket) / dp, share.kind, share.tp, share.kind, share.tp);
    }
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

double Sailor::update(const SailorStage& stage, std::int64_t samples) const {
  double slowest = 0;
  for (const SailorShare& share : stage.shares) {
    const GridPoint* point = input_.at(share.kind, share.tp, samples);
    if (point != nullptr) slowest = std::max(slowest, point->optimizer);
  }
  return mode_ == Mode::kFaithful ? slowest * (stage.last - stage.first) : slowest;
}

double Sailor::iteration(const std::vector<SailorStage>& stages, std::int64_t samples, int dp) const {
  double straggler = 0;
  double sum = 0;
  double exchange = 0;
  double sent = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const double seconds = compute(stages[s], samples);
    const bool closing = s + 1 == stages.size();
    if (!closing) sent = send(stages[s], stages[s + 1], samples);
    straggler = std::max(straggler, seconds + sent);  // the last stage sends its gradients back
    sum += seconds + (closing ? 0 : 2 * sent);
    exchange = std::max(exchange, sync(stages[s], dp));
  }
  const double last = stages.size() == 1 ? update(stages.front(), samples) : 0;
  return static_cast<double>(sailor_microbatches(input_.batch, samples, dp) - 1) * straggler + sum + exchange + last;
}

}  // namespace tangram::baseline
