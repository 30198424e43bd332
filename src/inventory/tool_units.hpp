// Units in which tools report what machines have.
#pragma once

namespace tangram::inventory {

inline constexpr double kMebibyte = 1024.0 * 1024.0;  ///< in bytes
inline constexpr double kGigabit = 1e9 / 8;           ///< in bytes

}  // namespace tangram::inventory
