// Files that start a plan, or that other planners read. Goes in: a launch plan that passes its check, and a format.
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
  kGeneric,     ///< rank map, hostfile, a start script per node
  kTorch,       ///< the same around the runtime of this project, which needs PyTorch alone
  kMegatron,    ///< Megatron-LM pretrain_gpt.py: arguments and start scripts
  kMimo,        ///< Megatron-Bridge MIMO: a layout for each module, and start scripts
  kFlagscale,   ///< FlagScale heterogeneous training: two YAML files and a hostfile
  kSlurm,       ///< sbatch heterogeneous job around kGeneric, kTorch or kMegatron, one component per island
  kKubernetes,  ///< JobSet around kGeneric, kTorch or kMegatron, one replicated job per island
  kSailor,      ///< plan of Sailor's simulator
  kFlashflex,   ///< plan of FlashFlex
  kGalvatron,   ///< strategy of Galvatron
};

struct FormatName {
  std::string_view name;
  Format format;
};
[[nodiscard]] std::span<const FormatName> format_names();
[[nodiscard]] std::string_view to_string(Format format);

struct Options {
  Format program = Format::kGeneric;  ///< what kSlurm and kKubernetes start: kGeneric, kTorch or kMegatron
  std::string image;                  ///< container of kKubernetes; empty: a name that has to be replaced
};

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
[[nodiscard]] Expected<Export> export_plan(const plan::LaunchPlan& plan, Format format, const Options& options = {});

/// Why the runtime of kTorch cannot run the plan, one reason a rule; empty: it can.
[[nodiscard]] std::vector<plan::TargetReason> torch_refusals(const plan::LaunchPlan& plan);

}  // namespace tangram::exporting
