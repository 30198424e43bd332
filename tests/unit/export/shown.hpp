// Exports as the goldens in tests/data/export have them.
#pragma once

#include <string>

#include "support/golden.hpp"
#include "tangram/base/diagnostic.hpp"
#include "tangram/export/export.hpp"

namespace tangram::exporting::example {

/// Every file under its name; the plan itself is left to the tests of the plan module.
inline std::string shown(const Expected<Export>& made) {
  if (!made) return render(made.error());
  std::string text;
  for (const File& file : made->files) {
    text += "=== " + file.path + (file.executable ? " (executable)\n" : "\n");
    text += file.path == "plan.json" ? "...\n" : file.text;
  }
  for (const std::string& note : made->notes) text += "note: " + note + "\n";
  return text;
}

/// What the golden of this name says, to compare `now` with.
inline std::string golden(const std::string& name, const std::string& now) {
  return test::golden(std::string(TANGRAM_SOURCE_DIR) + "/tests/data/export/" + name + ".expected", now);
}

}  // namespace tangram::exporting::example
