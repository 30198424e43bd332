// Files of an export as a folder.
#pragma once

#include "tangram/base/expected.hpp"
#include "tangram/export/export.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/folder.hpp"

namespace tangram::app {

/// All of them, or none.
[[nodiscard]] Expected<void> write_files(const exporting::Export& made, io::OutputFolder& folder);

/// "FOLDER: 3 files", and the notes.
[[nodiscard]] std::string files_for_people(const std::string& folder, const exporting::Export& made);

}  // namespace tangram::app
