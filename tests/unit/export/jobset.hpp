// What of the JobSet schema a manifest uses (kubernetes-sigs/jobset api/jobset/v1alpha2, Kubernetes API batch/v1 and
// core/v1): the fields that an object may have, those it must have, and their kinds.
#pragma once

#include <string>
#include <vector>

#include "tangram/io/document.hpp"

namespace jobset {

/// Every field that the schema does not know, lacks, or has in another kind; by place.
[[nodiscard]] std::vector<std::string> mistakes(const tangram::io::Node& manifest);

/// A member that is there.
[[nodiscard]] tangram::io::Node& member(tangram::io::Node& object, const std::string& key);

}  // namespace jobset
