#include "gpu_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "link_values.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/spelling.hpp"

namespace tangram::cluster {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// The nearest spelling; else the names that begin like the word ("A100-80GB": "A100-80GB-PCIe", "A100-80GB-SXM").
std::string hint_for(const std::string& word, const GpuTable& table) {
  std::vector<std::string> names;
  std::vector<std::string> alike;
  for (const auto& [name, type] : table) {
    names.push_back(name);
    if (!word.empty() && lower(name).starts_with(lower(word))) alike.push_back(name);
  }
  if (alike.empty()) {
    if (const auto near = closest(word, names)) alike.push_back(*near);
  }
  if (alike.empty()) return "describe it under \"gpus\", or take the name of a similar type from configs/gpus";
  if (alike.size() > 4) alike.resize(4);
  return fmt::format("did you mean \"{}\"?", fmt::join(alike, "\" or \""));
}

// One record. `base` is what "like" names; without it the basic figures are required.
class RecordReader {
 public:
  RecordReader(io::ObjectReader& reader, const GpuType* base) : reader_(reader), base_(base) {}

  GpuType read(const std::string& key) {
    GpuType type = base_ != nullptr ? *base_ : GpuType{};
    type.name = reader_.has("name") ? reader_.string("name") : key;
    if (type.name.empty() || type.name.find('#') != std::string::npos) {
      reader_.error_at("name", "out-of-range", fmt::format("\"{}\" is no name of a GPU type", type.name),
                       "give a text without \"#\", which tells measured variants apart");
    }
    type.vendor = text("vendor", type.vendor);
    type.architecture = text("architecture", type.architecture);
    type.multiprocessors = static_cast<int>(
        reader_.integer_or("multiprocessors", type.multiprocessors, io::integer_limit("multiprocessors")));
    read_memory(type);
    read_peaks(type);
    read_links(type);
    read_calibration(type.compute);
    type.price_per_hour = Dollars(reader_.number_or("price_per_hour_usd", type.price_per_hour.value(), kPrice));
    type.source = reader_.string_or("source", type.source.str());
    return type;
  }

 private:
  std::string text(std::string_view key, const std::string& fallback) {
    return base_ != nullptr ? reader_.string_or(key, fallback) : reader_.string(key);
  }

  double number(std::string_view key, double fallback, io::NumberRange range) {
    return base_ != nullptr ? reader_.number_or(key, fallback, range) : reader_.number(key, range);
  }

  void read_memory(GpuType& type) {
    const bool own_memory = base_ == nullptr || reader_.has("memory_gib");
    type.memory = from_gib(number("memory_gib", to_gib(type.memory), kMemoryGib));
    // A context and library workspaces of about 1 GiB, and 5 % that the allocator cannot use.
    const double usual = own_memory ? 1.0 + 0.05 * to_gib(type.memory) : to_gib(type.reserved);
    type.reserved = from_gib(reader_.number_or("reserved_gib", usual, io::number_limit("reserved_gib")));
    if (type.reserved >= type.memory) {
      reader_.error_at(reader_.has("reserved_gib") ? "reserved_gib" : "memory_gib", "out-of-range",
                       fmt::format("{:g} GiB are reserved of {:g} GiB: nothing is left", to_gib(type.reserved),
                                   to_gib(type.memory)));
    }
    const double rate = in_units(type.memory_bandwidth.value(), kGigabyte);
    type.memory_bandwidth =
        BytesPerSecond(number("memory_bandwidth_gb_s", rate, io::number_limit("memory_bandwidth_gb_s")) * kGigabyte);
  }

  void read_peaks(GpuType& type) {
    auto peaks = base_ != nullptr ? reader_.object_if("peak_tflops") : reader_.object("peak_tflops");
    if (!peaks) return;
    bool any = false;
    for (int i = 0; i < kDTypeCount; ++i) {
      auto& peak = at(type.peak, i);
      const double fallback = in_units(peak.value(), kTera);
      peak = FlopsPerSecond(peaks->number_or(to_string(static_cast<DType>(i)), fallback, kTflops) * kTera);
      any = any || peak.value() > 0;
    }
    if (!any && peaks->valid())
      reader_.error_at("peak_tflops", "out-of-range", "a GPU needs a peak in one dtype at least");
    peaks->finish();
  }

  void read_links(GpuType& type) {
    if (auto peer = reader_.object_if("peer_link")) {
      type.peer_link = read_link(*peer, "bandwidth_gb_s", kGigabyte);
      type.peer_link.ramp = read_ramp(*peer, Nanoseconds(0));
      type.peer_reach = static_cast<int>(peer->integer_or("reach", 0, io::integer_limit("reach")));
      type.peer_pair =
          BytesPerSecond(peer->number_if("pair_gb_s", io::number_limit("pair_gb_s")).value_or(0) * kGigabyte);
      if (type.peer_pair > type.peer_link.bandwidth) {
        peer->error_at("pair_gb_s", "out-of-range",
                       "one pair cannot have more than bandwidth_gb_s, all of a GPU's links");
      }
      peer->finish();
    }
    if (auto pcie = base_ != nullptr ? reader_.object_if("pcie") : reader_.object("pcie")) {
      type.pcie = read_link(*pcie, "bandwidth_gb_s", kGigabyte);
      pcie->finish();
    }
  }

  void read_calibration(ComputeCalibration& compute) {
    auto calibration = reader_.object_if("calibration");
    if (!calibration) return;
    constexpr io::NumberRange kShare = io::number_limit("gemm_efficiency");
    constexpr io::NumberRange kOverhead = io::number_limit("kernel_launch_us");
    compute.gemm_efficiency = calibration->number_or("gemm_efficiency", compute.gemm_efficiency, kShare);
    compute.attention_forward = calibration->number_or("attention_forward", compute.attention_forward, kShare);
    compute.attention_backward = calibration->number_or("attention_backward", compute.attention_backward, kShare);
    read_native_attention(*calibration, compute.native_attention);
    compute.memory_efficiency = calibration->number_or("memory_efficiency", compute.memory_efficiency, kShare);
    read_fused_kernels(*calibration, compute.fused_kernels);
    compute.kernel_launch =
        from_us(calibration->number_or("kernel_launch_us", to_us(compute.kernel_launch), kOverhead));
    compute.host_issue = from_us(calibration->number_or("host_issue_us", to_us(compute.host_issue), kOverhead));
    const double unvectorized = in_units(compute.unvectorized_values, kGigabyte);
    compute.unvectorized_values = kGigabyte * calibration->number_or("unvectorized_gvalues_s", unvectorized,
                                                                     io::number_limit("unvectorized_gvalues_s"));
    compute.source = calibration->string_or("source", compute.source.str());
    calibration->finish();
  }

  /// Figures of kernels with a source of their own: `each` is given what reads one, and what reads one that may be left
  /// out. Where the record takes over another's, it need not give any.
  template <class Figures, class Each>
  static void read_figures(io::ObjectReader& calibration, std::string_view key, std::optional<Figures>& out,
                           const Each& each) {
    auto record = calibration.object_if(key);
    if (!record) return;
    Figures figures = out.value_or(Figures{});
    const auto read_if = [&](std::string_view name, double& figure, io::NumberRange range) {
      figure = record->number_or(name, figure, range);
    };
    const auto read = [&](std::string_view name, double& figure, io::NumberRange range) {
      if (out) return read_if(name, figure, range);
      figure = record->number(name, range);
    };
    each(figures, read, read_if);
    figures.source = record->string_or("source", figures.source.str());
    record->finish();
    out = std::move(figures);
  }

  static void read_fused_kernels(io::ObjectReader& calibration, std::optional<FusedKernels>& out) {
    constexpr io::NumberRange kShare = io::number_limit("gemm_efficiency");
    read_figures(calibration, "fused_kernels", out, [&](FusedKernels& fused, const auto& read, const auto& read_if) {
      read("gemm_efficiency", fused.gemm_efficiency, kShare);
      read("fp8_efficiency", fused.fp8_efficiency, kShare);
      read("memory_efficiency", fused.memory_efficiency, kShare);
      read_if("fp4_efficiency", fused.fp4_efficiency, kShare);
    });
  }

  static void read_native_attention(io::ObjectReader& calibration, std::optional<NativeAttention>& out) {
    constexpr io::NumberRange kShare = io::number_limit("forward");
    constexpr io::NumberRange kKeys = io::number_limit("forward_extra_keys");
    constexpr io::NumberRange kWidth = io::number_limit("head_dim_multiple");
    read_figures(calibration, "native_attention", out,
                 [&](NativeAttention& native, const auto& read, const auto& read_if) {
                   read("forward", native.forward, kShare);
                   read("backward", native.backward, kShare);
                   read("forward_extra_keys", native.forward_extra_keys, kKeys);
                   read("backward_extra_keys", native.backward_extra_keys, kKeys);
                   read_if("head_dim_multiple", native.head_dim_multiple, kWidth);
                   read_if("forward_extra_head_dim", native.forward_extra_head_dim, kWidth);
                   read_if("backward_extra_head_dim", native.backward_extra_head_dim, kWidth);
                   read_if("forward_least_head_dim", native.forward_least_head_dim, kWidth);
                   read_if("backward_least_head_dim", native.backward_least_head_dim, kWidth);
                   read_if("widest_value_dim", native.widest_value_dim, kWidth);
                   read_if("early_forward_extra_keys", native.early_forward_extra_keys, kKeys);
                   read_if("early_backward_extra_keys", native.early_backward_extra_keys, kKeys);
                 });
  }

  io::ObjectReader& reader_;
  const GpuType* base_;
};

}  // namespace

void read_gpu_records(io::ObjectReader& reader, GpuTable& table) {
  for (auto& [key, record] : reader.object_members("gpus")) {
    const GpuType* base = nullptr;
    if (record.has("like")) base = find_gpu(record, "like", record.string("like"), table);
    if (!record.valid() || (record.has("like") && base == nullptr)) {
      table.insert_or_assign(key, GpuType{});  // reported here; its users need no second report
      continue;
    }
    GpuType type = RecordReader(record, base).read(key);
    record.finish();
    table.insert_or_assign(key, std::move(type));
  }
}

const GpuType* find_gpu(io::ObjectReader& reader, std::string_view at, const std::string& key, const GpuTable& table) {
  const auto found = table.find(key);
  if (found != table.end()) return found->second.name.empty() ? nullptr : &found->second;
  if (!key.empty())
    reader.error_at(at, "unknown-gpu", fmt::format("unknown GPU type \"{}\"", key), hint_for(key, table));
  return nullptr;
}

namespace {

nlohmann::ordered_json fused_kernels_json(const FusedKernels& fused) {
  nlohmann::ordered_json record;
  record["gemm_efficiency"] = fused.gemm_efficiency;
  record["fp8_efficiency"] = fused.fp8_efficiency;
  if (fused.fp4_efficiency > 0) record["fp4_efficiency"] = fused.fp4_efficiency;
  record["memory_efficiency"] = fused.memory_efficiency;
  if (!fused.source.empty()) record["source"] = fused.source.view();
  return record;
}

nlohmann::ordered_json native_attention_json(const NativeAttention& native) {
  nlohmann::ordered_json record;
  record["forward"] = native.forward;
  record["backward"] = native.backward;
  record["forward_extra_keys"] = native.forward_extra_keys;
  record["backward_extra_keys"] = native.backward_extra_keys;
  const auto write_if = [&](const char* name, double figure) {
    if (figure > 0) record[name] = figure;
  };
  write_if("head_dim_multiple", native.head_dim_multiple);
  write_if("forward_extra_head_dim", native.forward_extra_head_dim);
  write_if("backward_extra_head_dim", native.backward_extra_head_dim);
  write_if("forward_least_head_dim", native.forward_least_head_dim);
  write_if("backward_least_head_dim", native.backward_least_head_dim);
  write_if("widest_value_dim", native.widest_value_dim);
  write_if("early_forward_extra_keys", native.early_forward_extra_keys);
  write_if("early_backward_extra_keys", native.early_backward_extra_keys);
  if (!native.source.empty()) record["source"] = native.source.view();
  return record;
}

}  // namespace

nlohmann::ordered_json gpu_to_json(const GpuType& type, const std::string& key) {
  nlohmann::ordered_json record;
  if (type.name != key) record["name"] = type.name;
  record["vendor"] = type.vendor;
  record["architecture"] = type.architecture;
  if (type.multiprocessors > 0) record["multiprocessors"] = type.multiprocessors;
  record["memory_gib"] = to_gib(type.memory);
  record["reserved_gib"] = to_gib(type.reserved);
  record["memory_bandwidth_gb_s"] = in_units(type.memory_bandwidth.value(), kGigabyte);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    record["peak_tflops"][std::string(to_string(dtype))] = in_units(type.peak_of(dtype).value(), kTera);
  }
  if (type.peer_link.bandwidth.value() > 0) {
    record["peer_link"] = link_to_json(type.peer_link, "bandwidth_gb_s", kGigabyte);
    if (type.peer_reach > 0) record["peer_link"]["reach"] = type.peer_reach;
    if (type.peer_pair.value() > 0) record["peer_link"]["pair_gb_s"] = in_units(type.peer_pair.value(), kGigabyte);
  }
  record["pcie"] = link_to_json(type.pcie, "bandwidth_gb_s", kGigabyte);
  auto& calibration = record["calibration"];
  calibration["gemm_efficiency"] = type.compute.gemm_efficiency;
  calibration["attention_forward"] = type.compute.attention_forward;
  calibration["attention_backward"] = type.compute.attention_backward;
  if (type.compute.native_attention) {
    calibration["native_attention"] = native_attention_json(*type.compute.native_attention);
  }
  calibration["memory_efficiency"] = type.compute.memory_efficiency;
  if (type.compute.fused_kernels) {
    calibration["fused_kernels"] = fused_kernels_json(*type.compute.fused_kernels);
  }
  calibration["kernel_launch_us"] = to_us(type.compute.kernel_launch);
  calibration["host_issue_us"] = to_us(type.compute.host_issue);
  if (type.compute.unvectorized_values > 0) {
    calibration["unvectorized_gvalues_s"] = in_units(type.compute.unvectorized_values, kGigabyte);
  }
  if (!type.compute.source.empty()) calibration["source"] = type.compute.source.view();
  record["price_per_hour_usd"] = type.price_per_hour.value();
  if (!type.source.empty()) record["source"] = type.source.view();
  return record;
}

}  // namespace tangram::cluster
