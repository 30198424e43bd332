// The canonical tangram.model/1 document of a model, as write_model prints it and digests are taken of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tangram/model/model.hpp"

namespace tangram::model {

[[nodiscard]] nlohmann::ordered_json canonical(const Model& model);

}  // namespace tangram::model
