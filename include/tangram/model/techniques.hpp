// The names by which model files and command lines allow and forbid techniques.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tangram/model/model.hpp"

namespace tangram::model {

/// A word and the techniques it stands for; "zero" and "recompute" stand for several.
struct TechniqueName {
  std::string_view name;
  bool Techniques::* flags[3] = {};  ///< the first null ends the list
};

/// In the order in which they are listed to people; single techniques first.
[[nodiscard]] std::span<const TechniqueName> technique_names();

/// Switches what `name` stands for; hyphens count as underscores, "pp" is pipeline and "mixed" mixed_stages. False when
/// the name is unknown.
[[nodiscard]] bool set_technique(Techniques& techniques, std::string_view name, bool allowed);

[[nodiscard]] Techniques no_techniques();

/// "did you mean ...?" or the list of all names.
[[nodiscard]] std::string technique_hint(std::string_view name);

}  // namespace tangram::model
