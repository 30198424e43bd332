// What published profiles were found to get wrong, and how it shows:
//   seconds written as milliseconds     rates above the device's peak
//   microseconds written as milliseconds  rates under 1 % of it, in rows long enough not to be launch overhead
//   a backward that lacks the weight gradient  (timing the gradient of the input alone): backward does two products for
//                                       each of forward, so a block's takes at least 1.3 times as long where products
//                                       decide, and its rate would exceed the peak
//   a dtype other than declared         rates above the peak (fp32 products that in truth ran in TF32)
// FLOPs are counted as model::forward_flops does, which never counts more than the kernels compute.
#include "tangram/cost/profile_anomaly.hpp"

#include <fmt/format.h>

namespace tangram::cost {
namespace {

constexpr double kLeastShare = 0.01;  // of the peak, in rows of at least kLongEnough
constexpr double kLongEnough = 1e-3;  // seconds; a launch-bound unit takes less

double head_flops(const ProfileUnit& unit) {
  model::Model model;
  model.vocabulary = unit.vocabulary;
  model.hidden = unit.hidden;
  model.job.sequence_length = unit.sequence_length;
  return model::head_forward_flops(model).value();
}

std::string three_digits(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

/// "means 1200 TFLOP/s, A100-40GB-SXM has 312".
std::string rate_text(const Work& work, bool products, double amount, Nanoseconds time,
                      const cluster::GpuType& device) {
  const double scale = products ? 1e12 : 1e9;
  return fmt::format("means {} {}, {} has {}", three_digits(amount / to_seconds(time) / scale),
                     products ? "TFLOP/s" : "GB/s", device.name, three_digits(work.peak / scale));
}

}  // namespace

Work forward_work(const cluster::GpuType& device, const ProfileUnit& unit, const ProfileRow& row) {
  const double peak = matrix_peak(device, unit.dtype).value();
  const double share = static_cast<double>(row.samples) / (row.degrees.tp * row.degrees.cp);
  switch (unit.kind) {
    case ProfileKind::kBlock: return {share * model::forward_flops(unit.block).value(), peak};
    case ProfileKind::kHead: return {share * head_flops(unit), peak};
    case ProfileKind::kEmbedding: break;
  }
  // Every rank writes a whole row for each of its tokens; backward reads as much.
  const double tokens = static_cast<double>(row.samples * unit.sequence_length) / row.degrees.cp;
  const double bytes = tokens * static_cast<double>(unit.hidden * std::max<std::int64_t>(2, bytes_of(unit.dtype)));
  return {bytes, device.memory_bandwidth.value()};
}

std::optional<ProfileAnomaly> find_anomaly(const Profile& profile, const ProfileUnit& unit, const ProfileRow& row) {
  const Work work = forward_work(profile.device, unit, row);
  if (!(work.peak > 0)) return std::nullopt;
  const double forward = to_seconds(row.forward);
  const double rate = work.amount / forward;
  const bool communicates = profile.includes_tp_communication && row.degrees.tp * row.degrees.etp > 1;
  const bool products = unit.kind != ProfileKind::kEmbedding;
  const double backward_amount = products ? 2 * work.amount : work.amount;
  const auto rate_of = [&](double amount, Nanoseconds time) {
    return rate_text(work, products, amount, time, profile.device);
  };
  if (rate > kBoost * work.peak) {
    return ProfileAnomaly{"forward_ms", "implausible-rate", "forward_ms " + rate_of(work.amount, row.forward),
                          "seconds written as milliseconds, another dtype, or tp that was not used?"};
  }
  if (products && !communicates && forward >= kLongEnough && rate < kLeastShare * work.peak) {
    return ProfileAnomaly{"forward_ms", "implausible-rate", "forward_ms " + rate_of(work.amount, row.forward),
                          "microseconds written as milliseconds?"};
  }
  if (backward_amount / to_seconds(row.backward) > kBoost * work.peak) {
    return ProfileAnomaly{
        "backward_ms", "implausible-rate", "backward_ms " + rate_of(backward_amount, row.backward),
        products ? "was the gradient of the weights left out?" : "was the gradient of the table left out?"};
  }
  if (unit.kind == ProfileKind::kBlock && !communicates && rate >= kProductsDecide * work.peak &&
      row.backward.as_double() < kLeastBackwardRatio * row.forward.as_double()) {
    return ProfileAnomaly{
        "backward_ms", "missing-weight-gradient",
        fmt::format("backward takes {:.2f} times as long as forward, where twice the products are due",
                    row.backward.as_double() / row.forward.as_double()),
        "time the gradients of inputs and of weights"};
  }
  return std::nullopt;
}

}  // namespace tangram::cost
