// The data that came with the program: share/tangram beside an installed one, configs in the tree it was built in. Goes
// in: a name. Comes out: the folder or the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"

namespace tangram::app {

/// "parallelizers", "clusters", ...; empty: there is none.
[[nodiscard]] std::string shipped_folder(std::string_view name);

enum class Shipped : std::uint8_t { kCluster, kModel };

/// What `tangram plan h100-a100-v100 mixtral-8x7b` may name, sorted.
[[nodiscard]] std::vector<std::string> shipped_names(Shipped kind);

/// The file that `path` means: a file of that name, else the shipped cluster or model of that name, else `path`.
[[nodiscard]] std::string shipped_or(Shipped kind, const std::string& path);

/// What to do where `path` is no file: the nearest shipped name; empty where none is near.
[[nodiscard]] std::string shipped_hint(Shipped kind, const std::string& path);

}  // namespace tangram::app
