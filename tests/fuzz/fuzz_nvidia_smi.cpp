// from_nvidia_smi on arbitrary bytes: a query, and a matrix of a host whose query is sound.
#include <cstddef>
#include <cstdint>
#include <string>

#include "report_checks.hpp"

namespace {

/// Four GPUs, as the matrices of the seeds have.
std::string sound_query() {
  std::string query = "<nvidia_smi_log>";
  for (int i = 0; i < 4; ++i) query += "<gpu><product_name>NVIDIA RTX A6000</product_name></gpu>";
  return query + "</nvidia_smi_log>";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tangram::inventory::from_nvidia_smi;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto& devices = tangram::cluster::catalogue();
  tangram::fuzz::require_report(from_nvidia_smi({{{"h.xml", text}}, {}}, devices));
  tangram::fuzz::require_report(from_nvidia_smi({{{"h.xml", sound_query()}, {"h.txt", text}}, {}}, devices));
  return 0;
}
