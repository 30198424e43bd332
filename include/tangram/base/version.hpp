// The version of this program, as plans and `tangram version` name it.
#pragma once

#include <string_view>

namespace tangram {

[[nodiscard]] std::string_view version();

}  // namespace tangram
