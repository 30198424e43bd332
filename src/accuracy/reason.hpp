// Why a measurement cannot be expressed, in the form that Expected carries.
#pragma once

#include <string>
#include <utility>

#include "tangram/base/diagnostic.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::accuracy {

[[nodiscard]] inline Diagnostic reason(std::string message) {
  return problem(ErrorKind::kInfeasible, "not-expressible", std::move(message));
}

}  // namespace tangram::accuracy
