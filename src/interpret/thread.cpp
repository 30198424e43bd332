#include "thread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "arithmetic.hpp"
#include "tangram/base/at.hpp"
#include "windows.hpp"

namespace tangram::interpret {

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
    case Special::kLane: return static_cast<Bits>(lane());
    case Special::kWarp: return static_cast<Bits>(number_ / kWarpThreads);
    case Special::kLaneMask: {
      const Bits self = Bits{1} << lane();
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
      return window_start(ptx::Space::kParam) + static_cast<Bits>(at(frame().routine->offsets, ref.index)) + ref.value;
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

/// One register, or several that are one when put together.
void Thread::move(const Step& step) {
  const auto share = [&](std::span<const Ref> parts) {
    return bit_count(step.type) / static_cast<int>(std::max<std::size_t>(parts.size(), 1));
  };
  const std::span<const Ref> sources = step.operands[1].elements();
  const std::span<const Ref> targets = step.operands[0].elements();
  const int source_bits = share(sources);
  const int target_bits = share(targets);
  Bits bits = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    bits |= truncated(read(sources[i]), source_bits) << (static_cast<int>(i) * source_bits);
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    write(targets[i], truncated(bits >> (static_cast<int>(i) * target_bits), target_bits));
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
  bool holds = compare(step, read(step.operands[1]), read(step.operands[2]));
  bool opposite = !holds;
  if (step.operands.size() > 3) {
    const bool other = read(step.operands[3]) != 0;
    const auto combined = [&](bool value) {
      return step.second == "and" ? value && other : step.second == "or" ? value || other : value != other;
    };
    holds = combined(holds);
    opposite = combined(opposite);
  }
  const std::span<const Ref> targets = step.operands[0].elements();
  write(targets[0], holds ? 1 : 0);
  if (targets.size() > 1) write(targets[1], opposite ? 1 : 0);
}

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
      case Op::kLoadMatrix:
      case Op::kMatrixProduct:
      case Op::kShfl:
      case Op::kStoreMatrix:
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
        if (fault_.empty()) go_on();
        break;
    }
  }
  return Stop::kFault;
}

}  // namespace tangram::interpret
