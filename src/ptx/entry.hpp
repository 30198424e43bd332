// Entries by name. Goes in: a module and a name. Comes out: the entry, or which there are.
#pragma once

#include <string>

#include "tangram/base/expected.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

[[nodiscard]] Expected<const Function*> find_entry(const Module& module, const std::string& name);

}  // namespace tangram::ptx
