// Files that start a plan. Goes in: a launch plan that passes its check, and a format.
// Comes out: the files of one folder; or every reason why the plan cannot be said in that format. Nothing is
// approximated: what a runtime cannot do is refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::exporting {

enum class Format : std::uint8_t {
  kGeneric,    ///< rank map, hostfile, a start script per node
  kMegatron,   ///< Megatron-LM pretrain_gpt.py: arguments and start scripts
  kFlagscale,  ///< FlagScale heterogeneous training: two YAML files and a hostfile
};

struct FormatName {
  std::string_view name;
  Format format;
};
[[nodiscard]] std::span<const FormatName> format_names();
[[nodiscard]] std::string_view to_string(Format format);

struct File {
  std::string path;  ///< inside the folder, with "/"
  std::string text;
  bool executable = false;
};

struct Export {
  std::vector<File> files;         ///< by path
  std::vector<std::string> notes;  ///< what a user has to know or to do before starting
};

/// Errors are of kind kInfeasible, one per broken rule: code and reason as in the plan's `targets`, with the stages and
/// what to do about it.
[[nodiscard]] Expected<Export> export_plan(const plan::LaunchPlan& plan, Format format);

}  // namespace tangram::exporting
