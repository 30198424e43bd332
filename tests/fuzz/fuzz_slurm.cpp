// from_slurm on arbitrary bytes, as text and as JSON.
#include <cstddef>
#include <cstdint>
#include <string>

#include "report_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  tangram::fuzz::require_report(tangram::inventory::from_slurm({{{"fuzz", text}}, {}}, tangram::cluster::catalogue()));
  return 0;
}
