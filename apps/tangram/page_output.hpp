// Where a page for browsers goes: --html of the commands that have it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.hpp"

namespace tangram::app {

/// --html
[[nodiscard]] Option html_option(std::string help, std::string& path);

/// Why the page cannot go there: over an input, or where the command's other output goes. `output` is that of --output,
/// empty where there is none.
[[nodiscard]] std::optional<Diagnostics> page_complaint(const Context& context, const std::string& html,
                                                        const std::string& output,
                                                        const std::vector<std::string>& inputs);

}  // namespace tangram::app
