// Content digests: what a plan names its inputs by. XXH3-128, 32 hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

namespace tangram {

[[nodiscard]] std::string digest(std::string_view content);

}  // namespace tangram
