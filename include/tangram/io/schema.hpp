// What kind of file is this? Goes in: the reader of a file's object and the schema that is wanted. Comes out: whether
// to read on, and in the reader's sink what is wrong with the schema.
#pragma once

#include <string_view>

#include "tangram/io/reader.hpp"

namespace tangram::io {

/// `wanted`: "tangram.cluster/1". False where the file is one of another kind, which is then its only mistake: nothing
/// that the wanted kind needs would be found in it. A schema that is missing, misspelt or of another version is
/// reported too, but the rest is worth reading.
[[nodiscard]] bool has_schema(ObjectReader& reader, std::string_view wanted);

}  // namespace tangram::io
