#include "page_text.hpp"

#include <fmt/format.h>

#include "table.hpp"

namespace tangram::app {

std::string clipped(const std::string& text, std::size_t most) {
  if (display_width(text) <= most) return text;
  std::size_t bytes = 0;
  for (std::size_t characters = 0; bytes < text.size(); ++bytes) {
    const bool begins = (static_cast<unsigned char>(text[bytes]) & 0xC0U) != 0x80U;
    if (begins && ++characters == most) break;
  }
  return text.substr(0, bytes) + "…";
}

std::string message_bytes(Bytes bytes) {
  constexpr double kKiB = 1024;
  return bytes < Bytes(1 << 20) ? fmt::format("{:.3g} KiB", bytes.as_double() / kKiB) : people_bytes(bytes);
}

}  // namespace tangram::app
