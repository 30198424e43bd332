// What a thread does to memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "arithmetic.hpp"
#include "thread.hpp"
#include "windows.hpp"

namespace tangram::interpret {
namespace {

using ptx::Space;

std::span<std::uint8_t> part_of(std::vector<std::uint8_t>& bytes, Bits offset, std::size_t count) {
  if (offset > bytes.size() || count > bytes.size() - offset) return {};
  return std::span(bytes).subspan(offset, count);
}

}  // namespace

std::span<std::uint8_t> Thread::memory_at(Space space, Bits address, std::size_t count, Memory::Access how) {
  if (space == Space::kGeneric) space = window_of(address);
  const Bits start = window_start(space);
  const Bits offset = address >= start ? address - start : address;
  switch (space) {
    case Space::kShared: return part_of(context_.shared, offset, count);
    case Space::kLocal: return part_of(local_, offset, count);
    case Space::kParam: return part_of(frame().parameters, offset, count);
    default: return context_.memory.access(address, count, how);
  }
}

std::span<std::uint8_t> Thread::place(const Step& step, const Ref& address, std::size_t count, Memory::Access how) {
  const Bits where = address_of(address);
  const auto bytes = memory_at(step.space, where, count, how);
  if (bytes.empty()) {
    fault_ =
        fmt::format("{} of {} bytes at {:#x} reaches outside of all allocations", step.source->text(), count, where);
  } else if (where % count != 0) {
    fault_ = fmt::format("{} of {} bytes at {:#x} is not aligned", step.source->text(), count, where);
  }
  return fault_.empty() ? bytes : std::span<std::uint8_t>();
}

void Thread::load(const Step& step) {
  const auto width = static_cast<std::size_t>(ptx::width_of(step.type));
  const std::span<const Ref> targets = step.operands[0].elements();
  const auto bytes = place(step, step.operands[1], width * targets.size(), Memory::Access::kRead);
  if (bytes.empty()) return;
  const bool extends = ptx::is_signed(step.type);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Bits bits = bits_in(bytes.subspan(i * width, width));
    write(targets[i], extends ? static_cast<Bits>(extended(bits, bit_count(step.type))) : bits);
  }
}

void Thread::store(const Step& step) {
  const auto width = static_cast<std::size_t>(ptx::width_of(step.type));
  const std::span<const Ref> sources = step.operands[1].elements();
  const auto bytes = place(step, step.operands[0], width * sources.size(), Memory::Access::kWrite);
  if (bytes.empty()) return;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Bits bits = read(sources[i]);
    std::memcpy(bytes.data() + i * width, &bits, width);
  }
}

void Thread::update(const Step& step) {
  const auto width = static_cast<std::size_t>(ptx::width_of(step.type));
  const bool returns = step.op == Op::kAtom;
  const std::size_t first = returns ? 1 : 0;
  const auto bytes = place(step, step.operands[first], width, Memory::Access::kUpdate);
  if (bytes.empty()) return;
  const Bits old = bits_in(bytes);
  const Bits more = step.operands.size() > first + 2 ? read(step.operands[first + 2]) : 0;
  const Bits changed = updated(step, old, read(step.operands[first + 1]), more);
  std::memcpy(bytes.data(), &changed, width);
  if (returns) write(step.operands[0], old);
}

std::span<std::uint8_t> Thread::matrix_row(const Step& step) {
  constexpr std::size_t kRowBytes = 16;
  const bool loads = step.op == Op::kLoadMatrix;
  return place(step, step.operands[loads ? 1 : 0], kRowBytes, loads ? Memory::Access::kRead : Memory::Access::kWrite);
}

/// cp.async, done at once: [to], [from], bytes, and perhaps how many of them are read; the others are zero.
void Thread::copy(const Step& step) {
  const auto count = static_cast<std::size_t>(read(step.operands[2]));
  std::size_t taken = count;
  if (step.operands.size() > 3) taken = std::min(count, static_cast<std::size_t>(read(step.operands[3])));
  Step to = step;
  to.space = Space::kShared;
  const auto target = place(to, step.operands[0], count, Memory::Access::kWrite);
  if (target.empty()) return;
  std::ranges::fill(target, std::uint8_t{0});
  if (taken == 0) return;
  Step from = step;
  from.space = Space::kGlobal;
  const auto source = place(from, step.operands[1], taken, Memory::Access::kRead);
  if (!source.empty()) std::ranges::copy(source, target.begin());
}

}  // namespace tangram::interpret
