// Why a measurement cannot be expressed, in the form that Expected carries.
#pragma once

#include <string>
#include <utility>

#include "tangram/base/diagnostic.hpp"

namespace tangram::accuracy {

[[nodiscard]] inline Diagnostic reason(std::string message) {
  Diagnostic diagnostic;
  diagnostic.kind = ErrorKind::kInfeasible;
  diagnostic.code = "not-expressible";
  diagnostic.message = std::move(message);
  return diagnostic;
}

}  // namespace tangram::accuracy
