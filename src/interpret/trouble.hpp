// What is wrong with a module or a launch. Goes in: what, and the instruction's place. Comes out: the Diagnostic.
#pragma once

#include <string>
#include <utility>

#include "tangram/base/problem.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::interpret {

/// At no line where the place is not given.
[[nodiscard]] inline Diagnostic trouble(const ptx::Module& module, ptx::Place place, std::string code,
                                        std::string message, std::string hint = {}) {
  Diagnostic diagnostic = problem(ErrorKind::kInput, std::move(code), std::move(message), std::move(hint));
  diagnostic.where = {module.file, place.line, place.column};
  return diagnostic;
}

}  // namespace tangram::interpret
