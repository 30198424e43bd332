// What was found wrong with a plan. The same shape as a violation of `check`: a stable code, a place, a sentence.
#pragma once

#include "tangram/plan/check.hpp"

namespace tangram::execute {

using Finding = plan::Violation;

}  // namespace tangram::execute
