// NumPy's array file (numpy.org, NEP 1, version 1.0 to 3.0): one dimension of little-endian floats.
#pragma once

#include <string>
#include <vector>

#include "tangram/base/expected.hpp"

namespace tangram::profiles {

[[nodiscard]] Expected<std::vector<double>> read_npy(const std::string& content, const std::string& file);

}  // namespace tangram::profiles
