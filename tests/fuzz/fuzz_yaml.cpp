// parse_yaml on arbitrary bytes: a tree with true places, or errors that can be shown.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tree_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto document = tangram::io::parse_yaml(text, "fuzz.yaml");
  if (document) {
    tangram::fuzz::require_places(document->root, document->text);
  } else {
    tangram::fuzz::require_errors(document.error());
  }
  return 0;
}
