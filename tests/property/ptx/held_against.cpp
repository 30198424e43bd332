#include "held_against.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "tangram/ptx/parse.hpp"

namespace tangram::testing {
namespace {

using ptx::Effect;

constexpr std::array kEffects = {Effect::kRead, Effect::kWrite, Effect::kUpdate};

struct Run {
  interpret::Memory memory;
  std::vector<std::uint64_t> buffers;
  bool ended = false;
};

void run(const RandomKernel& kernel, Run& result) {
  const auto module = ptx::parse(kernel.text, "kernel.ptx");
  if (!module) return;
  interpret::GridLaunch launch;
  launch.entry = kernel.launch.entry;
  launch.grid = kernel.launch.grid;
  launch.block = kernel.launch.block;
  launch.most_steps = 2'000'000;
  for (const ptx::Argument& argument : kernel.launch.arguments) {
    if (const auto* scalar = std::get_if<std::int64_t>(&argument)) {
      launch.arguments.push_back(interpret::argument(*scalar));
      continue;
    }
    const auto& buffer = std::get<ptx::BufferArgument>(argument);
    const std::uint64_t address = result.memory.allocate(buffer.bytes);
    const auto bytes = result.memory.bytes(address);
    for (std::size_t i = 0; i < bytes.size(); i += 4) bytes[i] = static_cast<std::uint8_t>(i / 4 * 7 % 16);
    result.buffers.push_back(address);
    launch.arguments.push_back(interpret::argument(address + static_cast<std::uint64_t>(buffer.offset)));
  }
  result.ended = interpret::execute(*module, launch, result.memory).has_value();
}

void mark(const ptx::ByteSet& set, std::size_t repeats, std::int64_t first, std::vector<char>& bytes) {
  if (repeats == 0) {
    for (std::int64_t i = 0; i < set.run; ++i) {
      const auto byte = static_cast<std::size_t>(first + i);
      if (byte < bytes.size()) bytes[byte] = 1;
    }
    return;
  }
  const ptx::Repeat& repeat = set.repeats[repeats - 1];
  for (std::int64_t i = 0; i < repeat.count; ++i) mark(set, repeats - 1, first + i * repeat.stride, bytes);
}

bool happened(const interpret::Touched& touched, Effect effect) {
  switch (effect) {
    case Effect::kRead: return touched.read;
    case Effect::kWrite: return touched.written;
    case Effect::kUpdate: return touched.updated;
  }
  return false;
}

bool is_listed(const ptx::ParameterUse& use, Effect effect) {
  switch (effect) {
    case Effect::kRead: return use.reads;
    case Effect::kWrite: return use.writes;
    case Effect::kUpdate: return use.updates;
  }
  return false;
}

std::string compared(int argument, Effect effect, std::span<const interpret::Touched> touched,
                     const ptx::EntryAnalysis& analysis, const ptx::LaunchRanges& ranges) {
  std::vector<char> claimed(touched.size(), 0);
  bool exact = true;
  for (const ptx::BufferRange& range : ranges.ranges) {
    if (range.argument != argument || range.effect != effect) continue;
    exact = range.exact;
    for (const ptx::ByteSet& set : range.bytes) mark(set, set.repeats.size(), set.first, claimed);
  }
  const bool listed = std::ranges::any_of(analysis.parameters, [&](const ptx::ParameterUse& use) {
    return use.base.index == argument && is_listed(use, effect);
  });
  for (std::size_t byte = 0; byte < touched.size(); ++byte) {
    const bool was = happened(touched[byte], effect);
    const bool is_claimed = claimed[byte] != 0;
    const std::string_view wrong = was && !is_claimed            ? "touched, and in no range"
                                   : was && !listed              ? "touched, and not listed for the parameter"
                                   : !was && exact && is_claimed ? "in an exact range, and not touched"
                                   : is_claimed && !listed       ? "in a range, and not listed for the parameter"
                                                                 : "";
    if (!wrong.empty()) return fmt::format("byte {} of argument {}, {}: {}", byte, argument, to_string(effect), wrong);
  }
  return {};
}

}  // namespace

Verdict held_against(const RandomKernel& kernel, const std::string& seen, const Change& change) {
  Verdict verdict;
  Run result;
  run(kernel, result);
  if (!result.ended) return verdict;
  verdict.ran = true;
  const auto module = ptx::parse(seen, "kernel.ptx");
  if (!module) {
    verdict.difference = render(module.error());
    return verdict;
  }
  const auto analysis = ptx::analyze(*module, kernel.launch.entry);
  auto ranges = ptx::ranges_of(*module, kernel.launch);
  if (!analysis || !ranges) {
    verdict.difference = "the analysis fails";
    return verdict;
  }
  if (change) change(*ranges);
  verdict.exact = std::ranges::all_of(ranges->ranges, &ptx::BufferRange::exact);
  for (int argument = 0; argument < kBuffers; ++argument) {
    const auto touched = result.memory.touched(result.buffers[static_cast<std::size_t>(argument)]);
    for (const Effect effect : kEffects) {
      verdict.difference = compared(argument, effect, touched, *analysis, *ranges);
      if (!verdict.difference.empty()) return verdict;
    }
  }
  return verdict;
}

}  // namespace tangram::testing
