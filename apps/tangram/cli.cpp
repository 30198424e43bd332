#include "cli.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "exit_codes.hpp"
#include "manual.hpp"
#include "manual_pages.hpp"
#include "table.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/execute/verify.hpp"
#include "tangram/model/techniques.hpp"

namespace tangram::app {

namespace {

Diagnostic usage_error(std::string code, std::string message, std::string hint) {
  return problem(ErrorKind::kUsage, std::move(code), std::move(message), std::move(hint));
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known, std::string_view otherwise) {
  const auto near = closest(word, known);
  return near ? fmt::format("did you mean \"{}\"?", *near) : std::string(otherwise);
}

struct Positional {
  const char* name;  // as help shows it
  const char* help;
  std::string* target;
  bool required;
  std::vector<std::string>* list = nullptr;  // instead of target: one or more
};

struct CommandText {
  Command command;
  const char* name;
  const char* usage;     // arguments
  const char* summary;   // one line, for the list of commands
  const char* examples;  // help begins with them
  const char* details;
};

constexpr std::size_t kHelpWidth = 80;
constexpr std::size_t kOptionColumn = 33;

constexpr CommandText kCommands[] = {
    {Command::kInit, "init", "FOLDER", "write a cluster.json and a model.yaml to start from",
     "  tangram init job\n"
     "  tangram init job --nodes 4x8xH100-80GB-SXM --nodes 8x8xA100-80GB-SXM \\\n"
     "    --network 8x200Gbit,infiniband --model llama-3-70b\n"
     "  tangram init --list\n",
     "Writes FOLDER, which must be empty or not exist yet: a short description of the\n"
     "fleet, and a shipped model with its job, both with comments and ready to edit.\n"
     "On a terminal, asks for what is not given. --nodes is NODESxGPUSxTYPE. --network\n"
     "gives the number, rate and kind of network cards, for all nodes or for those of\n"
     "one GPU type (H100-80GB-SXM=8x400Gbit,infiniband).\n"
     "\n"
     "--list shows the shipped models and clusters. plan and other commands take their\n"
     "names instead of files. tangram cluster writes cluster.json from what a fleet\n"
     "reports.\n"
     "\n"
     "Manual: tangram help first-steps\n"},
    {Command::kPlan, "plan", "CLUSTER MODEL", "plan a training job on a mixed fleet",
     "  tangram plan fleet.json model.yaml\n"
     "  tangram plan fleet.json hf/config.json --global-batch 512 -o plan.json\n"
     "  tangram plan fleet.json model.yaml --forbid ep,zero3 --json | jq .predicted\n"
     "  tangram plan fleet.json model.yaml --add gpu=H100,nodes=2 --drop rack=r3\n"
     "  tangram plan fleet.json model.yaml --against plan.json -o next.json\n",
     "Decides which GPUs form which pipeline stage, how many layers each stage holds\n"
     "and how each stage is parallelized. Every plan is checked and simulated before\n"
     "it is shown. CLUSTER is a cluster.json or the name of a shipped cluster, MODEL\n"
     "a model.yaml, a Hugging Face config.json or the name of a shipped model\n"
     "(tangram init --list). One of the two files may be - (standard input). --json\n"
     "prints the launch plan itself, the same bytes that -o writes.\n"
     "\n"
     "--drop, --add and --set change the fleet for this run, in this order. They name\n"
     "nodes by host name, label or GPU type, and links by the values of a label that\n"
     "they join. --set changes the network, compute, memory and price of nodes and of\n"
     "GPU types.\n"
     "\n"
     "--against PLAN prices a running plan on the fleet as it is now; GPUs are\n"
     "matched by host name and number. The plan is kept, and -o writes it unchanged,\n"
     "while it fits and no other plan gains --min-gain. Otherwise, among the plans\n"
     "within --min-gain of the best, the one that reassigns the fewest GPUs is taken.\n"
     "The output gives the reason; --json prints the decision. A PLAN that check\n"
     "refuses is an error (exit 4).\n"
     "\n"
     "Searches are cached (tangram cache), so planning for a fleet that differs only\n"
     "in names is a lookup. --ahead goes on, once the plan is written, to fleets with\n"
     "any one node fewer and with one node more like any, so that the next such\n"
     "change is a lookup, too. With --against it prepares the next run with\n"
     "--against. Searches for unequal pipelines are not cached.\n"
     "\n"
     "Manual: tangram help plans, tangram help replanning\n"},
    {Command::kIslands, "islands", "CLUSTER", "show which GPUs are alike, and why",
     "  tangram islands fleet.json\n"
     "  tangram islands fleet.json --island-tolerance 5%\n"
     "  tangram islands fleet.json --set 'node(a-07).compute=70%'\n",
     "Groups GPUs that are alike in compute, memory and connectivity, for each level\n"
     "of links.\n"
     "\n"
     "Manual: tangram help islands-and-search\n"},
    {Command::kCluster, "cluster", "from-slurm|from-kubernetes|from-nvidia-smi|probe [FILE...]",
     "write cluster.json from what a fleet reports",
     "  scontrol show nodes --json | tangram cluster from-slurm - \\\n"
     "    --network 8x400Gbit,infiniband -o fleet.json\n"
     "  kubectl get nodes -o json | tangram cluster from-kubernetes - \\\n"
     "    --network 4x200Gbit,roce -o fleet.json\n"
     "  tangram cluster from-nvidia-smi n1.xml n1.txt n2.xml n2.txt \\\n"
     "    --links all_reduce.log -o fleet.json\n"
     "  tangram cluster probe\n",
     "from-slurm reads the output of scontrol show nodes, as text or with --json.\n"
     "from-kubernetes reads nodes with the labels of GPU feature discovery.\n"
     "from-nvidia-smi reads the output of nvidia-smi -q -x (HOST.xml) and of\n"
     "nvidia-smi topo -m (HOST.txt). probe inspects this machine.\n"
     "\n"
     "Drained, cordoned and failed nodes are left out and listed. GPU names are\n"
     "looked up in the catalogue; --gpu maps a name that the catalogue lacks. These\n"
     "reports do not describe the network: --network gives the number, rate and kind\n"
     "of network cards, for all nodes or for those of one GPU type\n"
     "(H100-80GB-SXM=8x400Gbit,infiniband); --links takes nccl-tests measurements\n"
     "instead. Without -o the file goes to standard output; --json prints it together\n"
     "with what was left out.\n"
     "\n"
     "Manual: tangram help fleet\n"},
    {Command::kGpus, "gpus", "", "list the GPU types in the catalogue",
     "  tangram gpus\n"
     "  tangram gpus --json | jq -r '.gpus[] | select(.memory_gib >= 80) | .name'\n",
     "These names are used in cluster.json, in --add gpu=NAME and in --gpu of cluster\n"
     "and profile. Describe any other GPU in cluster.json itself, under \"gpus\".\n"
     "\n"
     "Manual: tangram help fleet\n"},
    {Command::kCheck, "check", "PLAN", "check a written plan",
     "  tangram check plan.json\n"
     "  tangram check plan.json --cluster fleet.json --model model.yaml\n",
     "Recomputes structure, memory, times, rates and runtime verdicts from the file\n"
     "alone and lists what does not hold. Bounds and gaps must be consistent with the\n"
     "times; the search is not repeated. --cluster and --model also compare hosts,\n"
     "links, prices and layers with the inputs. Exit 0: the plan is valid; 3: it has\n"
     "violations; 4: the file is not a launch plan.\n"
     "\n"
     "Manual: tangram help plans\n"},
    {Command::kSimulate, "simulate", "PLAN", "simulate a plan's schedule, event by event",
     "  tangram simulate plan.json\n"
     "  tangram simulate plan.json --trace trace.json   (for https://ui.perfetto.dev)\n",
     "Simulates the 1F1B schedule with its transfers and shows where the time of each\n"
     "stage goes. Plans assume that transfers overlap with computation; --blocking\n"
     "shows the time of a stage that stops for its transfers, as Megatron-LM's stages\n"
     "do without interleaving. A plan that check refuses is simulated as written,\n"
     "with a warning.\n"
     "\n"
     "Manual: tangram help plans\n"},
    {Command::kCompare, "compare", "CLUSTER MODEL", "compare Tangram with other planners",
     "  tangram compare fleet.json model.yaml\n"
     "  tangram compare fleet.json model.yaml --with metis,sailor --mode faithful\n"
     "  tangram compare fleet.json model.yaml --html report.html\n",
     "Plans the job with Tangram and as other planners do, and judges all plans with\n"
     "one simulator and one memory model. The others are reimplemented from their\n"
     "publications: megatron (the best single set of degrees for all GPUs), amp,\n"
     "metis, sailor and flashflex; faithful keeps the defects of the published\n"
     "programs, repaired removes them. Each planner is represented by the first plan\n"
     "in its own ranking that runs; the report says what was wrong with the plans\n"
     "before it. An ablation follows: Tangram without each technique it uses, and\n"
     "without all techniques that the others lack.\n"
     "\n"
     "--plan adds launch plans or the output of the published programs: Metis' ranked\n"
     "list, Sailor's plan JSON, AMP's ranks, FlashFlex' hetero_configs.\n"
     "--write-inputs writes the input files of Metis and Sailor, for runs of your\n"
     "own.\n"
     "\n"
     "Manual: tangram help comparison\n"},
    {Command::kExplain, "explain", "PLAN CLUSTER", "explain why a plan is as it is",
     "  tangram explain plan.json fleet.json\n"
     "  tangram explain plan.json fleet.json --json | jq .limits\n",
     "Prices what is near the plan: a tenth more compute, memory bandwidth and link\n"
     "speed (what limits the plan), one layer moved across each cut, other degrees of\n"
     "each stage, the next best plan. Then plans again with a tenth more memory on\n"
     "each GPU type (which limit binds), with one more node of each class and without\n"
     "one island of each class. CLUSTER is the fleet the plan was made for; --target\n"
     "names its runtime.\n"
     "\n"
     "Manual: tangram help plans\n"},
    {Command::kDiff, "diff", "OLD NEW", "show what changes between two plans",
     "  tangram diff old.json new.json\n"
     "  tangram diff old.json new.json --cluster fleet.json   (with transfer time)\n"
     "  tangram diff old.json new.json --exit-code > /dev/null || echo they differ\n",
     "Compares what two launch plans do, not how they were found: stages, layers,\n"
     "degrees, GPUs, predictions. It also lists what a switch moves: the parameters\n"
     "and optimizer state that GPUs lack, and between which hosts. With --cluster,\n"
     "hosts that are gone send nothing, and the transfer time is shown.\n"
     "\n"
     "Manual: tangram help replanning\n"},
    {Command::kVerify, "verify", "PLAN", "execute a small model as planned, compare with one process",
     "  tangram verify plan.json\n"
     "  tangram verify plan.json --inject missing-all-reduce   (must be detected)\n"
     "  tangram verify plan.json --json | jq .gradient\n",
     "Runs one iteration of a small model in fp64 with the plan's stages, degrees,\n"
     "ZeRO, recompute, transfers and warm-ups, with all ranks in this process. The\n"
     "loss, every gradient and the weights after one SGD step must equal those of one\n"
     "process to 1e-9. It also counts the microbatches in flight and proves that the\n"
     "order of passes cannot deadlock. What repeats in a large plan is run twice; the\n"
     "output lists what was left out. Exit 0: all results are equal; 3: they differ,\n"
     "and the output says where; 4: the file is not a launch plan.\n"
     "\n"
     "Manual: tangram help plans\n"},
    {Command::kExport, "export", "PLAN --to FORMAT -o FOLDER", "write the files with which a runtime starts a plan",
     "  tangram export plan.json --to generic -o start\n"
     "  tangram export plan.json --to megatron -o start\n"
     "  tangram export plan.json --to flagscale -o conf\n"
     "  tangram export plan.json --to slurm --program megatron -o job\n",
     "FORMAT is generic (rank map, hostfile, a start script per node), megatron\n"
     "(arguments of Megatron-LM, with scripts), flagscale (FlagScale's heterogeneous\n"
     "training), slurm (a heterogeneous job) or kubernetes (a JobSet) around generic\n"
     "or megatron. sailor, flashflex and galvatron write those planners' plan files,\n"
     "for comparisons. A plan that a format cannot express is refused with all\n"
     "reasons; plan --target finds one that a runtime can run. The folder is written\n"
     "whole or not at all, and must be empty or not exist. Exit 3: refused.\n"
     "\n"
     "Manual: tangram help runtimes\n"},
    {Command::kImport, "import", "FILE... --from FORMAT --cluster CLUSTER --model MODEL",
     "read a running job as a launch plan",
     "  tangram import pretrain.sh hostfile --from megatron \\\n"
     "    --cluster fleet.json --model model.yaml -o plan.json\n"
     "  tangram import metis.log --from metis --rank 3 \\\n"
     "    --cluster fleet.json --model model.yaml\n"
     "  tangram import start --from megatron \\\n"
     "    --cluster fleet.json --model model.yaml   (a folder that export wrote)\n",
     "Turns a running job into a launch plan that can be checked, simulated, verified\n"
     "and compared. FORMAT is megatron (a script with Megatron-LM's arguments),\n"
     "flagscale (its training YAML), sailor, galvatron or flashflex (their plan JSON),\n"
     "or metis (its printed output). A host file (HOST slots=N) or a rank map\n"
     "(rankmap.csv) assigns ranks to GPUs; a folder stands for its files. Sequence\n"
     "length and batch are the job's, where it gives them. Violations are listed, and\n"
     "a plan with violations is not written. Exit 0: the plan is valid; 3: it has\n"
     "violations; 4: the files cannot be read as a plan.\n"
     "\n"
     "Manual: tangram help runtimes\n"},
    {Command::kProfile, "profile", "import|show FILE...", "import measurements of other tools, show a profile",
     "  tangram profile import --from sailor OPT-350/A100-40/profile.json \\\n"
     "    --model model.yaml -o a100.json\n"
     "  tangram profile import --from metis metis/*.json --gpu A100-80GB-SXM \\\n"
     "    --model model.yaml -o a100.json\n"
     "  tangram profile import --from nccl-tests all_reduce.log -o links.json\n"
     "  tangram profile show a100.json\n",
     "import reads files of sailor, metis, galvatron, amp or nccl-tests and writes\n"
     "one profile, which plan --profile takes. Units are inferred from the numbers;\n"
     "everything detected, corrected or left out is reported. --gpu and --model are\n"
     "needed where the files do not name the GPU and the model. --json prints the\n"
     "profile itself, the same bytes that -o writes. show lists the contents of a\n"
     "profile.\n"
     "\n"
     "Manual: tangram help predictions\n"},
    {Command::kAccuracy, "accuracy", "DATASET", "compare predictions with published measurements",
     "  tangram accuracy configs/measurements/validation.json\n"
     "  tangram accuracy measurements.json --summary\n"
     "  tangram accuracy measurements.json --json | jq '.groups[0]'\n"
     "  tangram accuracy measurements.json --profile a100.json --gpus calibrated.json\n",
     "Builds the plan behind each measurement, predicts its iteration time and memory\n"
     "with the planner's own cost model, and shows the errors: per measurement, and\n"
     "per dataset, GPU type and parallelism. Measurements that cannot be expressed are\n"
     "listed with the reason.\n"
     "\n"
     "Manual: tangram help predictions\n"},
    {Command::kParallelizers, "parallelizers", "list|test [NAME]", "list and test the parallelizers",
     "  tangram parallelizers list\n"
     "  tangram parallelizers test galvatron\n"
     "  tangram parallelizers test ./my_planner.py\n"
     "  tangram plan fleet.json model.yaml --parallelizer enumerator,./my_planner.py\n",
     "A parallelizer answers how to run a part of the model on equal GPUs. list shows\n"
     "the built-in ones and the plugins found (manifests in --parallelizer-path,\n"
     "beside the program and in the user's folder; programs called\n"
     "tangram-parallelizer-NAME on the PATH), whether they start, and if not, what to\n"
     "do. test asks a parallelizer what a plan would ask and reports what is wrong\n"
     "with its answers. A NAME that contains a / is a manifest or a program.\n"
     "\n"
     "Manual: tangram help plugins\n"},
    {Command::kCache, "cache", "show|verify|clear|path [NAME]", "inspect, verify or clear cached searches and answers",
     "  tangram cache show\n"
     "  tangram cache verify --sample 50\n"
     "  tangram cache clear galvatron\n"
     "  tangram plan fleet.json model.yaml --parallelizer galvatron --offline\n",
     "plan and explain cache whole searches in one SQLite file, under a digest of\n"
     "everything they depend on: the program, the model and its job, the islands\n"
     "without host names, options, profiles, plugins. plan also caches the answers of\n"
     "plugins, under the question and a digest of the plugin. Plans are the same with\n"
     "and without the cache.\n"
     "\n"
     "show counts searches, and the answers, hits, misses and bytes of each plugin.\n"
     "verify reads all searches, asks the plugins a sample of the questions again,\n"
     "least recently verified first, and reports damage and changed answers. clear\n"
     "deletes everything, or all that one plugin contributed to. path prints the path\n"
     "of the file. Keep it on a local disk: locks on network file systems cannot be\n"
     "relied on. Exit 5: verify found damage, a difference or a plugin that does not\n"
     "answer.\n"
     "\n"
     "Manual: tangram help plugins\n"},
    {Command::kWorker, "worker", "ADDRESS...", "run plugins for a planner on another machine",
     "  tangram plan fleet.json model.yaml --parallelizer galvatron \\\n"
     "    --workers slurm --worker-cores 64\n"
     "  tangram plan fleet.json model.yaml --parallelizer galvatron \\\n"
     "    --workers mpi --worker-launcher 'mpirun --hostfile hosts' --worker-cores 64\n",
     "plan --workers starts this command through srun or mpirun, once per worker, on\n"
     "the nodes they choose. It connects back over TCP, runs plugins as a local worker\n"
     "would, and ends with the planner. tangram and the plugins must be installed at\n"
     "the same paths on all nodes.\n"
     "\n"
     "Manual: tangram help plugins\n"},
    {Command::kSchema, "schema", "NAME", "print the JSON Schema of a file or of --json output",
     "  tangram schema cluster > cluster.schema.json\n"
     "  tangram schema replan\n",
     "Files: cluster, model, profile, measurements, launch_plan.\n"
     "Output of --json: accuracy, cache, check, choices (plan --pareto), comparison\n"
     "(compare), conformance (parallelizers test), diff, error, explanation (explain),\n"
     "export, gpu_list (gpus), init, inventory (cluster), islands, parallelizers,\n"
     "planner_files (compare --write-inputs), replan (plan --against), simulation\n"
     "(simulate), verification (verify), version. NAME is the one in a document's own\n"
     "\"schema\": \"tangram.NAME/1\".\n"},
    {Command::kHelp, "help", "[TOPIC]", "show a page of the manual, or the help of a command",
     "  tangram help\n"
     "  tangram help fleet\n"
     "  tangram help export\n",
     "Without TOPIC, lists the pages of the manual and the commands.\n"},
    {Command::kCompletion, "completion", "bash|zsh|fish", "print a shell completion script",
     "  source <(tangram completion bash)\n"
     "  tangram completion zsh > \"${fpath[1]}/_tangram\"\n"
     "  tangram completion fish > ~/.config/fish/completions/tangram.fish\n",
     ""},
    {Command::kManual, "manual", "[TOPIC]", "print the manual, or one of its pages, for man",
     "  tangram manual | man -l -\n"
     "  tangram manual fleet | man -l -\n",
     "Without TOPIC, prints the commands and their options (section 1). With TOPIC,\n"
     "prints the page that tangram help TOPIC shows (section 7).\n"},
    {Command::kVersion, "version", "", "print the version", "  tangram version --json\n", ""},
};

constexpr const char* kRootExamples =
    "  tangram plan h100-a100-v100 llama-2-7b     (a shipped fleet and model)\n"
    "  tangram init job                           (files of your own, to edit)\n"
    "  tangram plan fleet.json model.yaml -o plan.json && tangram check plan.json\n"
    "  tangram islands fleet.json\n"
    "  tangram help first-steps\n";

constexpr const char* kRootDetails = "Plans LLM training on mixed GPU fleets. The manual: tangram help.\n";

/// Entries of a list: name, then what it is.
std::string listed(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::size_t widest = 0;
  for (const auto& [name, about] : entries) widest = std::max(widest, name.size());
  std::string out;
  for (const auto& [name, about] : entries) out += fmt::format("  {:<{}}  {}\n", name, widest, about);
  return out;
}

std::string listed_commands() {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const CommandText& text : kCommands) entries.emplace_back(text.name, text.summary);
  return listed(entries);
}

std::string listed_topics() {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const ManualPage& page : manual_pages()) entries.emplace_back(page.topic, page.title());
  return listed(entries);
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandText& text : kCommands) names.emplace_back(text.name);
  return names;
}

/// What `tangram help` takes.
std::vector<std::string> help_words() {
  std::vector<std::string> words = manual_topics();
  std::ranges::copy(command_names(), std::back_inserter(words));
  return words;
}

/// Examples first, then what it does, how it is called, and the options.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    column_width(kOptionColumn);
    label("Positionals", "Arguments");
  }
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
    const bool root = app->get_parent() == nullptr;
    std::string usage = "tangram COMMAND [options]";
    for (const CommandText& text : kCommands) {
      if (!root && app->get_name() == text.name)
        usage = fmt::format("tangram {} [options]{}{}", text.name, *text.usage != 0 ? " " : "", text.usage);
    }
    const std::string_view before = "Usage: ";
    const auto lines = wrapped(usage, kHelpWidth - before.size());
    std::string out = fmt::format("{}\n{}{}\n", app->get_description(), before, fmt::join(lines, "\n       "));
    if (root) out += "\nCommands:\n" + listed_commands();
    out += make_positionals(app) + make_groups(app, mode);
    while (out.ends_with("\n\n")) out.pop_back();
    if (root) out += fmt::format("\n{}", kExitTable);
    return out;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return fmt::format("{}", fmt::join(wrapped(option->get_description(), kHelpWidth - kOptionColumn), "\n"));
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    if (is_positional) return option->get_name(true, false);
    const auto& shorts = option->get_snames();
    return fmt::format("{}--{}", shorts.empty() ? "    " : fmt::format("-{}, ", shorts.front()),
                       option->get_lnames().front());
  }
};

std::string described(const char* examples, const char* details) {
  return fmt::format("Examples:\n{}{}{}", examples, *details != '\0' ? "\n" : "", details);
}

std::vector<std::string> fault_words() {
  std::vector<std::string> names;
  for (const execute::FaultName& fault : execute::fault_names()) names.emplace_back(fault.name);
  return names;
}

std::string fault_help() { return fmt::format("inject a fault: {}", fmt::join(fault_words(), ", ")); }

std::vector<std::string> technique_words() {
  std::vector<std::string> words{"pp", "mixed"};
  for (const model::TechniqueName& name : model::technique_names()) words.emplace_back(name.name);
  return words;
}

/// Values of an option that is no setting.
struct KnownValues {
  Command command;
  std::string_view option;
  std::vector<std::string> words;
  bool list = false;
};

std::vector<KnownValues> known_values() {
  return {{Command::kCompare, "with", {"megatron", "amp", "metis", "sailor", "flashflex"}, true},
          {Command::kCompare, "mode", {"faithful", "repaired", "both"}},
          {Command::kExport,
           "to",
           {"generic", "megatron", "flagscale", "slurm", "kubernetes", "sailor", "flashflex", "galvatron"}},
          {Command::kExport, "program", {"generic", "megatron"}},
          {Command::kImport, "from", {"megatron", "flagscale", "sailor", "galvatron", "flashflex", "metis"}},
          {Command::kProfile, "from", {"sailor", "metis", "galvatron", "amp", "nccl-tests"}},
          {Command::kVerify, "inject", fault_words()},
          {Command::kAccuracy, "without", {"hierarchical", "overlap"}, true}};
}

/// What an option's value may be, as far as that is known.
void add_choices(Command command, OptionManual& option) {
  for (const SettingDefinition& definition : setting_definitions()) {
    if (definition.name != option.name || !applies_to(definition, command)) continue;
    if (definition.kind == SettingKind::kChoice) option.choices = definition.choices;
    if (definition.kind != SettingKind::kTechniques) continue;
    option.choices = technique_words();
    option.list = true;
  }
  for (KnownValues& known : known_values()) {
    if (known.command != command || known.option != option.name) continue;
    option.choices = std::move(known.words);
    option.list = known.list;
  }
}

/// The grammar, and the values CLI11 writes into while parsing.
class Grammar {
 public:
  Grammar() : root_(described(kRootExamples, kRootDetails), "tangram") {
    root_.formatter(std::make_shared<HelpFormatter>());
    root_.set_help_flag("-h,--help", "show this text");
    root_.add_flag("--version", version_, "print the version");
    root_.require_subcommand(0, 1);
    root_.allow_extras();
    for (const CommandText& text : kCommands) add_command(text);
  }

  Expected<std::variant<Invocation, HelpText>> parse(int argc, const char* const* argv) {
    try {
      root_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return HelpText{help_of_parsed()};
    } catch (const CLI::ArgumentMismatch& error) {
      const std::string text = error.what();  // "--top: 1 required K missing"
      return fail(usage_error("missing-value", fmt::format("{} needs a value", text.substr(0, text.find(':'))),
                              hint_to_help()));
    } catch (const CLI::ParseError& error) {
      return fail(usage_error("usage", error.what(), hint_to_help()));
    }
    return interpret();
  }

 private:
  void add_command(const CommandText& text) {
    CLI::App* sub = root_.add_subcommand(text.name, text.summary);
    sub->description(described(text.examples, text.details));
    sub->set_help_flag("-h,--help", "show this text");
    sub->allow_extras();
    for (const Positional& positional : positionals(text.command)) {
      if (positional.list != nullptr) {
        sub->add_option(positional.name, *positional.list, positional.help)->type_name("");
      } else {
        sub->add_option(positional.name, *positional.target, positional.help)->type_name("");
      }
    }
    if (text.command == Command::kInit) {
      sub->add_option("--nodes", init_.nodes, "nodes that are alike, NODESxGPUSxTYPE: 4x8xH100-80GB-SXM")
          ->type_name("NODES")
          ->allow_extra_args(false);
      sub->add_option("--network", init_.networks,
                      "[TYPE=][CARDSx]RATEGbit,KIND: cards of all nodes, or of those of one GPU type")
          ->type_name("NETWORK")
          ->allow_extra_args(false);
      sub->add_option("--model", init_.model, "the shipped model to start from")->type_name("NAME");
      sub->add_option("--name", init_.name, "name of the fleet")->type_name("TEXT");
      sub->add_flag("--list", init_.list, "show the shipped models and clusters, and stop");
    }
    if (text.command == Command::kPlan) {
      sub->add_option("-o,--output", plan_.output,
                      "write the plan to FILE; with --pareto: to a folder, one plan per row")
          ->type_name("FILE");
      sub->add_option("--against", plan_.against, "keep this running plan unless another is worth the change")
          ->type_name("PLAN");
      sub->add_flag("--detailed-exitcode", plan_.detailed_exitcode, "exit 2 if the plan of --against changes");
    }
    if (text.command == Command::kCluster) {
      sub->add_option("--network", cluster_.networks,
                      "[TYPE=][CARDSx]RATEGbit,KIND: network cards of all nodes, or of those with one GPU type")
          ->type_name("NETWORK")
          ->allow_extra_args(false);
      sub->add_option("--links", cluster_.links, "output of nccl-tests")->type_name("LOG")->allow_extra_args(false);
      sub->add_option("--gpu", cluster_.gpus, "NAME=TYPE: reports call the catalogue's TYPE by this NAME")
          ->type_name("NAME")
          ->allow_extra_args(false);
      sub->add_option("--name", cluster_.name, "name of the fleet")->type_name("TEXT");
      sub->add_option("-o,--output", cluster_.output, "write cluster.json to FILE")->type_name("FILE");
    }
    if (text.command == Command::kCheck) {
      sub->add_option("--cluster", check_.cluster, "the fleet the plan was made for")->type_name("CLUSTER");
      sub->add_option("--model", check_.model, "the model the plan was made for")->type_name("MODEL");
    }
    if (text.command == Command::kCompare) {
      sub->add_option("--with", compare_.planners, "planners to compare with: metis,sailor (default: all)")
          ->delimiter(',')
          ->type_name("NAMES");
      sub->add_option("--mode", compare_.mode, "faithful, repaired or both (default: both)")->type_name("MODE");
      sub->add_option("--plan", compare_.plans, "add a launch plan, or the output of Metis, Sailor, AMP or FlashFlex")
          ->allow_extra_args(false)
          ->type_name("FILE");
      sub->add_option("--html", compare_.html, "write an HTML report to FILE")->type_name("FILE");
      sub->add_option("--write-inputs", compare_.inputs,
                      "write the input files of Metis and Sailor to FOLDER, and stop")
          ->type_name("FOLDER");
      sub->add_flag("--no-ablation", compare_.no_ablation, "skip planning without each technique");
    }
    if (text.command == Command::kDiff) {
      sub->add_option("--cluster", diff_.cluster, "the fleet as it is now")->type_name("CLUSTER");
      sub->add_flag("--exit-code", diff_.exit_code, "exit 2 if the plans differ");
    }
    if (text.command == Command::kExport) {
      sub->add_option("--to", export_.to,
                      "generic, megatron, flagscale, slurm, kubernetes, sailor, flashflex, galvatron")
          ->type_name("FORMAT");
      sub->add_option("-o,--output", export_.output, "folder to create")->type_name("FOLDER");
      sub->add_option("--program", export_.program, "what slurm and kubernetes start: generic (default) or megatron")
          ->type_name("FORMAT");
      sub->add_option("--image", export_.image, "container image for kubernetes")->type_name("IMAGE");
    }
    if (text.command == Command::kImport) {
      sub->add_option("--from", import_.from, "megatron, flagscale, sailor, galvatron, flashflex or metis")
          ->type_name("FORMAT");
      sub->add_option("--cluster", import_.cluster, "the fleet the job runs on")->type_name("CLUSTER");
      sub->add_option("--model", import_.model, "the model the job trains")->type_name("MODEL");
      sub->add_option("--rank", import_.rank, "which plan of a ranked list (metis, sailor); 1 is the first")
          ->type_name("N");
      sub->add_option("-o,--output", import_.output, "write the plan to FILE")->type_name("FILE");
    }
    if (text.command == Command::kProfile) {
      sub->add_option("--from", profile_.from, "the tool that measured: sailor, metis, galvatron, amp or nccl-tests")
          ->type_name("TOOL");
      sub->add_option("--gpu", profile_.gpu, "GPU type, by its catalogue name")->type_name("NAME");
      sub->add_option("--model", profile_.model, "the model that was measured")->type_name("MODEL");
      sub->add_option("--date", profile_.date, "date of the measurement: YYYY-MM-DD")->type_name("DATE");
      sub->add_option("-o,--output", profile_.output, "write the profile to FILE")->type_name("FILE");
    }
    if (text.command == Command::kSimulate) {
      sub->add_option("--trace", simulate_.trace, "write a Chrome trace to FILE")->type_name("FILE");
      sub->add_flag("--blocking", simulate_.blocking, "stages stop for their transfers, as in Megatron-LM's 1F1B");
    }
    if (text.command == Command::kVerify) {
      sub->add_option("--inject", verify_.fault, fault_help())->type_name("FAULT");
    }
    if (text.command == Command::kAccuracy) {
      sub->add_flag("--summary", accuracy_.summary, "show groups only, not every measurement");
      sub->add_option("--gpus", accuracy_.gpus, "a catalogue of GPU types that overrides the built-in one")
          ->type_name("FILE");
      sub->add_option("--without", accuracy_.without,
                      "hierarchical: predict without two-level collectives; overlap: without overlapping communication")
          ->delimiter(',')
          ->type_name("METHOD");
    }
    if (text.command == Command::kCache) {
      sub->add_option("--sample", cache_.sample, "verify: number of answers per plugin, or all (default: 20)")
          ->type_name("N");
    }
    if (takes_edits(text.command)) add_edits(*sub);
    add_settings(*sub, text.command);
    sub->add_flag("--json", invocation_.json, "print one JSON document, also for errors");
    sub->add_flag("-q,--quiet", invocation_.quiet, "print only errors on standard error");
    // Not a flag that counts: those of CLI11 2.4 write 0 where a command was not given them, and all write to one
    // place.
    sub->add_flag_callback("-v,--verbose", [this] { invocation_.verbosity = 1; }, "print more on standard error");
    if (takes_edits(text.command)) {  // what settings decide about
      sub->add_flag("--show-origin", invocation_.show_origin, "show the source of each setting, and stop");
    }
  }

  /// Commands for which the fleet may be another than the file's.
  static bool takes_edits(Command command) {
    return command == Command::kPlan || command == Command::kIslands || command == Command::kCompare ||
           command == Command::kExplain;
  }

  void add_edits(CLI::App& sub) {
    const auto edit = [&](const char* name, std::vector<std::string>& target, const char* help) {
      sub.add_option(name, target, help)->type_name("WHAT")->allow_extra_args(false);
    };
    edit("--drop", invocation_.edits.drop, "plan without these nodes: rack=r3, node=a-[01-04], gpu=V100");
    edit("--add", invocation_.edits.add, "plan with more nodes: gpu=H100,nodes=2 or like=a-07,nodes=2");
    edit("--set", invocation_.edits.set,
         "plan with changed values: link(zone:a,zone:b).bandwidth=10Gbit, node(a-07).compute=70%");
  }

  void add_settings(CLI::App& sub, Command command) {
    for (const SettingDefinition& definition : setting_definitions()) {
      if (!applies_to(definition, command)) continue;
      const std::string short_flag = definition.short_flag.empty() ? "" : fmt::format("-{},", definition.short_flag);
      const std::string fallback =
          definition.fallback.empty() ? "" : fmt::format(" (default: {})", definition.fallback);
      const std::string name(definition.name);
      if (definition.kind == SettingKind::kSwitch) {
        sub.add_flag_callback(
            fmt::format("--{}", name), [this, name] { invocation_.flags[name] = "true"; },
            std::string(definition.help));
        continue;
      }
      CLI::Option* option = sub.add_option_function<std::string>(
          fmt::format("{}--{}", short_flag, name),
          [this, name](const std::string& text) { invocation_.flags[name] = text; },
          std::string(definition.help) + fallback);
      option->type_name(std::string(definition.value_name));
      if (definition.kind == SettingKind::kTechniques || definition.kind == SettingKind::kFiles ||
          definition.kind == SettingKind::kNames) {
        option->join(',');
      } else {
        option->take_last();
      }
    }
  }

  std::vector<Positional> positionals(Command command) {
    switch (command) {
      case Command::kInit: return {{"FOLDER", "folder to write", &init_.folder, false}};
      case Command::kPlan:
        return {{"CLUSTER", "cluster.json, or the name of a shipped cluster", &plan_.cluster, true},
                {"MODEL", "model.yaml, config.json, or the name of a shipped model", &plan_.model, true}};
      case Command::kIslands: return {{"CLUSTER", "cluster.json", &islands_.cluster, true}};
      case Command::kCluster:
        return {{"ACTION", "from-slurm, from-kubernetes, from-nvidia-smi or probe", &cluster_.action, true},
                {"FILE", "reports of the fleet; - is standard input", nullptr, false, &cluster_.files}};
      case Command::kCheck: return {{"PLAN", "a launch plan", &check_.plan, true}};
      case Command::kSimulate: return {{"PLAN", "a launch plan", &simulate_.plan, true}};
      case Command::kCompare:
        return {{"CLUSTER", "cluster.json", &compare_.cluster, true},
                {"MODEL", "model.yaml or config.json", &compare_.model, true}};
      case Command::kExplain:
        return {{"PLAN", "a launch plan", &explain_.plan, true}, {"CLUSTER", "cluster.json", &explain_.cluster, true}};
      case Command::kDiff:
        return {{"OLD", "a launch plan", &diff_.before, true}, {"NEW", "a launch plan", &diff_.after, true}};
      case Command::kVerify: return {{"PLAN", "a launch plan", &verify_.plan, true}};
      case Command::kExport: return {{"PLAN", "a launch plan", &export_.plan, true}};
      case Command::kImport: return {{"FILE", "the job's files, or a folder", nullptr, true, &import_.files}};
      case Command::kProfile:
        return {{"ACTION", "import or show", &profile_.action, true},
                {"FILE", "output of the tool, or a profile", nullptr, true, &profile_.files}};
      case Command::kAccuracy: return {{"DATASET", "published measurements", &accuracy_.dataset, true}};
      case Command::kParallelizers:
        return {{"ACTION", "list or test", &parallelizers_.action, true},
                {"NAME", "the parallelizer to test", &parallelizers_.name, false}};
      case Command::kCache:
        return {{"ACTION", "show, verify, clear or path", &cache_.action, true},
                {"NAME", "verify and clear: only this plugin", &cache_.name, false}};
      case Command::kWorker: return {{"ADDRESS", "HOST:PORT of the planner", nullptr, true, &worker_.addresses}};
      case Command::kSchema:
        return {{"NAME", "cluster, model, profile, launch_plan, measurements, or a document of --json", &schema_.name,
                 true}};
      case Command::kHelp: return {{"TOPIC", "a page of the manual, or a command", &help_.topic, false}};
      case Command::kManual: return {{"TOPIC", "a page of the manual", &manual_topic_, false}};
      case Command::kCompletion: return {{"SHELL", "bash, zsh or fish", &shell_, true}};
      case Command::kGpus:
      case Command::kVersion: return {};
    }
    return {};
  }

  Arguments arguments(Command command) const {
    switch (command) {
      case Command::kInit: return init_;
      case Command::kPlan: return plan_;
      case Command::kIslands: return islands_;
      case Command::kCluster: return cluster_;
      case Command::kGpus: return GpusArguments{};
      case Command::kCheck: return check_;
      case Command::kSimulate: return simulate_;
      case Command::kCompare: return compare_;
      case Command::kExplain: return explain_;
      case Command::kDiff: return diff_;
      case Command::kVerify: return verify_;
      case Command::kExport: return export_;
      case Command::kImport: return import_;
      case Command::kProfile: return profile_;
      case Command::kAccuracy: return accuracy_;
      case Command::kParallelizers: return parallelizers_;
      case Command::kCache: return cache_;
      case Command::kWorker: return worker_;
      case Command::kSchema: return schema_;
      case Command::kHelp: return help_;
      case Command::kCompletion:
      case Command::kManual:
      case Command::kVersion: return VersionArguments{};
    }
    return VersionArguments{};
  }

  /// The commands with their options, as the grammar has them.
  std::vector<CommandManual> manual() const {
    std::vector<CommandManual> commands;
    for (const CommandText& text : kCommands) {
      CommandManual command{text.name, text.usage, text.summary, text.examples, text.details, {}, {}};
      if (text.command == Command::kHelp) command.topics = help_words();
      if (text.command == Command::kManual) command.topics = manual_topics();
      for (const CLI::Option* option : root_.get_subcommand(text.name)->get_options()) {
        if (option->get_lnames().empty()) continue;
        const auto& shorts = option->get_snames();
        OptionManual entry{shorts.empty() ? "" : shorts.front(),
                           option->get_lnames().front(),
                           option->get_type_name(),
                           option->get_description(),
                           {},
                           false};
        add_choices(text.command, entry);
        command.options.push_back(std::move(entry));
      }
      commands.push_back(std::move(command));
    }
    return commands;
  }

  Expected<std::variant<Invocation, HelpText>> completion() const {
    if (shell_ == "bash") return HelpText{bash_completion(manual())};
    if (shell_ == "zsh") return HelpText{zsh_completion(manual())};
    if (shell_ == "fish") return HelpText{fish_completion(manual())};
    const std::vector<std::string> known{"bash", "zsh", "fish"};
    return fail(usage_error("unknown-shell", fmt::format("no completion for \"{}\"", shell_),
                            suggestion(shell_, known, "shells: bash, zsh, fish")));
  }

  /// A page of the manual goes through the terminal, which knows its width; the rest is text.
  Expected<std::variant<Invocation, HelpText>> help() {
    if (help_.topic.empty()) {
      return HelpText{fmt::format("Manual, tangram help TOPIC:\n{}\nCommands, tangram help COMMAND:\n{}",
                                  listed_topics(), listed_commands())};
    }
    for (const std::string& name : command_names()) {
      if (name == help_.topic) return HelpText{root_.get_subcommand(name)->help()};
    }
    if (!find_page(help_.topic)) return fail(unknown_topic(help_.topic, help_words()));
    invocation_.arguments = help_;
    return invocation_;
  }

  Expected<std::variant<Invocation, HelpText>> manual_for_man() const {
    if (manual_topic_.empty()) {
      return HelpText{manual_page(manual(), "plans LLM training on mixed GPU fleets", kExitTable)};
    }
    if (const auto page = find_page(manual_topic_)) return HelpText{page_troff(*page)};
    return fail(unknown_topic(manual_topic_, manual_topics()));
  }

  static Diagnostic unknown_topic(const std::string& topic, const std::vector<std::string>& known) {
    return usage_error("unknown-topic", fmt::format("the manual has no page \"{}\"", topic),
                       suggestion(topic, known, "tangram help lists the pages"));
  }

  Expected<std::variant<Invocation, HelpText>> interpret() {
    const auto parsed = root_.get_subcommands();
    if (parsed.empty()) return without_command();
    const CLI::App& sub = *parsed.front();
    if (const auto before = root_.remaining(); !before.empty()) return fail(unknown_before_command(before.front()));
    if (auto extra = complaint_about_extras(sub)) return fail(std::move(*extra));
    for (const CommandText& text : kCommands) {
      if (sub.get_name() == text.name) invocation_.command = text.command;
    }
    if (auto missing = complaint_about_missing(sub)) return fail(std::move(*missing));
    if (auto empty = complaint_about_empty(sub)) return fail(std::move(*empty));
    if (invocation_.command == Command::kCompletion) return completion();
    if (invocation_.command == Command::kManual) return manual_for_man();
    if (invocation_.command == Command::kHelp) return help();
    invocation_.arguments = arguments(invocation_.command);
    return invocation_;
  }

  Expected<std::variant<Invocation, HelpText>> without_command() {
    if (version_) return invocation_;
    const std::vector<std::string> words = root_.remaining();
    if (words.empty()) return fail(usage_error("missing-command", "no command given", hint_to_help()));
    return fail(unknown_before_command(words.front()));
  }

  static Diagnostic unknown_before_command(const std::string& word) {
    if (!word.starts_with('-')) {
      const std::vector<std::string> names = command_names();
      return usage_error("unknown-command", fmt::format("unknown command \"{}\"", word),
                         suggestion(word, names, fmt::format("commands: {}", fmt::join(names, ", "))));
    }
    return usage_error("unknown-option", fmt::format("{} may not precede the command", word),
                       "options follow the command, as in tangram plan --json");
  }

  /// The first word that no option or argument took.
  std::optional<Diagnostic> complaint_about_extras(const CLI::App& sub) const {
    const std::vector<std::string> words = sub.remaining();
    if (words.empty()) return std::nullopt;
    for (const std::string& word : words) {
      if (word.size() < 2 || word.front() != '-') continue;
      std::vector<std::string> known;
      for (const CLI::Option* option : sub.get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      }
      const std::string name = word.substr(0, word.find('='));
      return usage_error("unknown-option", fmt::format("{} has no option {}", sub.get_name(), name),
                         suggestion(name, known, hint_to_help()));
    }
    return usage_error("extra-argument",
                       fmt::format("{} takes no further argument \"{}\"", sub.get_name(), words.front()),
                       hint_to_help());
  }

  /// All arguments that are not there, each with what it is.
  std::optional<Diagnostic> complaint_about_missing(const CLI::App& sub) {
    if (invocation_.show_origin) return std::nullopt;
    std::vector<std::string> missing;
    for (const Positional& positional : positionals(invocation_.command)) {
      const bool given = positional.list != nullptr ? !positional.list->empty() : !positional.target->empty();
      if (!given && positional.required) missing.push_back(fmt::format("{} ({})", positional.name, positional.help));
    }
    if (missing.empty()) return std::nullopt;
    return usage_error("missing-argument", fmt::format("{} needs {}", sub.get_name(), fmt::join(missing, " and ")),
                       hint_to_help());
  }

  /// `-o ''` comes from a script whose variable is not set.
  std::optional<Diagnostic> complaint_about_empty(const CLI::App& sub) const {
    for (const CLI::Option* option : sub.get_options()) {
      if (option->get_lnames().empty() || option->get_type_size() == 0) continue;
      for (const std::string& value : option->results()) {
        if (!value.empty()) continue;
        return usage_error("missing-value", fmt::format("--{} is empty", option->get_lnames().front()),
                           "give it a value, or leave the option out");
      }
    }
    return std::nullopt;
  }

  std::string help_of_parsed() const {
    const auto parsed = root_.get_subcommands();
    return parsed.empty() ? root_.help() : parsed.front()->help();
  }

  std::string hint_to_help() const {
    const auto parsed = root_.get_subcommands();
    return parsed.empty() ? "tangram --help" : fmt::format("tangram {} --help", parsed.front()->get_name());
  }

  CLI::App root_;
  Invocation invocation_;
  InitArguments init_;
  PlanArguments plan_;
  IslandsArguments islands_;
  ClusterArguments cluster_;
  CheckArguments check_;
  SimulateArguments simulate_;
  CompareArguments compare_;
  ExplainArguments explain_;
  DiffArguments diff_;
  VerifyArguments verify_;
  ExportArguments export_;
  ImportArguments import_;
  ProfileArguments profile_;
  AccuracyArguments accuracy_;
  ParallelizersArguments parallelizers_;
  CacheArguments cache_;
  WorkerArguments worker_;
  SchemaArguments schema_;
  HelpArguments help_;
  std::string shell_;
  std::string manual_topic_;
  bool version_ = false;
};

}  // namespace

Expected<std::variant<Invocation, HelpText>> parse_command_line(int argc, const char* const* argv) {
  return Grammar().parse(argc, argv);
}

bool asks_for_json(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return false;
    if (word == "--json") return true;
  }
  return false;
}

}  // namespace tangram::app
