// A search's result as one line of text. Goes in: a result, or such a line. Comes out: the other, equal in every
// member; nullopt where the line is not what this program writes.
#pragma once

#include <optional>
#include <string>

#include "tangram/compose/composition.hpp"

namespace tangram::planner {

/// nullopt: a text in it is not UTF-8.
[[nodiscard]] std::optional<std::string> write_result(const compose::SearchResult& result);
[[nodiscard]] std::optional<compose::SearchResult> read_result(const std::string& text);

}  // namespace tangram::planner
