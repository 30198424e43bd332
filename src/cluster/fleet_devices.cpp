#include "fleet_devices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fleet_names.hpp"
#include "link_values.hpp"
#include "tangram/cluster/usual_link.hpp"
#include "tangram/io/limits.hpp"

namespace tangram::cluster {

namespace {

// GeForce cards boost above their nominal clock: a measured rate may exceed the datasheet's peak by this factor.
constexpr double kMostBoost = 1.25;

std::string_view fabric_name(const GpuType& device) { return device.vendor == "amd" ? "xgmi" : "nvlink"; }

bool has_fabric(const GpuType& device) { return device.peer_link.bandwidth.value() > 0; }

void set_link(DeviceGroup& group, const Link& link, int clique) {
  group.link = link;
  group.clique = std::min(clique, group.count);
}

void set_usual_link(DeviceGroup& group) { set_link(group, usual_link(group.device, group.count), group.count); }

void set_link_class(io::ObjectReader& reader, const std::string& word, DeviceGroup& group) {
  const GpuType& device = group.device;
  const std::string fabric(fabric_name(device));
  const std::string pairs = fabric + "-pairs";
  if (word == "pcie") return set_link(group, device.pcie, group.count);
  if (word != fabric && word != pairs) {
    const auto hint = has_fabric(device)
                          ? fmt::format("one of \"{}\", \"{}\", \"pcie\", or an object with the numbers", fabric, pairs)
                          : std::string("\"pcie\", or an object with the numbers");
    reader.error_at("link", "unknown-value", fmt::format("no link of {} is called \"{}\"", device.name, word), hint);
  } else if (!has_fabric(device)) {
    reader.error_at("link", "impossible", fmt::format("{} has no {}", device.name, fabric), "write \"link\": \"pcie\"");
  } else if (word == pairs) {
    if (group.count % 2 != 0) {
      reader.error_at("link", "impossible", fmt::format("{} GPUs do not divide into pairs", group.count));
    }
    set_link(group, device.peer_link, 2);
  } else {
    if (device.peer_reach > 0 && group.count > device.peer_reach) {
      reader.error_at("link", "impossible",
                      fmt::format("a bridge joins {} GPUs of {}, not {}", device.peer_reach, device.name, group.count),
                      fmt::format("write \"link\": \"{}\"", pairs));
    }
    set_link(group, device.peer_link, group.count);
  }
}

void read_link_numbers(io::ObjectReader numbers, DeviceGroup& group) {
  Link link = read_link(numbers, "bandwidth_gb_s", kGigabyte);
  link.ramp = read_ramp(numbers, group.device.peer_link.ramp);
  const auto clique = static_cast<int>(numbers.integer_or("clique", group.count, {1, kMaxGpus}));
  if (numbers.valid() && group.count % clique != 0) {
    numbers.error_at("clique", "impossible",
                     fmt::format("{} GPUs do not divide into cliques of {}", group.count, clique));
  }
  numbers.finish();
  set_link(group, link, clique);
}

void read_group_link(io::ObjectReader& reader, DeviceGroup& group) {
  const io::Node* link = reader.raw("link");
  if (link == nullptr) {
    set_usual_link(group);
  } else if (link->kind == io::NodeKind::kString) {
    set_link_class(reader, link->text, group);
  } else if (link->kind == io::NodeKind::kObject) {
    read_link_numbers({reader.document(), *link, reader.pointer() + "/link", reader.sink()}, group);
  } else {
    reader.error_at("link", "wrong-type", fmt::format("expected a string or an object, got {}", to_string(link->kind)));
  }
}

void set_gemm_rate(io::ObjectReader& measured, double tflops, GpuType& device) {
  const double peak = std::max(device.peak_of(DType::kFp16), device.peak_of(DType::kBf16)).value();
  const double share = peak > 0 ? tflops * kTera / peak : 0;
  constexpr double kLeastShare = io::number_limit("gemm_efficiency").min;
  if (peak <= 0) {
    measured.error_at("gemm_tflops", "impossible", fmt::format("{} has no 16-bit matrix units", device.name));
  } else if (share > kMostBoost) {
    measured.error_at(
        "gemm_tflops", "out-of-range",
        fmt::format("{:g} TFLOP/s is above the peak of {}, {:g} TFLOP/s in 16 bit", tflops, device.name, peak / kTera),
        "give the dense rate in fp16 or bf16");
  } else if (share < kLeastShare) {
    measured.error_at("gemm_tflops", "out-of-range",
                      fmt::format("{:g} TFLOP/s is below a thousandth of the peak of {}, {:g} TFLOP/s in 16 bit",
                                  tflops, device.name, peak / kTera));
  } else if (share > 1) {
    // Through TFLOP/s, so that the canonical form reads back to the same bits.
    for (auto& rate : device.peak) rate = FlopsPerSecond(in_units(rate.value(), kTera) * share * kTera);
    device.compute.gemm_efficiency = 1;
  } else {
    device.compute.gemm_efficiency = share;
  }
}

}  // namespace

void apply_measurements(io::ObjectReader& measured, DeviceGroup& group) {
  GpuType& device = group.device;
  if (const auto rate = measured.number_if("gemm_tflops", io::number_limit("gemm_tflops")))
    set_gemm_rate(measured, *rate, device);
  if (const auto rate = measured.number_if("memory_bandwidth_gb_s", io::number_limit("memory_bandwidth_gb_s"))) {
    const double share = *rate * kGigabyte / device.memory_bandwidth.value();
    if (share > 1) {
      measured.error_at("memory_bandwidth_gb_s", "out-of-range",
                        fmt::format("{:g} GB/s is above the datasheet's {:g} GB/s of {}", *rate,
                                    device.memory_bandwidth.value() / kGigabyte, device.name));
    }
    if (share < io::number_limit("memory_efficiency").min) {
      measured.error_at("memory_bandwidth_gb_s", "out-of-range",
                        fmt::format("{:g} GB/s is below a thousandth of the datasheet's {:g} GB/s of {}", *rate,
                                    device.memory_bandwidth.value() / kGigabyte, device.name));
    }
    device.compute.memory_efficiency = std::min(share, 1.0);
  }
  if (const auto usable = measured.number_if("usable_memory_gib", io::number_limit("usable_memory_gib"))) {
    const Bytes left = from_gib(*usable);
    if (left > device.memory) {
      measured.error_at(
          "usable_memory_gib", "out-of-range",
          fmt::format("{:g} GiB is more than the {:g} GiB of {}", *usable, to_gib(device.memory), device.name));
    } else {
      device.reserved = device.memory - left;
    }
  }
  if (const auto rate = measured.number_if("link_bandwidth_gb_s", io::number_limit("link_bandwidth_gb_s"))) {
    group.link.bandwidth = BytesPerSecond(*rate * kGigabyte);
  }
  if (measured.has("gemm_tflops") || measured.has("memory_bandwidth_gb_s")) device.compute.source = "measured here";
}

std::vector<DeviceGroup> read_device_groups(io::ObjectReader& node, const GpuTable& types,
                                            std::vector<std::string>& keys) {
  std::vector<DeviceGroup> groups;
  for (io::ObjectReader& reader : node.objects("gpus")) {
    if (!reader.valid()) continue;
    const std::string key = reader.string("type");
    const GpuType* type = find_gpu(reader, "type", key, types);
    DeviceGroup group;
    group.count = static_cast<int>(reader.integer("count", io::integer_limit("gpus")));
    if (type == nullptr) continue;  // reported; what its links may be is unknown
    group.device = *type;
    read_group_link(reader, group);
    if (auto measured = reader.object_if("measured")) {
      apply_measurements(*measured, group);
      measured->finish();
    }
    reader.finish();
    groups.push_back(std::move(group));
    keys.push_back(key);
  }
  return groups;
}

Link slowest_host_bus(const std::vector<DeviceGroup>& groups) {
  Link slowest;
  for (const DeviceGroup& group : groups) {
    const Link& bus = group.device.pcie;
    if (slowest.bandwidth.value() == 0 || bus.bandwidth < slowest.bandwidth) slowest.bandwidth = bus.bandwidth;
    slowest.latency = std::max(slowest.latency, bus.latency);
  }
  return slowest;
}

}  // namespace tangram::cluster
