// Canonical JSON: fixed order as the caller emits it, two-space indent, arrays and objects of scalars on one line when
// they fit in 110 columns, LF, newline at the end. Numbers: integers exactly, doubles in the shortest form that reads
// back to the same bits. NaN and infinities are a bug of the caller.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tangram::io {

[[nodiscard]] std::string write_canonical(const nlohmann::ordered_json& value);

/// One line, no spaces: the form digests are taken of.
[[nodiscard]] std::string write_compact(const nlohmann::ordered_json& value);

}  // namespace tangram::io
