// Calls of functions, each with a frame of its own.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tangram/base/at.hpp"
#include "thread.hpp"
#include "windows.hpp"

namespace tangram::interpret {

/// What an argument or a result is: the bytes of a variable, or of a register.
std::vector<std::uint8_t> Thread::content_of(const Frame& frame, const Ref& ref, std::size_t bytes) const {
  std::vector<std::uint8_t> content(std::max(bytes, sizeof(Bits)));
  if (ref.kind == RefKind::kParameterVariable) {
    const auto from = static_cast<std::size_t>(at(frame.routine->offsets, ref.index));
    std::copy_n(frame.parameters.begin() + static_cast<std::ptrdiff_t>(from),
                std::min(bytes, frame.parameters.size() - from), content.begin());
  } else {
    const Bits bits = read(ref);
    std::memcpy(content.data(), &bits, sizeof(Bits));
  }
  return content;
}

void Thread::call(const Step& step) {
  constexpr std::size_t kDeepest = 256;
  if (frames_.size() >= kDeepest) {
    fault_ = fmt::format("calls are nested more than {} deep", kDeepest);
    return;
  }
  const Routine& callee = at(context_.program.routines, step.callee);
  const auto results = static_cast<std::size_t>(callee.source->results);
  std::vector<std::vector<std::uint8_t>> contents;
  for (const Ref& argument : step.operands[1].parts) {
    const ptx::Variable& formal = callee.source->variables[results + contents.size()];
    contents.push_back(content_of(frame(), argument, static_cast<std::size_t>(formal.bytes)));
  }
  enter(callee);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const std::size_t formal = results + i;
    const int reg = callee.source->formals[formal];
    if (reg >= 0) {
      const Bits bits = bits_in(std::span(contents[i]).first(sizeof(Bits)));
      at(frame().registers, reg) = truncated(bits, at(callee.widths, reg));
    } else {
      std::copy_n(contents[i].begin(), callee.source->variables[formal].bytes,
                  frame().parameters.begin() + callee.offsets[formal]);
    }
  }
}

/// Back behind the call, with what the function left in its results.
void Thread::leave() {
  const Frame callee = std::move(frames_.back());
  frames_.pop_back();
  local_.resize(callee.local_base);
  if (frames_.empty()) return;
  const std::vector<Ref>& results = step().operands[0].parts;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(callee.routine->source->variables[i].bytes);
    const int reg = callee.routine->source->formals[i];
    std::vector<std::uint8_t> content(std::max(bytes, sizeof(Bits)));
    if (reg >= 0) {
      std::memcpy(content.data(), &at(callee.registers, reg), sizeof(Bits));
    } else {
      std::copy_n(callee.parameters.begin() + callee.routine->offsets[i], bytes, content.begin());
    }
    if (results[i].kind != RefKind::kParameterVariable) {
      write(results[i], bits_in(std::span(content).first(sizeof(Bits))));
      continue;
    }
    const auto to = static_cast<std::size_t>(at(frame().routine->offsets, results[i].index));
    std::copy_n(content.begin(), std::min(bytes, frame().parameters.size() - to),
                frame().parameters.begin() + static_cast<std::ptrdiff_t>(to));
  }
  go_on();
}

}  // namespace tangram::interpret
