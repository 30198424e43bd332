// Names of any length on pages of a bounded one, and small messages.
#pragma once

#include <cstddef>
#include <string>

#include "tangram/base/units.hpp"

namespace tangram::app {

inline constexpr std::size_t kLongestText = 100;  ///< characters of a name or a list of names

/// At most so many characters, the last of them an ellipsis where it was longer.
[[nodiscard]] std::string clipped(const std::string& text, std::size_t most = kLongestText);

/// "16 KiB", "1.5 KiB"; from a MiB on as people_bytes.
[[nodiscard]] std::string message_bytes(Bytes bytes);

}  // namespace tangram::app
