#include "cli.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "exit_codes.hpp"
#include "manual.hpp"
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

constexpr std::size_t kOptionColumn = 33;

constexpr CommandText kCommands[] = {
    {Command::kInit, "init", "FOLDER", "write a cluster.json and a model.yaml to start from",
     "  tangram init job\n"
     "  tangram init job --nodes 4x8xH100-80GB-SXM --nodes 8x8xA100-80GB-SXM --network 8x200Gbit,infiniband \\\n"
     "    --model llama-3-70b\n"
     "  tangram init --list\n",
     "Writes FOLDER, which must not exist or be empty: the fleet in a few words, and a shipped model with its job,\n"
     "both with comments, ready to edit. What is not given is asked for on a terminal. --nodes is\n"
     "NODESxGPUSxTYPE; --network gives cards of a node, rate and kind, for all nodes or those of a GPU type\n"
     "(H100-80GB-SXM=8x400Gbit,infiniband). --list shows the shipped models and clusters, which plan and other\n"
     "commands take by name. tangram cluster writes cluster.json of what a fleet reports instead.\n"},
    {Command::kPlan, "plan", "CLUSTER MODEL", "plan a training job on a mixed fleet",
     "  tangram plan fleet.json model.yaml\n"
     "  tangram plan fleet.json hf/config.json --global-batch 512 --seq-len 4096 -o plan.json\n"
     "  tangram plan fleet.json model.yaml --forbid ep,zero3 --json | jq .predicted\n"
     "  tangram plan fleet.json model.yaml --add gpu=H100,nodes=2 --drop rack=r3\n"
     "  tangram plan fleet.json model.yaml --against plan.json --detailed-exitcode -o next.json\n"
     "  tangram plan fleet.json model.yaml --against plan.json --ahead > /dev/null     (ready for the next change)\n",
     "Decides which GPUs form which pipeline stage, how many layers each stage holds and how each is\n"
     "parallelized inside. Every plan is checked and simulated before it is shown. CLUSTER is a cluster.json\n"
     "or the name of a shipped cluster; MODEL is a model.yaml, a Hugging Face config.json or the name of a\n"
     "shipped model (tangram init --list); one of the two files may be - (standard input). --json prints the\n"
     "launch plan itself, the same bytes as -o writes.\n"
     "\n"
     "--drop, --add and --set change the fleet for this run, in this order: nodes by name, label or GPU type;\n"
     "links between values of a label; network, compute, memory and price of nodes and of GPU types.\n"
     "\n"
     "--against PLAN prices a plan that runs already on the fleet as it is now, GPUs by host name and number. It\n"
     "is kept, and -o writes it unchanged, while it fits and no other gains --min-gain; otherwise the plan that\n"
     "gives fewest GPUs other work is taken among those within --min-gain of the best. Why is said; --json\n"
     "prints the decision. A PLAN that check refuses is an error (exit 4): it must be as it was written.\n"
     "\n"
     "Searches are kept (tangram cache), so that planning for a fleet that is alike but for names is a matter of\n"
     "looking up. --ahead searches as well, when the plan is written, for fleets with any one node less and with\n"
     "one more like any: then a change of that kind is looked up, too. With --against it prepares the next run\n"
     "with --against; searches for pipelines that are not alike are not kept.\n"},
    {Command::kIslands, "islands", "CLUSTER", "show which GPUs are alike, and why",
     "  tangram islands fleet.json\n"
     "  tangram islands fleet.json --island-tolerance 5%\n"
     "  tangram islands fleet.json --set 'node(a-07).compute=70%'\n",
     "Groups GPUs that are alike in compute, memory and connectivity, for each level of the links.\n"},
    {Command::kCluster, "cluster", "from-slurm|from-kubernetes|from-nvidia-smi|probe [FILE...]",
     "write cluster.json from what a fleet reports",
     "  scontrol show nodes --json | tangram cluster from-slurm - --network 8x400Gbit,infiniband -o fleet.json\n"
     "  kubectl get nodes -o json | tangram cluster from-kubernetes - --network 4x200Gbit,roce -o fleet.json\n"
     "  tangram cluster from-nvidia-smi n1.xml n1.txt n2.xml n2.txt --links all_reduce.log -o fleet.json\n"
     "  tangram cluster probe\n",
     "from-slurm reads scontrol show nodes, as text or --json; from-kubernetes nodes with the labels of GPU\n"
     "feature discovery; from-nvidia-smi what nvidia-smi -q -x (HOST.xml) and nvidia-smi topo -m (HOST.txt)\n"
     "print; probe asks this machine. Drained, cordoned and failed nodes are left out and named. What a report\n"
     "calls a GPU is looked up in the catalogue; --gpu says what is not found there. The network is not in these\n"
     "reports: --network gives cards, rate and kind, for all nodes or those of a GPU type\n"
     "(H100-80GB-SXM=8x400Gbit,infiniband); --links takes what nccl-tests measured instead. Without -o the file\n"
     "goes to standard output; --json prints it with what was left out.\n"},
    {Command::kGpus, "gpus", "", "list the GPU types that the program knows",
     "  tangram gpus\n"
     "  tangram gpus --json | jq -r '.gpus[] | select(.memory_gib >= 80) | .name'\n",
     "These names stand in cluster.json, in --add gpu=NAME and in --gpu of cluster and profile. A GPU that is not\n"
     "among them is described in cluster.json itself, under \"gpus\".\n"},
    {Command::kCheck, "check", "PLAN", "judge a written plan",
     "  tangram check plan.json\n"
     "  tangram check plan.json --cluster fleet.json --model model.yaml\n",
     "Works out structure, memory, times, rates and verdicts about runtimes anew from the file alone, and lists\n"
     "what does not hold. Bounds and gaps must fit the times; how they were found is not repeated. With\n"
     "--cluster and --model also that hosts, links, prices and layers are those of the inputs. Exit 0: nothing is\n"
     "wrong; 3: there are violations; 4: the file is not a launch plan.\n"},
    {Command::kSimulate, "simulate", "PLAN", "run a plan's schedule event by event",
     "  tangram simulate plan.json\n"
     "  tangram simulate plan.json --trace trace.json     (open it in https://ui.perfetto.dev)\n",
     "Plays the 1F1B schedule with its transfers and shows where the time of each stage goes. Plans are made for\n"
     "transfers that run beside the passes; --blocking shows what they take where a stage stops until its transfers\n"
     "are through, as Megatron-LM's stages do without interleaving. A plan that check refuses is simulated as it is\n"
     "written, with a warning.\n"},
    {Command::kCompare, "compare", "CLUSTER MODEL", "compare this planner with others",
     "  tangram compare fleet.json model.yaml\n"
     "  tangram compare fleet.json model.yaml --with metis,sailor --mode faithful\n"
     "  tangram compare fleet.json model.yaml --html report.html --json | jq '.planners[] | {planner, mode, ratio}'\n",
     "Plans the job here and as other planners do, and judges all plans by one simulator and one memory model.\n"
     "The others are written anew from what is published of them: megatron (one set of degrees for all GPUs, by\n"
     "hand), amp, metis, sailor, flashflex. faithful has the published programs' defects, repaired has not. Of each\n"
     "the first plan of its own ranking that runs counts; what became of its first is said. Then our plan without\n"
     "each technique that it uses, and without all that others do not have. --plan adds launch plans, or what the\n"
     "published programs themselves wrote: Metis' ranked list, Sailor's plan JSON, AMP's ranks, FlashFlex'\n"
     "hetero_configs; --write-inputs writes what Metis and Sailor read, for runs of your own.\n"},
    {Command::kExplain, "explain", "PLAN CLUSTER", "say why a plan is as it is",
     "  tangram explain plan.json fleet.json\n"
     "  tangram explain plan.json fleet.json --json | jq .limits\n",
     "Prices what is next to the plan: a tenth more of compute, memory bandwidth and links (what limits it), a\n"
     "layer to the other side of each cut, other degrees of each stage, the next best plan. Then plans anew with\n"
     "a tenth more memory on each GPU type (which limit binds), with a node more of each class and without an\n"
     "island of each class. CLUSTER is the fleet it was made for; --target the runtime, if it is not any.\n"},
    {Command::kDiff, "diff", "OLD NEW", "show what changes from one plan to another",
     "  tangram diff old.json new.json\n"
     "  tangram diff old.json new.json --cluster fleet.json     (also how long the switch takes)\n"
     "  tangram diff old.json new.json --exit-code > /dev/null || echo they differ\n",
     "Compares what two launch plans do, not how they were found: stages, layers, degrees, GPUs, predictions; and\n"
     "what a switch moves: parameters and optimizer state that GPUs lack, from which host to which. With\n"
     "--cluster, hosts that are gone send nothing, and the time at the links' speed is said.\n"},
    {Command::kVerify, "verify", "PLAN", "execute a plan's structure and compare it with one process",
     "  tangram verify plan.json\n"
     "  tangram verify plan.json --inject missing-all-reduce     (a planted mistake: it must be found)\n"
     "  tangram verify plan.json --json | jq .gradient\n",
     "Runs one iteration of a small model in fp64 with the plan's stages, degrees, ZeRO, recompute, transfers\n"
     "and warm-ups, all ranks inside this process, and compares the loss, every gradient and the weights after\n"
     "a step of SGD with one process: equal to 1e-9. Counts the microbatches in flight, and shows that the\n"
     "order of passes cannot deadlock. What repeats in a large plan is run twice; what was left out is said.\n"
     "Exit 0: all is equal; 3: it is not, and why; 4: the file is not a launch plan.\n"},
    {Command::kExport, "export", "PLAN --to FORMAT -o FOLDER", "write what a runtime starts a plan with",
     "  tangram export plan.json --to generic -o start\n"
     "  tangram export plan.json --to megatron -o start && start/nodes/h1.sh --train-iters 100 --mock-data\n"
     "  tangram export plan.json --to flagscale -o conf\n"
     "  tangram export plan.json --to slurm --program megatron -o job && cd job && sbatch job.sbatch\n",
     "FORMAT is generic (rank map, hostfile, a start script per node), megatron (Megatron-LM's arguments, with\n"
     "scripts), flagscale (FlagScale's heterogeneous training), slurm (a heterogeneous job) or kubernetes (a\n"
     "JobSet) around generic or megatron; sailor, flashflex and galvatron write what these planners compare.\n"
     "A plan that cannot be said in a format is refused with every reason: plan --target finds one that a\n"
     "runtime can run. The folder is written whole or not at all, and must not exist or be empty.\n"
     "Exit 3: refused.\n"},
    {Command::kImport, "import", "FILE... --from FORMAT --cluster CLUSTER --model MODEL",
     "read a job back into a launch plan",
     "  tangram import pretrain.sh hostfile --from megatron --cluster fleet.json --model model.yaml -o plan.json\n"
     "  tangram import conf/train/job.yaml hostfile --from flagscale --cluster fleet.json --model model.yaml\n"
     "  tangram import metis.log --from metis --rank 3 --cluster fleet.json --model model.yaml\n"
     "  tangram import start --from megatron --cluster fleet.json --model model.yaml     (what export wrote)\n",
     "Makes a launch plan of a job that runs already, to check, simulate, verify and compare it like one of our\n"
     "own. FORMAT is megatron (a script with Megatron-LM's arguments), flagscale (its training YAML), sailor,\n"
     "galvatron, flashflex (the JSON they plan with) or metis (what it prints). A host file\n"
     "(HOST slots=N) or a rank map (rankmap.csv) beside it says which GPU has which rank; a folder stands for the\n"
     "files in it. Sequence length and batch are those of the job, where it says them. Of a plan with violations\n"
     "these are listed, and it is not written. Exit 0: nothing is wrong; 3: there are violations; 4: the files\n"
     "cannot be read as a plan.\n"},
    {Command::kProfile, "profile", "import|show FILE...", "take in measured times of other tools, show a profile",
     "  tangram profile import --from sailor OPT-350/A100-40/profile.json --model model.yaml -o a100.json\n"
     "  tangram profile import --from metis metis/*.json --gpu A100-80GB-SXM --model model.yaml -o a100.json\n"
     "  tangram profile import --from nccl-tests all_reduce.log -o links.json\n"
     "  tangram profile show a100.json\n",
     "import reads files of sailor, metis, galvatron, amp or nccl-tests and makes one profile of them, which\n"
     "plan --profile takes. Units are found from the numbers; whatever is detected, corrected or left out is\n"
     "said. GPU (by its catalogue name) and model are needed where the files do not tell them. --json prints\n"
     "the profile itself, the same bytes as -o writes. show lists what a profile holds.\n"},
    {Command::kAccuracy, "accuracy", "DATASET", "compare predictions with published measurements",
     "  tangram accuracy configs/measurements/validation.json\n"
     "  tangram accuracy measurements.json --summary\n"
     "  tangram accuracy measurements.json --json | jq '.groups[] | select(.kind == \"dataset\")'\n"
     "  tangram accuracy measurements.json --profile a100.json --gpus calibrated.json\n",
     "Builds the plan that each measurement ran, predicts its iteration time and memory with the code that\n"
     "plans are made with, and shows the errors: per measurement, and per dataset, GPU type and parallelism.\n"
     "What cannot be expressed is listed with the reason.\n"},
    {Command::kParallelizers, "parallelizers", "list|test [NAME]", "show and try who can plan a stage",
     "  tangram parallelizers list\n"
     "  tangram parallelizers test galvatron\n"
     "  tangram parallelizers test ./my_planner.py\n"
     "  tangram plan fleet.json model.yaml --parallelizer enumerator,./my_planner.py\n"
     "  tangram plan fleet.json model.yaml --parallelizer enumerator,layerwise    (tight memory; several times "
     "slower)\n",
     "Parallelizers answer how to run a part of the model on equal GPUs. list shows those of the program and the\n"
     "plugins that are found (manifests in --parallelizer-path, beside the program, in the user's folder; programs\n"
     "tangram-parallelizer-NAME on the PATH), whether they start, and what to do if not. test asks one what a plan\n"
     "would ask and says what is wrong with its answers. NAME with a / is a manifest or a program.\n"},
    {Command::kCache, "cache", "show|verify|clear|path [NAME]", "the searches and the answers of plugins that are kept",
     "  tangram cache show\n"
     "  tangram cache verify --sample 50\n"
     "  tangram cache clear galvatron\n"
     "  tangram plan fleet.json model.yaml --parallelizer galvatron --offline     (asks the cache alone)\n",
     "plan and explain keep whole searches in one SQLite file, under a digest of all they depend on: the\n"
     "program, the model and its job, the islands without the names of hosts, options, profiles, plugins. plan\n"
     "keeps what plugins answer, too, under the question and a digest of the plugin. What is there is looked\n"
     "up; plans are the same with and without it. show counts searches, and answers, hits, misses and bytes of\n"
     "each plugin; verify reads all searches, asks the plugins a sample again, those not verified for longest\n"
     "first, and reports what is damaged and what they answer otherwise now; clear forgets all, or what one\n"
     "plugin had a part in; path prints where the file is. Keep it on a disk of this machine: network file systems\n"
     "have no locks that it can trust. Exit 5: verify found damage or a difference, or a plugin that does not\n"
     "answer.\n"},
    {Command::kWorker, "worker", "ADDRESS...", "run plugins for a planner elsewhere",
     "  tangram plan fleet.json model.yaml --parallelizer galvatron --workers slurm --worker-cores 64\n"
     "  tangram plan fleet.json model.yaml --parallelizer galvatron --workers mpi \\\n"
     "    --worker-launcher 'mpirun --hostfile hosts' --worker-cores 64\n",
     "plan --workers starts this through srun or mpirun, once per worker, on whatever nodes they choose. It calls\n"
     "back over TCP, runs plugins as a local worker would, and ends with the planner. tangram and the plugins\n"
     "are needed at the same paths on all nodes.\n"},
    {Command::kSchema, "schema", "NAME", "print the JSON Schema of a file or of what --json prints",
     "  tangram schema cluster > cluster.schema.json\n"
     "  tangram schema replan\n",
     "Files: cluster, model, profile, measurements, launch_plan.\n"
     "What --json prints: accuracy, cache, check, choices (plan --pareto), comparison (compare), conformance\n"
     "(parallelizers test), diff, error, explanation (explain), export, gpu_list (gpus), init, inventory "
     "(cluster), islands,\n"
     "parallelizers, planner_files (compare --write-inputs), replan (plan --against), simulation (simulate), "
     "verification (verify),\n"
     "version. The NAME is that in a document's own \"schema\": \"tangram.NAME/1\".\n"},
    {Command::kCompletion, "completion", "bash|zsh|fish", "print what makes a shell complete commands and options",
     "  source <(tangram completion bash)\n"
     "  tangram completion zsh > \"${fpath[1]}/_tangram\"\n"
     "  tangram completion fish > ~/.config/fish/completions/tangram.fish\n",
     ""},
    {Command::kManual, "manual", "", "print the manual page", "  tangram manual | man -l -\n", ""},
    {Command::kVersion, "version", "", "print the version", "  tangram version --json\n", ""},
};

constexpr const char* kRootExamples =
    "  tangram plan h100-a100-v100 llama-2-7b     (a fleet and a model that came with the program)\n"
    "  tangram init job                           (files of your own)\n"
    "  tangram islands fleet.json\n"
    "  tangram plan fleet.json model.yaml -o plan.json && tangram check plan.json\n";

constexpr const char* kRootDetails = "Plans LLM training on mixed GPU fleets.\n";

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
    std::string out = fmt::format("{}\nUsage: {}\n", app->get_description(), usage);
    if (root) out += "\nCommands:\n" + commands();
    out += make_positionals(app) + make_groups(app, mode);
    while (out.ends_with("\n\n")) out.pop_back();
    if (root) out += fmt::format("\n{}", kExitTable);
    return out;
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

 private:
  static std::string commands() {
    std::string out;
    for (const CommandText& text : kCommands) {
      out += fmt::format("  {:<{}}{}\n", text.name, kOptionColumn - 2, text.summary);
    }
    return out;
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

std::string fault_help() { return fmt::format("make a mistake on purpose: {}", fmt::join(fault_words(), ", ")); }

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
      sub->add_option("--nodes", init_.nodes, "NODESxGPUSxTYPE, alike: 4x8xH100-80GB-SXM")
          ->type_name("NODES")
          ->allow_extra_args(false);
      sub->add_option("--network", init_.networks, "[TYPE=][CARDSx]RATEGbit,KIND, of every node or of a GPU type's")
          ->type_name("NETWORK")
          ->allow_extra_args(false);
      sub->add_option("--model", init_.model, "the shipped model to start from")->type_name("NAME");
      sub->add_option("--name", init_.name, "what the fleet is called")->type_name("TEXT");
      sub->add_flag("--list", init_.list, "show the shipped models and clusters, and stop");
    }
    if (text.command == Command::kPlan) {
      sub->add_option("-o,--output", plan_.output, "write the plan here; --pareto: a folder of plans")
          ->type_name("FILE");
      sub->add_option("--against", plan_.against, "keep this plan unless another is worth the change")
          ->type_name("PLAN");
      sub->add_flag("--detailed-exitcode", plan_.detailed_exitcode, "exit 2 where the plan of --against changes");
    }
    if (text.command == Command::kCluster) {
      sub->add_option("--network", cluster_.networks, "[TYPE=][CARDSx]RATEGbit,KIND, of every node or of a GPU type's")
          ->type_name("NETWORK")
          ->allow_extra_args(false);
      sub->add_option("--links", cluster_.links, "what nccl-tests printed")->type_name("LOG")->allow_extra_args(false);
      sub->add_option("--gpu", cluster_.gpus, "NAME=TYPE: the catalogue's TYPE is meant by NAME")
          ->type_name("NAME")
          ->allow_extra_args(false);
      sub->add_option("--name", cluster_.name, "what the fleet is called")->type_name("TEXT");
      sub->add_option("-o,--output", cluster_.output, "write cluster.json here")->type_name("FILE");
    }
    if (text.command == Command::kCheck) {
      sub->add_option("--cluster", check_.cluster, "the fleet it was made for")->type_name("CLUSTER");
      sub->add_option("--model", check_.model, "the model it was made for")->type_name("MODEL");
    }
    if (text.command == Command::kCompare) {
      sub->add_option("--with", compare_.planners, "planners: metis,sailor (default: all)")
          ->delimiter(',')
          ->type_name("NAMES");
      sub->add_option("--mode", compare_.mode, "faithful, repaired or both (default: both)")->type_name("MODE");
      sub->add_option("--plan", compare_.plans, "a launch plan, or what Metis, Sailor, AMP or FlashFlex wrote")
          ->allow_extra_args(false)
          ->type_name("FILE");
      sub->add_option("--html", compare_.html, "write a report for browsers here")->type_name("FILE");
      sub->add_option("--write-inputs", compare_.inputs, "write what Metis and Sailor read to this folder, and stop")
          ->type_name("FOLDER");
      sub->add_flag("--no-ablation", compare_.no_ablation, "do not plan without each technique");
    }
    if (text.command == Command::kDiff) {
      sub->add_option("--cluster", diff_.cluster, "the fleet that is there now")->type_name("CLUSTER");
      sub->add_flag("--exit-code", diff_.exit_code, "exit 2 where the plans differ");
    }
    if (text.command == Command::kExport) {
      sub->add_option("--to", export_.to,
                      "generic, megatron, flagscale, slurm, kubernetes, sailor, flashflex, galvatron")
          ->type_name("FORMAT");
      sub->add_option("-o,--output", export_.output, "folder to write")->type_name("FOLDER");
      sub->add_option("--program", export_.program, "what slurm and kubernetes start: generic (default) or megatron")
          ->type_name("FORMAT");
      sub->add_option("--image", export_.image, "container of kubernetes")->type_name("IMAGE");
    }
    if (text.command == Command::kImport) {
      sub->add_option("--from", import_.from, "megatron, flagscale, sailor, galvatron, flashflex or metis")
          ->type_name("FORMAT");
      sub->add_option("--cluster", import_.cluster, "the fleet the job runs on")->type_name("CLUSTER");
      sub->add_option("--model", import_.model, "the model it trains")->type_name("MODEL");
      sub->add_option("--rank", import_.rank, "which plan of a list (metis, sailor); 1 is the first")->type_name("N");
      sub->add_option("-o,--output", import_.output, "write the plan here")->type_name("FILE");
    }
    if (text.command == Command::kProfile) {
      sub->add_option("--from", profile_.from, "the tool that measured: sailor, metis, galvatron, amp, nccl-tests")
          ->type_name("TOOL");
      sub->add_option("--gpu", profile_.gpu, "GPU type, as the catalogue names it")->type_name("NAME");
      sub->add_option("--model", profile_.model, "the model that was measured")->type_name("MODEL");
      sub->add_option("--date", profile_.date, "when it was measured: YYYY-MM-DD")->type_name("DATE");
      sub->add_option("-o,--output", profile_.output, "write the profile here")->type_name("FILE");
    }
    if (text.command == Command::kSimulate) {
      sub->add_option("--trace", simulate_.trace, "write a Chrome trace here")->type_name("FILE");
      sub->add_flag("--blocking", simulate_.blocking, "stages stop for transfers, as in Megatron-LM's 1F1B");
    }
    if (text.command == Command::kVerify) {
      sub->add_option("--inject", verify_.fault, fault_help())->type_name("FAULT");
    }
    if (text.command == Command::kAccuracy) {
      sub->add_flag("--summary", accuracy_.summary, "show the groups alone, not every measurement");
      sub->add_option("--gpus", accuracy_.gpus, "GPU types that come before those of the program")->type_name("FILE");
      sub->add_option("--without", accuracy_.without,
                      "hierarchical, overlap: predict without collectives in two levels, without overlap")
          ->delimiter(',')
          ->type_name("METHOD");
    }
    if (text.command == Command::kCache) {
      sub->add_option("--sample", cache_.sample, "verify: how many answers of each plugin, or all (default: 20)")
          ->type_name("N");
    }
    if (takes_edits(text.command)) add_edits(*sub);
    add_settings(*sub, text.command);
    sub->add_flag("--json", invocation_.json, "print one JSON document, errors too");
    sub->add_flag("-q,--quiet", invocation_.quiet, "nothing on standard error but errors");
    // Not a flag that counts: those of CLI11 2.4 write 0 where a command was not given them, and all write to one
    // place.
    sub->add_flag_callback("-v,--verbose", [this] { invocation_.verbosity = 1; }, "say more on standard error");
    if (takes_edits(text.command)) {  // what settings decide about
      sub->add_flag("--show-origin", invocation_.show_origin, "show where each setting comes from, and stop");
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
    edit("--drop", invocation_.edits.drop, "what if these were gone: rack=r3, node=a-[01-04], gpu=V100");
    edit("--add", invocation_.edits.add, "what if there were more: gpu=H100,nodes=2 or like=a-07,nodes=2");
    edit("--set", invocation_.edits.set, "what if: link(zone:a,zone:b).bandwidth=10Gbit, node(a-07).compute=70%");
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
      case Command::kInit: return {{"FOLDER", "what to write", &init_.folder, false}};
      case Command::kPlan:
        return {{"CLUSTER", "cluster.json", &plan_.cluster, true},
                {"MODEL", "model.yaml or config.json", &plan_.model, true}};
      case Command::kIslands: return {{"CLUSTER", "cluster.json", &islands_.cluster, true}};
      case Command::kCluster:
        return {{"ACTION", "from-slurm, from-kubernetes, from-nvidia-smi or probe", &cluster_.action, true},
                {"FILE", "what the fleet reports; - reads standard input", nullptr, false, &cluster_.files}};
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
                {"FILE", "what the tool wrote, or a profile", nullptr, true, &profile_.files}};
      case Command::kAccuracy: return {{"DATASET", "published measurements", &accuracy_.dataset, true}};
      case Command::kParallelizers:
        return {{"ACTION", "list or test", &parallelizers_.action, true},
                {"NAME", "of test: whom to try", &parallelizers_.name, false}};
      case Command::kCache:
        return {{"ACTION", "show, verify, clear or path", &cache_.action, true},
                {"NAME", "of verify and clear: one plugin alone", &cache_.name, false}};
      case Command::kWorker:
        return {{"ADDRESS", "HOST:PORT where the planner may be reached", nullptr, true, &worker_.addresses}};
      case Command::kSchema:
        return {
            {"NAME", "cluster, model, profile, launch_plan, measurements, or what --json prints", &schema_.name, true}};
      case Command::kCompletion: return {{"SHELL", "bash, zsh or fish", &shell_, true}};
      case Command::kGpus:
      case Command::kManual:
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
      CommandManual command{text.name, text.usage, text.summary, text.examples, text.details, {}};
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
    return fail(usage_error("unknown-shell", fmt::format("there is no completion for \"{}\"", shell_),
                            suggestion(shell_, known, "shells: bash, zsh, fish")));
  }

  Expected<std::variant<Invocation, HelpText>> interpret() {
    const auto parsed = root_.get_subcommands();
    if (parsed.empty()) return without_command();
    const CLI::App& sub = *parsed.front();
    if (const auto before = root_.remaining(); !before.empty()) {
      if (before.front() == "help") return HelpText{sub.help()};
      return fail(unknown_before_command(before.front()));
    }
    if (auto extra = complaint_about_extras(sub)) return fail(std::move(*extra));
    for (const CommandText& text : kCommands) {
      if (sub.get_name() == text.name) invocation_.command = text.command;
    }
    if (auto missing = complaint_about_missing(sub)) return fail(std::move(*missing));
    if (auto empty = complaint_about_empty(sub)) return fail(std::move(*empty));
    if (invocation_.command == Command::kCompletion) return completion();
    if (invocation_.command == Command::kManual) {
      return HelpText{manual_page(manual(), "plans LLM training on mixed GPU fleets", kExitTable)};
    }
    invocation_.arguments = arguments(invocation_.command);
    return invocation_;
  }

  Expected<std::variant<Invocation, HelpText>> without_command() {
    if (version_) return invocation_;
    const std::vector<std::string> words = root_.remaining();
    if (words.empty()) return fail(usage_error("missing-command", "which command?", hint_to_help()));
    if (words.size() == 1 && words.front() == "help") return HelpText{root_.help()};
    return fail(unknown_before_command(words.front() == "help" ? words[1] : words.front()));
  }

  static Diagnostic unknown_before_command(const std::string& word) {
    if (!word.starts_with('-')) {
      std::vector<std::string> names;
      for (const CommandText& text : kCommands) names.emplace_back(text.name);
      return usage_error("unknown-command", fmt::format("unknown command \"{}\"", word),
                         suggestion(word, names, fmt::format("commands: {}", fmt::join(names, ", "))));
    }
    return usage_error("unknown-option", fmt::format("there is no option {} before the command", word),
                       "options of a command come after it, as in tangram plan --json");
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

  /// `-o ''` is a script whose variable is not set, not a wish for no file.
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
  std::string shell_;
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
