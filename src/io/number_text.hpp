// Decimal numbers as both formats write them.
#pragma once

#include <optional>
#include <string_view>

#include "tangram/io/document.hpp"

namespace tangram::io {

/// Length of the JSON number (RFC 8259, section 6) at the start of `text`, 0 if there is none.
[[nodiscard]] std::size_t json_number_length(std::string_view text);

/// True for the decimal integers and floats of the YAML 1.2 core schema, except those with leading zeros.
[[nodiscard]] bool is_yaml_number(std::string_view text);

/// A kInteger or kNumber node (without a place) of a text of one of the two forms above; nullopt when the value is
/// beyond the range of a double.
[[nodiscard]] std::optional<Node> number_node(std::string_view text);

}  // namespace tangram::io
