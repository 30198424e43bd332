// read_any_model on arbitrary bytes: errors that can be shown, or a model that survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tangram/model/model.hpp"
#include "tree_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.find("from") != std::string::npos) return 0;  // would open files of the fuzzer's choice
  const auto model = tangram::model::read_any_model(text, "fuzz.yaml");
  if (!model) {
    tangram::fuzz::require_errors(model.error());
    return 0;
  }
  const std::string written = tangram::model::write_model(*model);
  const auto again = tangram::model::read_any_model(written, "again.json");
  tangram::fuzz::require(again.has_value());
  tangram::fuzz::require(tangram::model::write_model(*again) == written);
  return 0;
}
