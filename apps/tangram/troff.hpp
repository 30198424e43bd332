// Text for troff.
#pragma once

#include <string>
#include <string_view>

namespace tangram::app {

[[nodiscard]] std::string replaced(std::string text, std::string_view from, std::string_view to);

/// What begins a request, and the characters that troff changes, stand for themselves.
[[nodiscard]] std::string troff(std::string text);

}  // namespace tangram::app
