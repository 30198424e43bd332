// Node names as ranges: the inverse of what cluster.json expands.
#pragma once

#include <string>
#include <vector>

namespace tangram::inventory {

/// "a-08", "a-09", "a-10", "a-12", "login" becomes "a-[08-10,12]", "login": few patterns that stand for exactly these
/// names, each once. O(n log n).
[[nodiscard]] std::vector<std::string> name_ranges(const std::vector<std::string>& names);

}  // namespace tangram::inventory
