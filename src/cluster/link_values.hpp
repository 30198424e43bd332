// Conversions between the units of the formats and ours, exact in both directions for every value that was read.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tangram/cluster/gpu.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::cluster {

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
inline constexpr double kGigabyte = 1e9;
inline constexpr double kGigabit = 1e9 / 8;  // in bytes
inline constexpr double kTera = 1e12;

inline constexpr io::NumberRange kMemoryGib = io::number_limit("memory_gib");
inline constexpr io::NumberRange kBandwidthGb = io::number_limit("bandwidth_gb_s");
inline constexpr io::NumberRange kBandwidthGbit = io::number_limit("bandwidth_gbit_s");
inline constexpr io::NumberRange kLatencyUs = io::number_limit("latency_us");
inline constexpr io::NumberRange kTflops = io::number_limit("peak_tflops");
inline constexpr io::NumberRange kPrice = io::number_limit("price_per_hour_usd");

[[nodiscard]] Bytes from_gib(double gib);
[[nodiscard]] Nanoseconds from_us(double us);
[[nodiscard]] double to_gib(Bytes bytes);
[[nodiscard]] double to_us(Nanoseconds time);

/// The double x with x * unit == value, bit for bit, if there is one near value / unit; else value / unit.
[[nodiscard]] double in_units(double value, double unit);

/// Reads `bandwidth_key` (in `unit` bytes/s) and latency_us, both required.
[[nodiscard]] Link read_link(io::ObjectReader& reader, std::string_view bandwidth_key, double unit);

/// Reads ramp_us of a link between GPUs, which may be left out.
[[nodiscard]] Nanoseconds read_ramp(io::ObjectReader& reader, Nanoseconds usual);

/// With its ramp where that is not the usual one, which is what read_ramp takes for it.
[[nodiscard]] nlohmann::ordered_json link_to_json(const Link& link, const std::string& bandwidth_key, double unit,
                                                  Nanoseconds usual_ramp = Nanoseconds(0));

}  // namespace tangram::cluster
