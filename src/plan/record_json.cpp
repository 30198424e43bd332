#include "record_json.hpp"

#include <cmath>
#include <optional>
#include <string>

namespace tangram::plan {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 60;

Nanoseconds read_time(io::ObjectReader& reader, std::string_view key, double nanoseconds_per_unit) {
  const double most = static_cast<double>(kMostNanoseconds) / nanoseconds_per_unit;
  return Nanoseconds(std::llround(reader.number(key, {0.0, most, false}) * nanoseconds_per_unit));
}

Json calibration_json(const cluster::ComputeCalibration& compute) {
  Json out;
  out["gemm_efficiency"] = compute.gemm_efficiency;
  out["attention_forward"] = compute.attention_forward;
  out["attention_backward"] = compute.attention_backward;
  out["memory_efficiency"] = compute.memory_efficiency;
  out["kernel_launch_ms"] = milliseconds(compute.kernel_launch);
  out["host_issue_ms"] = milliseconds(compute.host_issue);
  out["source"] = compute.source;
  return out;
}

cluster::ComputeCalibration read_calibration(io::ObjectReader& reader) {
  cluster::ComputeCalibration compute;
  compute.gemm_efficiency = reader.number("gemm_efficiency", {0.0, 1.0, true});
  compute.attention_forward = reader.number("attention_forward", io::kPositive);
  compute.attention_backward = reader.number("attention_backward", io::kPositive);
  compute.memory_efficiency = reader.number("memory_efficiency", {0.0, 1.0, true});
  compute.kernel_launch = read_milliseconds(reader, "kernel_launch_ms");
  compute.host_issue = read_milliseconds(reader, "host_issue_ms");
  compute.source = reader.string_or("source", "");
  reader.finish();
  return compute;
}

}  // namespace

double milliseconds(Nanoseconds t) { return t.as_double() / 1e6; }
double seconds(Nanoseconds t) { return t.as_double() / 1e9; }

Nanoseconds read_milliseconds(io::ObjectReader& reader, std::string_view key) { return read_time(reader, key, 1e6); }
Nanoseconds read_seconds(io::ObjectReader& reader, std::string_view key) { return read_time(reader, key, 1e9); }

Bytes read_bytes(io::ObjectReader& reader, std::string_view key) { return Bytes(reader.integer(key, {0, kMostBytes})); }

Json link_json(const cluster::Link& link) {
  Json out;
  out["bandwidth_bytes_s"] = link.bandwidth.value();
  out["latency_ms"] = milliseconds(link.latency);
  return out;
}

cluster::Link read_link(io::ObjectReader& reader, std::string_view key) {
  cluster::Link link;
  if (auto inner = reader.object(key)) {
    link.bandwidth = BytesPerSecond(inner->number("bandwidth_bytes_s", io::kNotNegative));
    link.latency = read_milliseconds(*inner, "latency_ms");
    inner->finish();
  }
  return link;
}

Json gpu_type_json(const cluster::GpuType& device) {
  Json out;
  out["name"] = device.name;
  out["vendor"] = device.vendor;
  out["architecture"] = device.architecture;
  out["multiprocessors"] = device.multiprocessors;
  out["memory_bytes"] = device.memory.value();
  out["reserved_bytes"] = device.reserved.value();
  out["memory_bandwidth_bytes_s"] = device.memory_bandwidth.value();
  Json peaks = Json::object();
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    peaks[std::string(to_string(type))] = device.peak_of(type).value();
  }
  out["peak_flops_s"] = peaks;
  out["peer_link"] = link_json(device.peer_link);
  if (device.peer_pair.value() > 0) out["peer_pair_bytes_s"] = device.peer_pair.value();
  out["pcie"] = link_json(device.pcie);
  out["compute"] = calibration_json(device.compute);
  out["price_per_hour"] = device.price_per_hour.value();
  out["source"] = device.source;
  return out;
}

cluster::GpuType read_gpu_type(io::ObjectReader& reader) {
  cluster::GpuType device;
  device.name = reader.string("name");
  device.vendor = reader.string_or("vendor", "");
  device.architecture = reader.string_or("architecture", "");
  device.multiprocessors = static_cast<int>(reader.integer("multiprocessors", {0, 10'000}));
  device.memory = read_bytes(reader, "memory_bytes");
  device.reserved = read_bytes(reader, "reserved_bytes");
  device.memory_bandwidth = BytesPerSecond(reader.number("memory_bandwidth_bytes_s", io::kPositive));
  if (auto peaks = reader.object("peak_flops_s")) {
    for (int i = 0; i < kDTypeCount; ++i) {
      device.peak[static_cast<std::size_t>(i)] =
          FlopsPerSecond(peaks->number(to_string(static_cast<DType>(i)), io::kNotNegative));
    }
    peaks->finish();
  }
  device.peer_link = read_link(reader, "peer_link");
  device.peer_pair = BytesPerSecond(reader.number_or("peer_pair_bytes_s", 0, io::kNotNegative));
  device.pcie = read_link(reader, "pcie");
  if (auto compute = reader.object("compute")) device.compute = read_calibration(*compute);
  device.price_per_hour = Dollars(reader.number("price_per_hour", io::kNotNegative));
  device.source = reader.string_or("source", "");
  reader.finish();
  return device;
}

}  // namespace tangram::plan
