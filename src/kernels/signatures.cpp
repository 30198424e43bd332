#include "tangram/kernels/signatures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernel_name.hpp"
#include "signature_table.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/base/spelling.hpp"

namespace tangram::kernels {
namespace {

/// "flash_fwd_kernel" is the function flash::flash_fwd_kernel, too.
bool is_function(std::string_view pattern, std::string_view function) {
  while (!matches(pattern, function)) {
    const std::size_t scope = function.find("::");
    if (scope == std::string_view::npos) return false;
    function.remove_prefix(scope + 2);
  }
  return true;
}

bool is_of(const SignatureRow& row, const KernelName& name) {
  return is_function(row.function, name.function) && (row.arguments.empty() || matches(row.arguments, name.arguments));
}

bool has_entry(const ptx::Module& module, const std::string& name) {
  const ptx::Function* function = module.find(name);
  return function != nullptr && function->is_entry && function->has_body;
}

ptx::BufferRange whole(int argument, ptx::Effect effect, const ptx::BufferArgument& buffer, std::string_view why) {
  ptx::BufferRange range;
  range.argument = argument;
  range.effect = effect;
  range.bytes = {{0, buffer.bytes, {}}};
  range.reasons = {{{}, std::string(why)}};
  return range;
}

/// Buffers by their order among the arguments.
ptx::LaunchRanges whole_operands(const ptx::Launch& launch, std::span<const Operand> operands, std::string_view why) {
  ptx::LaunchRanges ranges;
  std::size_t number = 0;
  for (std::size_t a = 0; a < launch.arguments.size(); ++a) {
    const auto* buffer = std::get_if<ptx::BufferArgument>(&launch.arguments[a]);
    if (buffer == nullptr) continue;
    const auto effect = number < operands.size() ? operands[number].effect : ptx::Effect::kUpdate;
    ++number;
    if (buffer->bytes > 0) ranges.ranges.push_back(whole(static_cast<int>(a), effect, *buffer, why));
  }
  return ranges;
}

/// "a, b and one more at least"
std::string operands_text(const Signature& signature) {
  std::string text;
  for (const Operand& operand : signature.operands) text += fmt::format("{}{}", text.empty() ? "" : ", ", operand.name);
  const int more = signature.least - static_cast<int>(signature.operands.size());
  if (more > 0) text += fmt::format("{}{} more at least", text.empty() ? "" : " and ", more);
  return text;
}

Expected<LaunchTouch> by_signature(const Signature& signature, const ptx::Launch& launch) {
  const auto is_buffer = [](const ptx::Argument& a) { return std::holds_alternative<ptx::BufferArgument>(a); };
  const auto given = std::ranges::count_if(launch.arguments, is_buffer);
  if (given < signature.least) {
    return fail(problem(ErrorKind::kInput, "missing-operand",
                        fmt::format("launch of {}: it has {} buffers, {} kernels {} at least", launch.entry, given,
                                    signature.family, signature.least),
                        fmt::format("without PTX the buffers are its operands: {}", operands_text(signature))));
  }
  LaunchTouch touch;
  touch.ranges = whole_operands(launch, signature.operands, fmt::format("by the signature of {}", signature.family));
  touch.evidence = Evidence::kSignature;
  touch.signature = &signature;
  touch.pinned = signature.pinned;
  return touch;
}

LaunchTouch unknown_kernel(const ptx::Launch& launch) {
  constexpr std::string_view kWhy = "it has neither PTX nor a signature";
  LaunchTouch touch;
  touch.ranges = whole_operands(launch, {}, kWhy);
  touch.ranges.pinned = {{{}, std::string(kWhy)}};
  touch.evidence = Evidence::kConservative;
  touch.pinned = Pin::kUnknownPointer;
  return touch;
}

}  // namespace

const Signature* signature_of(std::string_view name) {
  const KernelName parts = kernel_name(name);
  const auto rows = signature_table();
  const auto found = std::ranges::find_if(rows, [&](const SignatureRow& row) { return is_of(row, parts); });
  return found == rows.end() ? nullptr : found->signature;
}

Expected<LaunchTouch> touch_of(const ptx::Module& module, const ptx::Launch& launch) {
  if (!has_entry(module, launch.entry)) {
    if (const Signature* signature = signature_of(launch.entry)) return by_signature(*signature, launch);
    if (!closest(launch.entry, module.entries())) return unknown_kernel(launch);
  }
  auto ranges = ptx::ranges_of(module, launch);
  if (!ranges) return fail(std::move(ranges.error()));
  LaunchTouch touch;
  touch.ranges = std::move(*ranges);
  if (!touch.ranges.pinned.empty()) touch.pinned = Pin::kUnknownPointer;
  return touch;
}

}  // namespace tangram::kernels
