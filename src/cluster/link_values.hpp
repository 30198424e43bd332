// Conversions between the units of the formats and ours, exact in both directions for every value that was read.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tangram/cluster/gpu.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::cluster {

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
inline constexpr double kGigabyte = 1e9;
inline constexpr double kGigabit = 1e9 / 8;  // in bytes
inline constexpr double kTera = 1e12;

// Above these a value is a slip of the unit, not hardware.
inline constexpr io::NumberRange kMemoryGib{0, 1e5, true};
inline constexpr io::NumberRange kBandwidth{0, 1e6, true};
inline constexpr io::NumberRange kLatencyUs{0, 1e7};
inline constexpr io::NumberRange kTflops{0, 1e6};
inline constexpr io::NumberRange kPrice{0, 1e7};

[[nodiscard]] Bytes from_gib(double gib);
[[nodiscard]] Nanoseconds from_us(double us);
[[nodiscard]] double to_gib(Bytes bytes);
[[nodiscard]] double to_us(Nanoseconds time);

/// The double x with x * unit == value, bit for bit, if there is one near value / unit; else value / unit.
[[nodiscard]] double in_units(double value, double unit);

/// Reads `bandwidth_key` (in `unit` bytes/s) and latency_us, both required.
[[nodiscard]] Link read_link(io::ObjectReader& reader, std::string_view bandwidth_key, double unit);

[[nodiscard]] nlohmann::ordered_json link_to_json(const Link& link, const std::string& bandwidth_key, double unit);

}  // namespace tangram::cluster
