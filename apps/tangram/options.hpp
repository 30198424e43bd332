// What the command line said, as plain values; texts of settings are not interpreted yet (settings.hpp does that).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "settings.hpp"
#include "tangram/cluster/edits.hpp"

namespace tangram::app {

struct PlanArguments {
  std::string cluster;
  std::string model;
  std::string output;   ///< empty: the plan is not written
  std::string against;  ///< a plan that runs already; empty: none
  bool detailed_exitcode = false;
};
struct IslandsArguments {
  std::string cluster;
};
/// `cluster from-slurm FILE...`, `from-kubernetes`, `from-nvidia-smi`, `probe`.
struct ClusterArguments {
  std::string action;
  std::vector<std::string> files;
  std::string name;                   ///< empty: after the source
  std::vector<std::string> networks;  ///< as written
  std::vector<std::string> gpus;      ///< NAME=TYPE, as written
  std::vector<std::string> links;     ///< logs of nccl-tests
  std::string output;                 ///< empty: standard output
};
/// `init FOLDER`, `init --list`.
struct InitArguments {
  std::string folder;
  std::vector<std::string> nodes;     ///< NODESxGPUSxTYPE, as written
  std::vector<std::string> networks;  ///< as written
  std::string model;                  ///< a shipped one; empty: not given
  std::string name;                   ///< of the fleet; empty: not given
  bool list = false;
};
struct GpusArguments {};
struct CheckArguments {
  std::string plan;
  std::string cluster;  ///< empty: not given
  std::string model;
};
struct SimulateArguments {
  std::string plan;
  std::string trace;      ///< empty: no trace
  bool blocking = false;  ///< transfers stop both stages
};
struct CompareArguments {
  std::string cluster;
  std::string model;
  std::vector<std::string> planners;  ///< empty: all
  std::string mode = "both";
  std::vector<std::string> plans;  ///< files to compare with, too
  std::string html;                ///< empty: not written
  std::string inputs;              ///< folder for what other programs read; empty: not written
  bool no_ablation = false;
};
struct ExplainArguments {
  std::string plan;
  std::string cluster;
};
struct DiffArguments {
  std::string before;
  std::string after;
  std::string cluster;  ///< empty: not given
  bool exit_code = false;
};
struct ExportArguments {
  std::string plan;
  std::string to;       ///< the format
  std::string output;   ///< the folder
  std::string program;  ///< of slurm and kubernetes; empty: generic
  std::string image;    ///< of kubernetes; empty: not given
};
struct ImportArguments {
  std::vector<std::string> files;  ///< or folders of files
  std::string from;                ///< the format
  std::string cluster;
  std::string model;
  std::string output;     ///< empty: the plan is not written
  std::int64_t rank = 1;  ///< of the plan in a file that lists several
};
struct VerifyArguments {
  std::string plan;
  std::string fault;  ///< empty: none is injected
};
/// `profile import FILE...` and `profile show FILE`.
struct ProfileArguments {
  std::string action;
  std::vector<std::string> files;
  std::string from;    ///< import: the tool
  std::string gpu;     ///< empty: as the files say
  std::string model;   ///< empty: not given
  std::string date;    ///< empty: not known
  std::string output;  ///< empty: not written
};
struct AccuracyArguments {
  std::string dataset;
  std::string gpus;                  ///< a catalogue that comes before the program's own; empty: none
  bool summary = false;              ///< the groups alone
  std::vector<std::string> without;  ///< what the prediction goes without: "hierarchical", "overlap"
};
/// `parallelizers list` and `parallelizers test NAME`.
struct ParallelizersArguments {
  std::string action;
  std::string name;  ///< empty: not given
};
/// `cache show`, `cache path`, `cache clear [NAME]`, `cache verify [NAME]`.
struct CacheArguments {
  std::string action;
  std::string name;           ///< empty: not given
  std::string sample = "20";  ///< verify: answers of each plugin, or "all"
};
/// `worker HOST:PORT...`, which srun and mpirun start.
struct WorkerArguments {
  std::vector<std::string> addresses;
};
struct SchemaArguments {
  std::string name;
};
/// `help TOPIC`, of a page of the manual.
struct HelpArguments {
  std::string topic;
};
struct VersionArguments {};

using Arguments =
    std::variant<PlanArguments, IslandsArguments, ClusterArguments, CheckArguments, SimulateArguments, ExplainArguments,
                 DiffArguments, CompareArguments, VerifyArguments, ExportArguments, ImportArguments, ProfileArguments,
                 AccuracyArguments, ParallelizersArguments, CacheArguments, WorkerArguments, SchemaArguments,
                 InitArguments, GpusArguments, HelpArguments, VersionArguments>;

struct Invocation {
  Command command = Command::kVersion;
  Arguments arguments = VersionArguments{};
  std::map<std::string, std::string, std::less<>> flags;  ///< settings given as flags
  bool json = false;
  bool quiet = false;
  int verbosity = 0;
  bool show_origin = false;
  cluster::Edits edits;  ///< --drop, --add, --set, as written
};

}  // namespace tangram::app
