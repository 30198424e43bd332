// What published profiles were found to get wrong, and how it shows:
//   seconds written as milliseconds     rates above the device's peak
//   microseconds written as milliseconds  rates under 1 % of it, in rows long enough not to be launch overhead
//   a backward that lacks the weight gradient  (timing the gradient of the input alone): backward does two products for
//                                       each of forward, so a block's takes at least 1.3 times as long where products
//                                       decide, and its rate would exceed the peak
//   a dtype other than declared         rates above the peak (fp32 products that in truth ran in TF32)
// FLOPs are counted as model::forward_flops does, which never counts more than the kernels compute.
#include "profile_traps.hpp"

#include <fmt/format.h>

namespace tangram::cost {
namespace {

constexpr double kBoost = 1.25;          // cards that boost exceed the datasheet's clock by up to this
constexpr double kLeastShare = 0.01;     // of the peak, in rows of at least kLongEnough
constexpr double kLongEnough = 1e-3;     // seconds; a launch-bound unit takes less
constexpr double kLeastRatio = 1.3;      // backward over forward of a block
constexpr double kProductsDecide = 0.1;  // share of the peak from which on launches do not decide

/// What one GPU does in one forward pass; backward twice as much.
struct Work {
  double amount = 0;  // FLOPs or bytes
  double peak = 0;    // of them per second
  const char* unit = "";
  double scale = 1;
};

double head_flops(const ProfileUnit& unit) {
  model::Model model;
  model.vocabulary = unit.vocabulary;
  model.hidden = unit.hidden;
  model.job.sequence_length = unit.sequence_length;
  return model::head_forward_flops(model).value();
}

Work work_of(const Profile& profile, const ProfileUnit& unit, const ProfileRow& row) {
  const double peak = matrix_peak(profile.device, unit.dtype).value();
  const double share = static_cast<double>(row.samples) / (row.degrees.tp * row.degrees.cp);
  switch (unit.kind) {
    case ProfileKind::kBlock: return {share * model::forward_flops(unit.block).value(), peak, "TFLOP/s", 1e12};
    case ProfileKind::kHead: return {share * head_flops(unit), peak, "TFLOP/s", 1e12};
    case ProfileKind::kEmbedding: break;
  }
  // Every rank writes a whole row for each of its tokens; backward reads as much.
  const double tokens = static_cast<double>(row.samples * unit.sequence_length) / row.degrees.cp;
  const double bytes = tokens * static_cast<double>(unit.hidden * std::max<std::int64_t>(2, bytes_of(unit.dtype)));
  return {bytes, profile.device.memory_bandwidth.value(), "GB/s", 1e9};
}

std::string three_digits(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

/// "means 1200 TFLOP/s, A100-40GB-SXM has 312".
std::string rate_text(const Work& work, double amount, Nanoseconds time, const cluster::GpuType& device) {
  return fmt::format("means {} {}, {} has {}", three_digits(amount / to_seconds(time) / work.scale), work.unit,
                     device.name, three_digits(work.peak / work.scale));
}

}  // namespace

void report_implausible(io::ObjectReader& reader, const Profile& profile, const ProfileUnit& unit,
                        const ProfileRow& row) {
  const Work work = work_of(profile, unit, row);
  if (!(work.peak > 0)) return;
  const double forward = to_seconds(row.forward);
  const double rate = work.amount / forward;
  const bool communicates = profile.includes_tp_communication && row.degrees.tp * row.degrees.etp > 1;
  const bool products = unit.kind != ProfileKind::kEmbedding;
  const double backward_amount = products ? 2 * work.amount : work.amount;
  if (rate > kBoost * work.peak) {
    reader.error_at("forward_ms", "implausible-rate",
                    "forward_ms " + rate_text(work, work.amount, row.forward, profile.device),
                    "seconds written as milliseconds, another dtype, or tp that was not used?");
  } else if (products && !communicates && forward >= kLongEnough && rate < kLeastShare * work.peak) {
    reader.error_at("forward_ms", "implausible-rate",
                    "forward_ms " + rate_text(work, work.amount, row.forward, profile.device),
                    "microseconds written as milliseconds?");
  } else if (backward_amount / to_seconds(row.backward) > kBoost * work.peak) {
    reader.error_at("backward_ms", "implausible-rate",
                    "backward_ms " + rate_text(work, backward_amount, row.backward, profile.device),
                    products ? "was the gradient of the weights left out?" : "was the gradient of the table left out?");
  } else if (unit.kind == ProfileKind::kBlock && !communicates && rate >= kProductsDecide * work.peak &&
             row.backward.as_double() < kLeastRatio * row.forward.as_double()) {
    reader.error_at("backward_ms", "missing-weight-gradient",
                    fmt::format("backward takes {:.2f} times as long as forward, where twice the products are due",
                                row.backward.as_double() / row.forward.as_double()),
                    "time the gradients of inputs and of weights");
  }
}

}  // namespace tangram::cost
