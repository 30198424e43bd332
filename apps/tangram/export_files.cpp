#include "export_files.hpp"

#include <fmt/format.h>

#include "table.hpp"

namespace tangram::app {

Expected<void> write_files(const exporting::Export& made, io::OutputFolder& folder) {
  for (const exporting::File& file : made.files) {
    if (auto added = folder.add(file.path, file.text, file.executable); !added) return added;
  }
  return folder.commit();
}

std::string files_for_people(const std::string& folder, const exporting::Export& made) {
  std::string out = fmt::format("{}: {}\n", folder, counted(static_cast<std::int64_t>(made.files.size()), "file"));
  for (const std::string& note : made.notes) out += fmt::format("  {}\n", note);
  return out;
}

}  // namespace tangram::app
