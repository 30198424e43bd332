// First files of one's own: a fleet from a few words, and a shipped model to change.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "first_files.hpp"
#include "inputs.hpp"
#include "shipped.hpp"
#include "table.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/inventory/inventory.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

/// `init FOLDER`, `init --list`.
struct InitArguments {
  std::string folder;
  std::vector<std::string> nodes;     ///< NODESxGPUSxTYPE, as written
  std::vector<std::string> networks;  ///< as written
  std::string model;                  ///< a shipped one; empty: not given
  std::string name;                   ///< of the fleet; empty: not given
  bool list = false;
};

Parameters parameters_of(InitArguments& a) {
  return {{{"FOLDER", "folder to write", &a.folder, /*required=*/false}},
          {{"nodes", "NODES", "nodes that are alike, NODESxGPUSxTYPE: 4x8xH100-80GB-SXM", &a.nodes},
           {"network", "NETWORK", "[TYPE=][CARDSx]RATEGbit,KIND: cards of all nodes, or of those of one GPU type",
            &a.networks},
           {"model", "NAME", "the shipped model to start from", &a.model},
           {"name", "TEXT", "name of the fleet", &a.name},
           {"list", "", "show the shipped models and clusters, and stop", &a.list}}};
}

std::string parameters_of(const model::Model& model) {
  return fmt::format("{:.1f} B", static_cast<double>(model.total_parameters()) / 1e9);
}

/// The files that came with the program are read as any other.
Expected<Json> list_models(Table& table) {
  Json list = Json::array();
  for (const std::string& name : shipped_names(Shipped::kModel)) {
    const auto model = load_model(shipped_or(Shipped::kModel, name));
    if (!model) return fail(model.error());
    table.add({{name, Style::kBold},
               {thousands(model->block_count())},
               {parameters_of(*model)},
               {thousands(model->job.sequence_length)}});
    list.push_back({{"name", name}, {"layers", model->block_count()}, {"parameters", model->total_parameters()}});
  }
  return list;
}

Expected<Json> list_clusters(Table& table) {
  Json list = Json::array();
  for (const std::string& name : shipped_names(Shipped::kCluster)) {
    const auto fleet = load_fleet(shipped_or(Shipped::kCluster, name));
    if (!fleet) return fail(fleet.error());
    table.add({{name, Style::kBold},
               {thousands(fleet->gpu_count())},
               {thousands(static_cast<std::int64_t>(fleet->nodes.size()))}});
    list.push_back({{"name", name}, {"gpus", fleet->gpu_count()}, {"nodes", fleet->nodes.size()}});
  }
  return list;
}

ExitCode list_shipped(const Context& context) {
  Table models({{"model"}, {"layers", true}, {"parameters", true}, {"tokens a sample", true}});
  Table clusters({{"cluster"}, {"GPUs", true}, {"nodes", true}});
  auto model_list = list_models(models);
  if (!model_list) return report(context.terminal, context.json, model_list.error());
  auto cluster_list = list_clusters(clusters);
  if (!cluster_list) return report(context.terminal, context.json, cluster_list.error());
  const Json document{{"schema", "tangram.init/1"},
                      {"status", "ok"},
                      {"models", std::move(*model_list)},
                      {"clusters", std::move(*cluster_list)}};
  return print_result(context,
                      fmt::format("{}\n{}\ntangram plan CLUSTER MODEL takes these names in place of files.\n",
                                  models.render(context.terminal), clusters.render(context.terminal)),
                      document);
}

/// An answer of the person at the terminal; nothing where there will be no more.
std::optional<std::string> ask(std::string_view question) {
  std::cerr << question << ' ' << std::flush;
  std::string answer;
  if (!std::getline(std::cin, answer)) return std::nullopt;
  return answer;
}

/// Asks until `take` has no complaint; false where input ends first.
template <class Take>
bool asked(const Context& context, std::string_view question, Take take) {
  while (const auto answer = ask(question)) {
    const Expected<void> taken = take(*answer);
    if (taken) return true;
    context.terminal.error(taken.error());
  }
  return false;
}

Expected<void> check_model(const std::string& name) {
  const std::vector<std::string> known = shipped_names(Shipped::kModel);
  if (std::ranges::find(known, name) != known.end()) return {};
  return fail(usage_mistake("unknown-model", fmt::format("there is no shipped model \"{}\"", name),
                            suggestion(name, known, "tangram init --list shows them")));
}

Expected<void> add_nodes(const std::string& answer, std::vector<std::string>& nodes) {
  const auto good = inventory::described({answer}, cluster::catalogue());
  if (!good) return fail(good.error());
  nodes.push_back(answer);
  return {};
}

Expected<void> add_network(const std::string& answer, std::vector<std::string>& networks) {
  const auto good = inventory::parse_network(answer, cluster::catalogue());
  if (!good) return fail(good.error());
  networks.push_back(answer);
  return {};
}

bool at_terminal() { return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1; }

bool ask_nodes(InitArguments& arguments, const Context& context) {
  const auto first = [&](const std::string& answer) { return add_nodes(answer, arguments.nodes); };
  if (!asked(context, "Nodes (NODESxGPUSxTYPE, as in 4x8xH100-80GB-SXM):", first)) return false;
  bool more = true;
  const auto next = [&](const std::string& answer) -> Expected<void> {
    more = !answer.empty();
    return more ? add_nodes(answer, arguments.nodes) : Expected<void>();
  };
  while (more && asked(context, "More nodes (empty: no):", next)) {
  }
  return true;
}

/// Fills what was not given, where somebody can be asked.
void ask_missing(InitArguments& arguments, const Context& context) {
  if (!at_terminal()) return;
  if (arguments.nodes.empty() && ask_nodes(arguments, context) && arguments.networks.empty()) {
    asked(context, "Network of a node (CARDSxRATEGbit,KIND, as in 8x400Gbit,infiniband):",
          [&](const std::string& answer) { return add_network(answer, arguments.networks); });
  }
  if (!arguments.model.empty()) return;
  asked(context, fmt::format("Model ({}):", fmt::join(shipped_names(Shipped::kModel), ", ")),
        [&](const std::string& answer) {
          arguments.model = answer;
          return check_model(answer);
        });
}

std::optional<Diagnostics> complaint(const InitArguments& arguments) {
  const auto missing = [](std::string what, std::string hint) {
    return usage_mistake("missing-argument", "init needs " + what, std::move(hint));
  };
  if (arguments.folder.empty()) return missing("FOLDER (what to write)", "tangram init --help");
  if (arguments.nodes.empty()) return missing("--nodes", "as in --nodes 4x8xH100-80GB-SXM");
  if (arguments.model.empty()) return missing("--model", "tangram init --list shows the shipped models");
  if (auto known = check_model(arguments.model); !known) return known.error();
  return std::nullopt;
}

/// Logs of measurements, which tangram cluster takes, are none of the options here.
Diagnostics with_own_hint(Diagnostics why) {
  for (Diagnostic& diagnostic : why) {
    if (diagnostic.code == "missing-network") {
      diagnostic.hint = "give cards, rate of each and kind: --network 8x400Gbit,infiniband";
    }
  }
  return why;
}

Expected<std::string> cluster_text(const InitArguments& arguments) {
  auto fleet = inventory::described(arguments.nodes, cluster::catalogue());
  if (!fleet) return fail(fleet.error());
  if (!arguments.name.empty()) fleet->name = arguments.name;
  std::vector<inventory::NetworkChoice> networks;
  for (const std::string& text : arguments.networks) {
    auto choice = inventory::parse_network(text, cluster::catalogue());
    if (!choice) return fail(choice.error());
    networks.push_back(std::move(*choice));
  }
  inventory::apply_network(*fleet, networks);
  auto text = inventory::write_cluster(*fleet);
  if (!text) return fail(with_own_hint(std::move(text.error())));
  text = first_cluster(*text);
  if (const auto read = cluster::read_fleet(*text, "cluster.json"); !read) return fail(read.error());
  return text;
}

Expected<std::vector<FirstFile>> files_of(const InitArguments& arguments) {
  auto text = cluster_text(arguments);
  if (!text) return fail(text.error());
  auto files = first_model(shipped_or(Shipped::kModel, arguments.model));
  if (!files) return files;
  files->insert(files->begin(), {"cluster.json", std::move(*text)});
  return files;
}

Expected<void> write_first(const std::vector<FirstFile>& files, io::OutputFolder& folder) {
  for (const FirstFile& file : files) {
    if (auto added = folder.add(file.name, file.text); !added) return added;
  }
  return folder.commit();
}

std::string next_steps(const std::string& folder) {
  return fmt::format(
      "{0}: cluster.json and model.yaml, ready to edit\nnext: tangram plan {0}/cluster.json {0}/model.yaml\n",
      std::filesystem::path(folder + "/").parent_path().string());
}

ExitCode run_init(const InitArguments& given, const Context& context) {
  const auto refuse = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  if (given.list) return list_shipped(context);
  InitArguments arguments = given;
  ask_missing(arguments, context);
  if (const auto wrong = complaint(arguments)) return refuse(*wrong);
  const auto files = files_of(arguments);
  if (!files) return refuse(files.error());
  auto folder = context.signals.open_folder(arguments.folder);
  if (!folder) return refuse(folder.error());
  if (const auto written = write_first(*files, *folder); !written) return refuse(written.error());
  context.signals.release();
  Json document{{"schema", "tangram.init/1"}, {"status", "ok"}, {"folder", arguments.folder}, {"files", Json::array()}};
  for (const FirstFile& file : *files) document["files"].push_back(file.name);
  return print_result(context, next_steps(arguments.folder), document);
}

}  // namespace

Command init_command() {
  return {.name = "init",
          .usage = "FOLDER",
          .summary = "write a cluster.json and a model.yaml to start from",
          .examples = R"(  tangram init job
  tangram init job --nodes 4x8xH100-80GB-SXM --nodes 8x8xA100-80GB-SXM \
    --network 8x200Gbit,infiniband --model llama-3-70b
  tangram init --list
)",
          .details = R"(Writes FOLDER, which must be empty or not exist yet: a short description of the
fleet, and a shipped model with its job, both with comments and ready to edit.
On a terminal, asks for what is not given. --nodes is NODESxGPUSxTYPE. --network
gives the number, rate and kind of network cards, for all nodes or for those of
one GPU type (H100-80GB-SXM=8x400Gbit,infiniband).

--list shows the shipped models and clusters. plan and other commands take their
names instead of files. tangram cluster writes cluster.json from what a fleet
reports.

Manual: tangram help first-steps
)",
          .bind = bound<InitArguments>(parameters_of, run_init)};
}

}  // namespace tangram::app
