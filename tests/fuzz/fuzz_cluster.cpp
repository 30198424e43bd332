// read_fleet on arbitrary bytes: errors that can be shown, or a fleet that survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tangram/cluster/fleet.hpp"
#include "tree_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kWrittenNodes = 64;  // the canonical form of a large fleet is long
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto fleet = tangram::cluster::read_fleet(text, "fuzz.json");
  if (!fleet) {
    tangram::fuzz::require_errors(fleet.error());
  } else if (fleet->nodes.size() <= kWrittenNodes) {
    const auto again = tangram::cluster::read_fleet(tangram::cluster::write_fleet(*fleet), "again.json");
    tangram::fuzz::require(again.has_value());
    tangram::fuzz::require(*again == *fleet);
  }
  return 0;
}
