// Which parallelizers there are inside the program. Goes in: nothing. Comes out: their names and how to make them;
// outside ones are found by plugin_places.hpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

struct BuiltIn {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Parallelizer> (*make)(const model::Model& model, const cost::ProfileSet* profiles);
};

/// The one that answers when nothing else is asked for comes first.
[[nodiscard]] std::span<const BuiltIn> built_ins();

/// Null: there is none of that name.
[[nodiscard]] const BuiltIn* find_built_in(std::string_view name);

}  // namespace tangram::parallelizer
