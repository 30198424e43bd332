// Origins of all registers and of what is kept on the chip. Goes in: a body. Comes out: the least fixed point of the
// rules in README.md.
#pragma once

#include <map>
#include <vector>

#include "opcodes.hpp"
#include "origins.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

class RegisterOrigins {
 public:
  /// Both outlive it.
  RegisterOrigins(const Module& module, const Function& body);

  [[nodiscard]] Origins of(const Operand& operand) const;

 private:
  bool is_formal(int variable) const { return variable < body_.parameters; }

  bool step(const Instruction& instruction);
  bool define(const Operand& target, const Origins& value);
  bool load(const Instruction& instruction);
  bool load_parameter(const Instruction& instruction, const Operand& address);
  bool store(const Instruction& instruction);
  bool call(const Instruction& instruction);
  [[nodiscard]] Origins combined(OpcodeClass what, const Instruction& instruction) const;
  [[nodiscard]] Origins joined(const Instruction& instruction, std::size_t first, std::size_t last) const;
  [[nodiscard]] Base parameter_base(int parameter, std::int64_t offset) const;

  const Module& module_;
  const Function& body_;
  std::vector<Origins> registers_;
  std::map<int, Origins> arguments_;  ///< of .param variables of the body
  Origins kept_;                      ///< in shared and local memory
};

/// Functions of the driver that leave memory of other launches as it is.
[[nodiscard]] bool is_harmless_call(std::string_view name);

}  // namespace tangram::ptx
