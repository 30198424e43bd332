// The made-up measurements of tests/data/profiles, and ways to spoil them.
#pragma once

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/profiles/import.hpp"

namespace tangram::profiles::fixtures {

inline const std::string kFolder = std::string(TANGRAM_SOURCE_DIR) + "/tests/data/profiles/";

inline std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Known to the importer under its path below the folder.
inline SourceFile file(const std::string& path) { return {path, content(kFolder + path)}; }

inline model::Model tiny() {
  auto model = model::read_model(content(kFolder + "tiny.yaml"), "tiny.yaml");
  REQUIRE(model);
  return std::move(*model);
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

inline Imported imported(const Request& request) {
  auto result = import_profiles(request, cluster::catalogue());
  if (!result) FAIL(render(result.error()));
  return std::move(*result);
}

inline std::string refusal(const Request& request) {
  const auto result = import_profiles(request, cluster::catalogue());
  REQUIRE_FALSE(result);
  return render(result.error());
}

inline bool noted(const Imported& result, NoteKind kind, const std::string& code) {
  return std::ranges::any_of(result.notes, [&](const Note& n) { return n.kind == kind && n.code == code; });
}

inline const cost::ProfileUnit& unit(const cost::Profile& profile, cost::ProfileKind kind) {
  const auto found = std::ranges::find_if(profile.units, [&](const auto& u) { return u.kind == kind; });
  REQUIRE(found != profile.units.end());
  return *found;
}

inline const cost::ProfileRow& row(const cost::ProfileUnit& unit, int tp, std::int64_t samples) {
  const auto found =
      std::ranges::find_if(unit.rows, [&](const auto& r) { return r.degrees.tp == tp && r.samples == samples; });
  REQUIRE(found != unit.rows.end());
  return *found;
}

inline double ms(Nanoseconds time) { return time.as_double() / 1e6; }

/// What the importer makes is what read_profile accepts, unchanged.
void check_readable(const cost::Profile& profile);

}  // namespace tangram::profiles::fixtures
