// Profiles that other tools measured. Goes in: their files, and where these do not say it the GPU and the model. Comes
// out: one profile for each GPU type, and a note for everything that was detected, corrected or left out. Nothing a
// file claims about units, formats or completeness is believed where its numbers say otherwise: see detect.hpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/model/model.hpp"

namespace tangram::profiles {

enum class Tool : std::uint8_t { kSailor, kMetis, kGalvatron, kAmp, kNcclTests };
[[nodiscard]] std::string_view to_string(Tool tool);  ///< "sailor", ..., "nccl-tests"
[[nodiscard]] std::optional<Tool> parse_tool(std::string_view name);
[[nodiscard]] std::vector<std::string> tool_names();

/// The path is looked at too: some tools keep GPU, model and degrees in file and folder names.
struct SourceFile {
  std::string path;
  std::string text;
};

struct Request {
  Tool tool = Tool::kSailor;
  std::vector<SourceFile> files;
  std::string gpu;                    ///< catalogue name; empty: as the files say
  std::optional<model::Model> model;  ///< block dimensions, sequence length, precision
  std::string date;                   ///< YYYY-MM-DD of the measurement, or empty
};

enum class NoteKind : std::uint8_t { kDetected, kCorrected, kLeftOut };
[[nodiscard]] std::string_view to_string(NoteKind kind);

struct Note {
  NoteKind kind = NoteKind::kDetected;
  std::string code;  ///< stable: "time-unit", "missing-weight-gradient", ...
  std::string file;  ///< or what it is about
  std::string message;
  bool operator==(const Note&) const = default;
};

struct Imported {
  std::vector<cost::Profile> profiles;  ///< one a GPU type, sorted by its name; read_profile accepts each
  std::vector<Note> notes;
};

/// Fails on files that are not of the tool, on GPUs that are not known, and where nothing can be imported.
[[nodiscard]] Expected<Imported> import_profiles(const Request& request, std::span<const cluster::GpuType> devices);

}  // namespace tangram::profiles
