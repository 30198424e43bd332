#include "tangram/base/version.hpp"

namespace tangram {

std::string_view version() { return TANGRAM_VERSION; }

}  // namespace tangram
