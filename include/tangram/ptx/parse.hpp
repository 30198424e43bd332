// Reads PTX. Goes in: the text of a module. Comes out: the module, or the first mistake with its line and column.
#pragma once

#include <string>

#include "tangram/base/expected.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

/// PTX of any version up to 8.8 (PTX ISA, "Syntax" and "Directives"). Opcodes and modifiers are kept as they are
/// written, known or not; sections of debug data are skipped. `file` is the name that errors carry.
[[nodiscard]] Expected<Module> parse(const std::string& text, const std::string& file);

}  // namespace tangram::ptx
