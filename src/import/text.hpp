// Places in texts and documents.
#pragma once

#include <string_view>

#include "tangram/import/job.hpp"
#include "tangram/io/document.hpp"

namespace tangram::importing {

/// Bytes [first, first + length) of a file; the underline ends with the line.
[[nodiscard]] Place place_in(const SourceFile& file, std::size_t first, std::size_t length);

[[nodiscard]] Place place_of(const io::Document& document, const io::Node& node);

/// The file as a whole.
[[nodiscard]] Place place_of(const SourceFile& file);

}  // namespace tangram::importing
