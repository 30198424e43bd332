#include "recorded_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "place.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/cluster/gpu_names.hpp"
#include "tangram/kernels/kernel_cost.hpp"
#include "tangram/kernels/signatures.hpp"

namespace tangram::kernels {
namespace {

Diagnostic unknown_gpu(const std::string& name, std::span<const cluster::GpuType> devices) {
  return problem(ErrorKind::kInput, "unknown-gpu", fmt::format("unknown GPU type \"{}\"", name),
                 cluster::suggested_gpu(name, devices, "tangram gpus lists them"));
}

}  // namespace

Expected<std::string> gpu_named(const std::string& wanted, const std::string& recorded, const std::string& file,
                                std::span<const cluster::GpuType> devices) {
  if (!wanted.empty()) {
    const cluster::GpuType* device = cluster::device_of(wanted, devices);
    if (device == nullptr) return fail(unknown_gpu(wanted, devices));
    return device->name;
  }
  const cluster::GpuType* device = recorded.empty() ? nullptr : cluster::device_of(recorded, devices);
  if (device != nullptr) return device->name;
  return fail(mistake_at(file, 0, 0, "unknown-gpu",
                         recorded.empty()
                             ? "the recording does not say which GPU ran it"
                             : fmt::format("it ran on \"{}\", which the catalogue does not have", recorded),
                         "say which GPU type it is with --gpu NAME; tangram gpus lists them"));
}

std::optional<KernelTime> measured(double microseconds) {
  if (!(microseconds > 0)) return std::nullopt;
  return KernelTime{Nanoseconds(std::max<std::int64_t>(1, std::llround(microseconds * 1e3))), TimeSource::kMeasured,
                    kRepeatError};
}

void identify(std::string_view name, Kernel& kernel) {
  const Signature* signature = signature_of(name);
  kernel.pinned = Pin::kUnknownPointer;
  if (signature == nullptr) return;
  kernel.signature = signature->family;
  kernel.pinned = signature->pinned == Pin::kNone ? Pin::kUnknownOperands : signature->pinned;
}

std::string symbol(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

Source source_of(RecordingKind kind, const RecordingFile& file) {
  return {std::string(to_string(kind)), file.name, digest(file.text)};
}

std::string position_by_order(std::int64_t order) { return fmt::format("#{}", order); }

bool is_by_order(std::string_view position) { return position.starts_with('#'); }

}  // namespace tangram::kernels
