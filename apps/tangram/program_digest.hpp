// This program, as a digest: another where its results may be.
#pragma once

#include <string>

namespace tangram::app {

/// Of the executable and the library of mathematical functions it runs with, whose last bits may decide. A file that
/// cannot be read counts by its name.
[[nodiscard]] std::string program_digest();

}  // namespace tangram::app
