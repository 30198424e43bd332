#include <algorithm>
#include <cmath>
#include <limits>

#include "sailor.hpp"

#include "tangram/base/at.hpp"

namespace tangram::baseline {

namespace {

constexpr double kSpeedup = 1.5;
constexpr double kBucket = 500e6;  // bytes
constexpr double kStateBytes =
    24;                           // of a parameter, in 16 bits as well: optimizer 8, weights, gradients, copies 4 each
constexpr double kReserve = 1e9;  // twice, and once more with tensor parallelism
constexpr int kMostTensor = 4;    // its tables of the stages' parameters end there

double units_in(const GridPoint& point, int first, int last, double UnitProfile::* what) {
  double sum = 0;
  for (int u = first; u < last; ++u) sum += at(point.units, u).*what;
  return sum;
}

}  // namespace

std::int64_t sailor_microbatches(std::int64_t batch, std::int64_t samples, int dp) {
  return (batch + samples * dp - 1) / (samples * dp);
}

bool Sailor::fits(int kind, int tp, std::int64_t samples, int first, int last, int behind) const {
  const GridPoint* point = input_.at(kind, tp, samples);
  if (point == nullptr) return false;
  const GpuKind& gpu = at(input_.kinds, kind);
  const double held = units_in(*point, first, last, &UnitProfile::activation) * (behind + 1);
  if (mode_ == Mode::kRepaired) {
    double working = 0;
    for (int u = first; u < last; ++u) working = std::max(working, at(point->units, u).working);
    return units_in(*point, first, last, &UnitProfile::state) + held + working <= gpu.memory;
  }
  const double state = units_in(*point, first, last, &UnitProfile::parameters) * kStateBytes;
  const double whole = std::max(gpu.memory, gpu.device.memory.as_double());
  return state + held + (tp == 1 ? 2 : 3) * kReserve <= whole;
}

int Sailor::least_tp(int kind, std::int64_t samples, int first, int last, int behind) const {
  for (const int tp : tensor_degrees()) {
    if (fits(kind, tp, samples, first, last, behind)) return tp;
  }
  return 0;
}

std::vector<int> Sailor::tensor_degrees() const {
  std::vector<int> degrees = input_.tensor_degrees();
  if (mode_ == Mode::kFaithful) std::erase_if(degrees, [](int tp) { return tp > kMostTensor; });
  return degrees;
}

int Sailor::scaling_tp(int kind, std::int64_t samples, int first, int last) const {
  int chosen = 0;
  double before = std::numeric_limits<double>::infinity();
  for (const int tp : tensor_degrees()) {
    const double now = input_.seconds(kind, tp, samples, first, last);
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
  // The replicas of both stages are paired in their order.
  double slowest = 0;
  auto a = from.shares.begin();
  auto b = to.shares.begin();
  int a_left = a->count;
  int b_left = b->count;
  for (;;) {
    slowest = std::max(slowest, input_.message(bytes, a->kind, a->tp, b->kind, b->tp));
    const int paired = std::min(a_left, b_left);
    a_left -= paired;
    b_left -= paired;
    if (a_left == 0 && ++a == from.shares.end()) return slowest;
    if (b_left == 0 && ++b == to.shares.end()) return slowest;
    if (a_left == 0) a_left = a->count;
    if (b_left == 0) b_left = b->count;
  }
}

double Sailor::sync(const SailorStage& stage, int dp) const {
  if (dp == 1) return 0;
  double slowest = 0;
  for (const SailorShare& share : stage.shares) {
    const GridPoint* whole = input_.at(share.kind, input_.tensor_degrees().front(), input_.sample_counts().front());
    if (whole == nullptr) whole = input_.at(share.kind, share.tp, input_.sample_counts().front());
    if (whole == nullptr) continue;
    const double width = mode_ == Mode::kFaithful ? input_.parameter_bytes : input_.gradient_bytes;
    double bytes = units_in(*whole, stage.first, stage.last, &UnitProfile::parameters) * width;
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

double Sailor::alone(const SailorStage& stage, std::int64_t samples, int dp) const {
  return static_cast<double>(sailor_microbatches(input_.batch, samples, dp)) * compute(stage, samples) +
         sync(stage, dp) + update(stage, samples);
}

double Sailor::iteration(const std::vector<SailorStage>& stages, std::int64_t samples, int dp) const {
  if (stages.size() == 1) return alone(stages.front(), samples, dp);
  double straggler = 0;
  double sum = 0;
  double exchange = 0;
  double received = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const double seconds = compute(stages[s], samples);
    const double sent = s + 1 < stages.size() ? send(stages[s], stages[s + 1], samples) : 0;
    straggler = std::max(straggler, received + seconds + sent);
    sum += seconds + 2 * sent;
    exchange = std::max(exchange, sync(stages[s], dp));
    received = sent;
  }
  return static_cast<double>(sailor_microbatches(input_.batch, samples, dp) - 1) * straggler + sum + exchange;
}

}  // namespace tangram::baseline
