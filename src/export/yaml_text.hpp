// YAML as people write it. Goes in: a JSON value. Comes out: block style, lists of scalars on one line, texts quoted
// only where they would be read as something else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tangram::exporting {

[[nodiscard]] std::string yaml_text(const nlohmann::ordered_json& value);

}  // namespace tangram::exporting
