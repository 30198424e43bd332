#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.hpp"
#include "table.hpp"
#include "tangram/cluster/fleet.hpp"

namespace tangram::app {

namespace {

struct GpusArguments {};

Parameters parameters_of(GpusArguments&) { return {}; }

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

std::string gigabytes(BytesPerSecond rate) {
  return rate.value() > 0 ? fmt::format("{:.0f}", rate.value() / 1e9) : std::string("-");
}

/// Dense bf16, or fp16 where there is no bf16.
std::string narrow_peak(const cluster::GpuType& type) {
  const double bf16 = type.peak_of(DType::kBf16).value();
  const double peak = bf16 > 0 ? bf16 : type.peak_of(DType::kFp16).value();
  return peak > 0 ? fmt::format("{:.0f}{}", peak / 1e12, bf16 > 0 ? "" : " (fp16)") : "-";
}

std::string gpus_for_people(const std::vector<cluster::GpuType>& types, const Terminal& terminal) {
  Table table({{"type"},
               {"architecture"},
               {"GiB", true},
               {"bf16 TFLOP/s", true},
               {"memory GB/s", true},
               {"fabric GB/s", true},
               {"PCIe GB/s", true},
               {"$/hour", true}});
  for (const cluster::GpuType& type : types) {
    const double price = type.price_per_hour.value();
    table.add({{type.name, Style::kBold},
               {type.architecture},
               {fmt::format("{:.0f}", type.memory.as_double() / kGibibyte)},
               {narrow_peak(type)},
               {gigabytes(type.memory_bandwidth)},
               {gigabytes(type.peer_link.bandwidth)},
               {gigabytes(type.pcie.bandwidth)},
               {price > 0 ? fmt::format("{:.2f}", price) : "-"}});
  }
  return table.render(terminal) +
         "Links count one direction of one GPU; --json says where the figures come from.\n"
         "cluster.json may describe other types under \"gpus\".\n";
}

nlohmann::ordered_json gpu_json(const cluster::GpuType& type) {
  nlohmann::ordered_json json;
  json["name"] = type.name;
  json["vendor"] = type.vendor;
  json["architecture"] = type.architecture;
  json["memory_gib"] = type.memory.as_double() / kGibibyte;
  json["memory_bandwidth_gb_s"] = type.memory_bandwidth.value() / 1e9;
  json["peak_tflops"] = nlohmann::ordered_json::object();
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const double peak = type.peak_of(dtype).value();
    if (peak > 0) json["peak_tflops"][std::string(to_string(dtype))] = peak / 1e12;
  }
  if (type.peer_link.bandwidth.value() > 0) json["peer_link_gb_s"] = type.peer_link.bandwidth.value() / 1e9;
  json["pcie_gb_s"] = type.pcie.bandwidth.value() / 1e9;
  if (type.price_per_hour.value() > 0) json["price_per_hour_usd"] = type.price_per_hour.value();
  json["source"] = type.source.view();
  return json;
}

ExitCode run_gpus(const GpusArguments&, const Context& context) {
  const std::vector<cluster::GpuType>& types = cluster::catalogue();
  nlohmann::ordered_json document;
  document["schema"] = "tangram.gpu_list/1";
  document["status"] = "ok";
  document["gpus"] = nlohmann::ordered_json::array();
  for (const cluster::GpuType& type : types) document["gpus"].push_back(gpu_json(type));
  return print_result(context, gpus_for_people(types, context.terminal), document);
}

}  // namespace

Command gpus_command() {
  return {.name = "gpus",
          .summary = "list the GPU types in the catalogue",
          .examples = R"(  tangram gpus
  tangram gpus --json | jq -r '.gpus[] | select(.memory_gib >= 80) | .name'
)",
          .details = R"(These names are used in cluster.json, in --add gpu=NAME and in --gpu of cluster
and profile. Describe any other GPU in cluster.json itself, under "gpus".

Manual: tangram help fleet
)",
          .bind = bound<GpusArguments>(parameters_of, run_gpus)};
}

}  // namespace tangram::app
