// A Diagnostic that is tied to no place of an input: of plugins, options, machines. Goes in: what, why, what to do.
#pragma once

#include <string>
#include <utility>

#include "tangram/base/diagnostic.hpp"

namespace tangram {

[[nodiscard]] inline Diagnostic problem(ErrorKind kind, std::string code, std::string message, std::string hint = {}) {
  Diagnostic diagnostic;
  diagnostic.kind = kind;
  diagnostic.code = std::move(code);
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return diagnostic;
}

}  // namespace tangram
