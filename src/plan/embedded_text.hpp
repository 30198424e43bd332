// The text of one value inside a document, for readers of formats that a plan embeds. Goes in: a document and a node.
// Comes out: the value's text at its own line and column, everything before it blank, so that errors point right.
#pragma once

#include <string>

#include "tangram/io/document.hpp"

namespace tangram::plan {

/// `node` is an object or an array of a JSON document that parsed without errors.
[[nodiscard]] std::string embedded_text(const io::Document& document, const io::Node& node);

}  // namespace tangram::plan
