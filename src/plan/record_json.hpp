// The parts of a plan file that are records of other modules: times, links, GPU capability records.
// Goes in: values. Comes out: JSON members and back, bit for bit.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "tangram/cluster/gpu.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::plan {

using Json = nlohmann::ordered_json;

// A double holds 53 bits: dividing and multiplying by a power of ten and rounding gives the same integer back for
// anything below 2^50.
[[nodiscard]] double milliseconds(Nanoseconds t);
[[nodiscard]] double seconds(Nanoseconds t);
[[nodiscard]] Nanoseconds read_milliseconds(io::ObjectReader& reader, std::string_view key);
[[nodiscard]] Nanoseconds read_seconds(io::ObjectReader& reader, std::string_view key);
[[nodiscard]] Bytes read_bytes(io::ObjectReader& reader, std::string_view key);

[[nodiscard]] Json link_json(const cluster::Link& link);
[[nodiscard]] cluster::Link read_link(io::ObjectReader& reader, std::string_view key);

[[nodiscard]] Json gpu_type_json(const cluster::GpuType& device);
[[nodiscard]] cluster::GpuType read_gpu_type(io::ObjectReader& reader);

}  // namespace tangram::plan
