#include "thread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "arithmetic.hpp"
#include "tangram/base/at.hpp"

namespace tangram::interpret {
namespace {

using ptx::Space;

// Windows of generic addresses: far from those of allocations.
constexpr Bits kSharedWindow = Bits{1} << 48;
constexpr Bits kLocalWindow = Bits{2} << 48;
constexpr Bits kParameterWindow = Bits{3} << 48;
constexpr Bits kWindowBytes = Bits{1} << 48;

Space window_of(Bits address) {
  if (address >= kParameterWindow && address < kParameterWindow + kWindowBytes) return Space::kParam;
  if (address >= kLocalWindow && address < kLocalWindow + kWindowBytes) return Space::kLocal;
  if (address >= kSharedWindow && address < kSharedWindow + kWindowBytes) return Space::kShared;
  return Space::kGlobal;
}

Bits window_start(Space space) {
  switch (space) {
    case Space::kShared: return kSharedWindow;
    case Space::kLocal: return kLocalWindow;
    case Space::kParam: return kParameterWindow;
    default: return 0;
  }
}

Bits bits_in(std::span<const std::uint8_t> bytes) {
  Bits bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

std::span<std::uint8_t> part_of(std::vector<std::uint8_t>& bytes, Bits offset, std::size_t count) {
  if (offset > bytes.size() || count > bytes.size() - offset) return {};
  return std::span(bytes).subspan(offset, count);
}

}  // namespace

Thread::Thread(BlockContext& context, std::int64_t number) : context_(context), number_(number) {
  enter(context.program.routines.front());
  frame().parameters = context.arguments;
}

const Step& Thread::step() const { return frame().routine->steps[frame().next]; }

void Thread::enter(const Routine& routine) {
  Frame entered{&routine, 0, std::vector<Bits>(routine.widths.size()),
                std::vector<std::uint8_t>(static_cast<std::size_t>(routine.parameter_bytes)), local_.size()};
  local_.resize(local_.size() + static_cast<std::size_t>(routine.local_bytes));
  frames_.push_back(std::move(entered));
}

// Operands

Bits Thread::special(const Ref& ref) const {
  const auto axis = static_cast<std::size_t>(ref.index);
  const auto& block = context_.launch.block;
  switch (ref.special) {
    case Special::kTid: {
      const std::array<std::int64_t, 3> place = {number_ % block[0], number_ / block[0] % block[1],
                                                 number_ / (block[0] * block[1])};
      return static_cast<Bits>(place[axis]);
    }
    case Special::kNtid: return static_cast<Bits>(block[axis]);
    case Special::kCtaid: return static_cast<Bits>(context_.block[axis]);
    case Special::kNctaid: return static_cast<Bits>(context_.launch.grid[axis]);
    case Special::kLane: return static_cast<Bits>(number_ % kWarpThreads);
    case Special::kWarp: return static_cast<Bits>(number_ / kWarpThreads);
    case Special::kLaneMask: {
      const Bits self = Bits{1} << (number_ % kWarpThreads);
      const Bits below = self - 1;
      const Bits all = truncated(~Bits{0}, 32);
      const std::array<Bits, 5> masks = {self, below, below | self, all & ~(below | self), all & ~below};
      return masks[std::min<std::size_t>(ref.value, masks.size() - 1)];
    }
    case Special::kClock: return static_cast<Bits>(context_.launch.most_steps - context_.steps_left);
  }
  return 0;
}

Bits Thread::read(const Ref& ref) const {
  switch (ref.kind) {
    case RefKind::kRegister: {
      const Bits bits = at(frame().registers, ref.index);
      return ref.negated ? Bits{bits == 0} : bits;
    }
    case RefKind::kValue: return ref.value;
    case RefKind::kSpecial: return special(ref);
    case RefKind::kLocalVariable:
      return frame().local_base + static_cast<Bits>(at(frame().routine->offsets, ref.index)) + ref.value;
    case RefKind::kSharedVariable: return static_cast<Bits>(at(frame().routine->offsets, ref.index)) + ref.value;
    case RefKind::kParameterVariable:
      return kParameterWindow + static_cast<Bits>(at(frame().routine->offsets, ref.index)) + ref.value;
    case RefKind::kGlobalVariable: return at(context_.variables, ref.index) + ref.value;
    default: return 0;
  }
}

void Thread::write(const Ref& ref, Bits bits) {
  if (ref.kind == RefKind::kRegister) {
    at(frame().registers, ref.index) = truncated(bits, at(frame().routine->widths, ref.index));
  }
}

Bits Thread::address_of(const Ref& address) const { return read(address.parts.front()) + address.value; }

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

// Memory

void Thread::load(const Step& step) {
  const auto width = static_cast<std::size_t>(ptx::width_of(step.type));
  const Ref& target = step.operands[0];
  const bool is_vector = target.kind == RefKind::kGroup;
  const std::size_t elements = is_vector ? target.parts.size() : 1;
  const auto bytes = place(step, step.operands[1], width * elements, Memory::Access::kRead);
  if (bytes.empty()) return;
  for (std::size_t i = 0; i < elements; ++i) {
    const Bits bits = bits_in(bytes.subspan(i * width, width));
    const bool extends = ptx::is_signed(step.type);
    write(is_vector ? target.parts[i] : target,
          extends ? static_cast<Bits>(extended(bits, bit_count(step.type))) : bits);
  }
}

void Thread::store(const Step& step) {
  const auto width = static_cast<std::size_t>(ptx::width_of(step.type));
  const Ref& source = step.operands[1];
  const bool is_vector = source.kind == RefKind::kGroup;
  const std::size_t elements = is_vector ? source.parts.size() : 1;
  const auto bytes = place(step, step.operands[0], width * elements, Memory::Access::kWrite);
  if (bytes.empty()) return;
  for (std::size_t i = 0; i < elements; ++i) {
    const Bits bits = read(is_vector ? source.parts[i] : source);
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

// Registers

/// One register, or several that are one when put together.
void Thread::move(const Step& step) {
  const Ref& target = step.operands[0];
  const Ref& source = step.operands[1];
  Bits bits = 0;
  if (source.kind == RefKind::kGroup) {
    const int part = bit_count(step.type) / static_cast<int>(std::max<std::size_t>(source.parts.size(), 1));
    for (std::size_t i = source.parts.size(); i-- > 0;) bits = bits << part | truncated(read(source.parts[i]), part);
  } else {
    bits = read(source);
  }
  if (target.kind != RefKind::kGroup) return write(target, truncated(bits, bit_count(step.type)));
  const int part = bit_count(step.type) / static_cast<int>(std::max<std::size_t>(target.parts.size(), 1));
  for (std::size_t i = 0; i < target.parts.size(); ++i) {
    write(target.parts[i], truncated(bits >> (static_cast<int>(i) * part), part));
  }
}

void Thread::convert_address(const Step& step) {
  const Bits address = read(step.operands[1]);
  const Bits start = window_start(step.space);
  if (step.second == "to" || step.choice == "to") {
    write(step.operands[0], address >= start ? address - start : address);
  } else {
    write(step.operands[0], address < start ? address + start : address);
  }
}

void Thread::set_predicate(const Step& step) {
  bool holds = step.op == Op::kSetp && compare(step, read(step.operands[1]), read(step.operands[2]));
  bool opposite = !holds;
  if (step.operands.size() > 3) {
    const bool other = read(step.operands[3]) != 0;
    const auto combined = [&](bool value) {
      return step.second == "and" ? value && other : step.second == "or" ? value || other : value != other;
    };
    holds = combined(holds);
    opposite = combined(opposite);
  }
  const Ref& target = step.operands[0];
  write(target.kind == RefKind::kGroup ? target.parts[0] : target, holds ? 1 : 0);
  if (target.kind == RefKind::kGroup && target.parts.size() > 1) write(target.parts[1], opposite ? 1 : 0);
}

// Control

void Thread::branch(const Step& step) {
  if (step.op == Op::kBrx) {
    const Bits index = read(step.operands[0]);
    if (step.targets == nullptr || index >= step.targets->size()) {
      fault_ = fmt::format("{} has no target {}", step.source->text(), index);
      return;
    }
    frame().next = static_cast<std::size_t>((*step.targets)[index]);
    return;
  }
  frame().next = static_cast<std::size_t>(step.operands[0].index);
}

void Thread::call(const Step& step) {
  constexpr std::size_t kDeepest = 256;
  if (frames_.size() >= kDeepest) {
    fault_ = fmt::format("calls are nested more than {} deep", kDeepest);
    return;
  }
  const Routine& callee = at(context_.program.routines, step.callee);
  const int results = callee.source->results;
  const Frame caller = frame();
  std::vector<Bits> values;
  for (const Ref& argument : step.operands[1].parts) {
    values.push_back(argument.kind == RefKind::kParameterVariable ? 0 : read(argument));
  }
  enter(callee);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Ref& argument = step.operands[1].parts[i];
    const std::size_t formal = static_cast<std::size_t>(results) + i;
    const auto bytes = static_cast<std::size_t>(callee.source->variables[formal].bytes);
    std::vector<std::uint8_t> content(std::max<std::size_t>(bytes, sizeof(Bits)));
    std::memcpy(content.data(), &values[i], sizeof(Bits));
    if (argument.kind == RefKind::kParameterVariable) {
      const auto from = static_cast<std::size_t>(at(caller.routine->offsets, argument.index));
      const std::size_t count = std::min(content.size(), caller.parameters.size() - from);
      std::copy_n(caller.parameters.begin() + static_cast<std::ptrdiff_t>(from), count, content.begin());
    }
    const int reg = callee.source->formals[formal];
    if (reg >= 0) {
      at(frame().registers, reg) = truncated(bits_in(std::span(content).first(sizeof(Bits))), at(callee.widths, reg));
    } else {
      std::copy_n(content.begin(), bytes, frame().parameters.begin() + callee.offsets[formal]);
    }
  }
}

void Thread::leave() {
  const Frame callee = std::move(frames_.back());
  frames_.pop_back();
  local_.resize(callee.local_base);
  if (frames_.empty()) return;
  const Step& step = this->step();
  for (std::size_t i = 0; i < step.operands[0].parts.size(); ++i) {
    const Ref& result = step.operands[0].parts[i];
    const auto bytes = static_cast<std::size_t>(callee.routine->source->variables[i].bytes);
    const int reg = callee.routine->source->formals[i];
    std::vector<std::uint8_t> content(std::max<std::size_t>(bytes, sizeof(Bits)));
    if (reg >= 0) {
      std::memcpy(content.data(), &at(callee.registers, reg), sizeof(Bits));
    } else {
      std::copy_n(callee.parameters.begin() + callee.routine->offsets[i], bytes, content.begin());
    }
    if (result.kind == RefKind::kParameterVariable) {
      const auto to = static_cast<std::size_t>(at(frame().routine->offsets, result.index));
      std::copy_n(content.begin(), std::min(bytes, frame().parameters.size() - to),
                  frame().parameters.begin() + static_cast<std::ptrdiff_t>(to));
    } else {
      write(result, bits_in(std::span(content).first(sizeof(Bits))));
    }
  }
  go_on();
}

void Thread::take(const Step& step) {
  switch (step.op) {
    case Op::kNop: return;
    case Op::kLd: return load(step);
    case Op::kSt: return store(step);
    case Op::kAtom:
    case Op::kRed: return update(step);
    case Op::kCopy: return copy(step);
    case Op::kMov: return move(step);
    case Op::kCvta: return convert_address(step);
    case Op::kSetp: return set_predicate(step);
    case Op::kIsSpace: return write(step.operands[0], window_of(read(step.operands[1])) == step.space ? 1 : 0);
    case Op::kTrap: fault_ = "the kernel traps"; return;
    default: break;
  }
  std::array<Bits, 5> values{};
  const std::size_t count = std::min(step.operands.size() - 1, values.size());
  for (std::size_t i = 0; i < count; ++i) values[i] = read(step.operands[i + 1]);
  write(step.operands[0], compute(step, std::span(values).first(count)));
}

Stop Thread::run() {
  while (fault_.empty()) {
    if (frame().next >= frame().routine->steps.size()) {
      leave();
      if (frames_.empty()) return Stop::kExited;
      continue;
    }
    const Step& step = this->step();
    if (--context_.steps_left < 0) {
      fault_ = fmt::format("the kernel takes more than {} steps", context_.launch.most_steps);
      break;
    }
    if (step.guard >= 0 && (at(frame().registers, step.guard) != 0) == step.guard_negated) {
      go_on();
      continue;
    }
    switch (step.op) {
      case Op::kBarrier: return Stop::kBarrier;
      case Op::kShfl:
      case Op::kVote:
      case Op::kActiveMask:
      case Op::kSyncWarp: return Stop::kWarp;
      case Op::kExit: frames_.clear(); return Stop::kExited;
      case Op::kRet:
        leave();
        if (frames_.empty()) return Stop::kExited;
        break;
      case Op::kBra:
      case Op::kBrx: branch(step); break;
      case Op::kCall: call(step); break;
      default:
        take(step);
        go_on();
        break;
    }
  }
  return Stop::kFault;
}

}  // namespace tangram::interpret
