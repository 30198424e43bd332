// What every launcher needs: who runs where, and a script per node. Goes in: a plan and the order of its ranks. Comes
// out: files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/export/export.hpp"
#include "tangram/plan/launch_order.hpp"

namespace tangram::exporting {

inline constexpr int kMasterPort = 29500;  // torchrun's default

/// "host slots=N" per node in the order of ranks, with " type=NAME" where `types` knows the host.
[[nodiscard]] std::string hostfile(const plan::LaunchOrder& order,
                                   const std::map<std::string, std::string>& types = {});

/// CSV: what every rank is.
[[nodiscard]] std::string rank_map(const plan::LaunchPlan& plan, const plan::LaunchOrder& order);

/// What a program that reads the plan itself finds beside it: the plan, the rank map and the hostfile.
[[nodiscard]] std::vector<File> plan_files(const plan::LaunchPlan& plan, const plan::LaunchOrder& order);

enum class Launcher : std::uint8_t {
  kTorchrunWhereItCan,  ///< torchrun where ranks are numbered host by host, else kProcesses
  kProcesses,           ///< start.sh begins each process
};

/// How start.sh begins a process.
struct Program {
  std::string usage;      ///< arguments of the scripts: "PROGRAM.py [ARGUMENT...]"
  std::string prelude;    ///< lines before the start, each ended
  std::string arguments;  ///< shell words: "\"$@\""
  Launcher launcher = Launcher::kTorchrunWhereItCan;
};

/// A script that takes the words of the array `array`, which arguments.sh beside it sets. `script`: a shell word.
[[nodiscard]] Program with_arguments(const std::string& array, const std::string& script);

/// nodes/HOST.sh for every host, and start.sh which they call: torchrun with static rendezvous where ranks are
/// numbered host by host, otherwise one process per rank with RANK, LOCAL_RANK and WORLD_SIZE. `environment`: of all
/// nodes.
[[nodiscard]] std::vector<File> start_scripts(const plan::LaunchPlan& plan, const plan::LaunchOrder& order,
                                              const std::map<std::string, std::string>& environment,
                                              const Program& program);

/// A word that a shell takes as it is, quoted where needed.
[[nodiscard]] std::string shell_word(const std::string& word);

/// The vendor's variable that says which GPUs a process sees.
[[nodiscard]] std::string visible_devices_variable(std::string_view vendor);

/// "0,1,2,3".
[[nodiscard]] std::string joined(const std::vector<int>& numbers, const char* separator = ",");

/// GPU type of the first rank on a host.
[[nodiscard]] const cluster::GpuType& device_of(const plan::LaunchPlan& plan, const plan::LaunchOrder& order,
                                                const plan::HostRanks& host);

}  // namespace tangram::exporting
