#include "optimizer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/spelling.hpp"
#include "tangram/io/limits.hpp"

namespace tangram::model {

namespace {

// Bytes of state per parameter beside the parameter and its gradient, when parameters are 2 bytes wide and when they
// are 4. An fp32 master copy (4) is part of the former. Adam: two fp32 moments (Rajbhandari et al., ZeRO, arXiv
// 1910.02054 section 3.1; Megatron-LM docs, dist_optimizer: bf16 parameters with fp32 gradients take 2 + 4 + 12 = 18,
// fp32 takes 4 + 4 + 8 = 16). SGD: one momentum. 8-bit Adam: two one-byte moments (Dettmers et al., arXiv 2110.02861).
// Adafactor without momentum keeps row and column sums only (Shazeer and Stern, arXiv 1804.04235): rounded to nothing.
struct KnownOptimizer {
  std::string_view name;
  std::int64_t narrow;
  std::int64_t wide;
};
constexpr std::array<KnownOptimizer, 5> kOptimizers{
    {{"adam", 12, 8}, {"adamw", 12, 8}, {"sgd", 8, 4}, {"adam8bit", 6, 2}, {"adafactor", 4, 0}}};

constexpr std::int64_t kNarrowParameter = 2;  // bytes

std::string optimizer_hint(std::string_view name) {
  std::vector<std::string> names;
  names.reserve(kOptimizers.size());
  for (const KnownOptimizer& known : kOptimizers) names.emplace_back(known.name);
  if (const auto near = closest(name, names)) return fmt::format("did you mean \"{}\"?", *near);
  return fmt::format("known are {}; for another give \"state_bytes_per_parameter\"", fmt::join(names, ", "));
}

void report_unknown_optimizer(io::ObjectReader& reader, std::string_view key, const std::string& name) {
  reader.error_at(key, "unknown-name", fmt::format("unknown optimizer \"{}\"", name), optimizer_hint(name));
}

bool is_adam(const Optimizer& optimizer) { return optimizer.name == "adam" || optimizer.name == "adamw"; }

void read_precision_aware(io::ObjectReader& reader, Job& job) {
  job.optimizer.precision_aware = reader.boolean_or("precision_aware", false);
  if (!job.optimizer.precision_aware) return;
  if (!is_adam(job.optimizer)) {
    reader.error_at("precision_aware", "invalid-value",
                    fmt::format("there is no precision-aware {}", job.optimizer.name), "it is of adam alone");
  }
  if (job.parameter_bytes != kNarrowParameter) {
    reader.error_at("precision_aware", "invalid-value",
                    fmt::format("parameters have {} bytes, and the optimizer nothing to save", job.parameter_bytes),
                    "precision: bf16, fp16, fp8 or fp4");
  }
}

void read_offload(io::ObjectReader& reader, Optimizer& optimizer) {
  optimizer.offload_fraction = reader.number_or("offload_fraction", 0, io::number_limit("offload_fraction"));
  if (optimizer.offload_fraction > 0 && !is_adam(optimizer)) {
    reader.error_at("offload_fraction", "invalid-value",
                    fmt::format("how fast a host steps {} is not known", optimizer.name), "it is of adam alone");
  }
}

void read_own_optimizer(io::ObjectReader& reader, Job& job) {
  job.optimizer.name = reader.string_or("name", job.optimizer.name);
  read_precision_aware(reader, job);
  const auto known = usual_state_bytes(job);
  const auto given = reader.integer_if("state_bytes_per_parameter", io::integer_limit("state_bytes_per_parameter"));
  if (!known && !reader.has("state_bytes_per_parameter")) report_unknown_optimizer(reader, "name", job.optimizer.name);
  job.optimizer.state_bytes_per_parameter = given.value_or(known.value_or(0));
  read_offload(reader, job.optimizer);
  reader.finish();
}

}  // namespace

bool reads_main_gradients(const Job& job) {
  if (!job.optimizer.precision_aware) return false;
  return job.precision != DType::kFp8 || job.fp8_recipe == Fp8Recipe::kDelayed;
}

bool keeps_remainders(const Job& job) {
  const bool bf16_parameters = job.precision == DType::kBf16 || (is_narrow(job.precision) && !job.narrow_parameters);
  return bf16_parameters && reads_main_gradients(job);
}

std::int64_t moment_bytes(const Job& job) {
  const std::int64_t wide = job.parameter_bytes == kNarrowParameter ? 4 : 0;
  const std::int64_t master = keeps_remainders(job) ? kNarrowParameter : wide;
  return std::max<std::int64_t>(0, job.optimizer.state_bytes_per_parameter - master);
}

double resident_state_bytes(const Job& job) {
  return static_cast<double>(job.optimizer.state_bytes_per_parameter) -
         job.optimizer.offload_fraction * static_cast<double>(moment_bytes(job));
}

std::optional<std::int64_t> usual_state_bytes(const Job& job) {
  for (const KnownOptimizer& known : kOptimizers) {
    if (known.name != job.optimizer.name) continue;
    if (job.parameter_bytes == 4) return known.wide;
    return keeps_remainders(job) ? known.narrow - kNarrowParameter : known.narrow;
  }
  return std::nullopt;
}

bool make_precision_aware(Job& job) {
  if (job.optimizer.precision_aware || !is_adam(job.optimizer) || job.parameter_bytes != kNarrowParameter) return false;
  const std::int64_t before = usual_state_bytes(job).value_or(0);
  job.optimizer.precision_aware = true;
  const std::int64_t saved = before - usual_state_bytes(job).value_or(0);
  job.optimizer.state_bytes_per_parameter = std::max<std::int64_t>(0, job.optimizer.state_bytes_per_parameter - saved);
  return true;
}

void read_optimizer(io::ObjectReader& reader, Job& job) {
  const io::Node* node = reader.raw("optimizer");
  if (node == nullptr) return;
  if (node->kind != io::NodeKind::kString) {
    if (auto object = reader.object_if("optimizer")) read_own_optimizer(*object, job);
    return;
  }
  job.optimizer.name = node->text;
  const auto known = usual_state_bytes(job);
  if (!known) report_unknown_optimizer(reader, "optimizer", job.optimizer.name);
  job.optimizer.state_bytes_per_parameter = known.value_or(0);
}

}  // namespace tangram::model
