#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "inputs.hpp"
#include "table.hpp"
#include "tangram/inventory/inventory.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::app {

namespace {

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

Parameters parameters_of(ClusterArguments& a) {
  return {{{"ACTION", "from-slurm, from-kubernetes, from-nvidia-smi or probe", &a.action},
           {"FILE", "reports of the fleet; - is standard input", &a.files, /*required=*/false}},
          {{"network", "NETWORK",
            "[TYPE=][CARDSx]RATEGbit,KIND: network cards of all nodes, or of those with one GPU type", &a.networks},
           {"links", "LOG", "output of nccl-tests", &a.links},
           {"gpu", "NAME", "NAME=TYPE: reports call the catalogue's TYPE by this NAME", &a.gpus},
           {"name", "TEXT", "name of the fleet", &a.name},
           output_option("FILE", "write cluster.json to FILE", a.output)}};
}

using Importer = std::function<Expected<inventory::Inventory>(const inventory::Request&)>;

struct ClusterSource {
  std::string name;
  Importer import;
  bool reads_files = true;
};

std::vector<ClusterSource> sources() {
  const auto of = [](auto function) {
    return [function](const inventory::Request& request) { return function(request, cluster::catalogue()); };
  };
  return {{"from-slurm", of(inventory::from_slurm), true},
          {"from-kubernetes", of(inventory::from_kubernetes), true},
          {"from-nvidia-smi", of(inventory::from_nvidia_smi), true},
          {"probe", [](const auto& request) { return inventory::probe(request, cluster::catalogue()); }, false}};
}

Expected<ClusterSource> find_source(const std::string& action) {
  const std::vector<ClusterSource> known = sources();
  for (const ClusterSource& source : known) {
    if (source.name == action) return source;
  }
  return fail(unknown_action("cluster", action, names_of(known)));
}

std::optional<Diagnostics> complaint(const ClusterArguments& arguments, const ClusterSource& source) {
  if (source.reads_files && arguments.files.empty()) {
    return usage_mistake("missing-argument", fmt::format("cluster {} needs FILE", source.name),
                         "- reads standard input");
  }
  if (!source.reads_files && !arguments.files.empty()) {
    return usage_mistake("extra-argument", fmt::format("cluster {} takes no FILE", source.name));
  }
  std::vector<std::string> inputs = arguments.files;
  inputs.insert(inputs.end(), arguments.links.begin(), arguments.links.end());
  return overwritten_input(arguments.output, inputs, "give cluster.json a name of its own");
}

std::vector<profiles::SourceFile> read_files(const std::vector<std::string>& paths, Diagnostics& mistakes) {
  std::vector<profiles::SourceFile> files;
  for (const std::string& path : paths) {
    auto text = io::read_file(path);
    if (text) {
      files.push_back({path, std::move(*text)});
    } else {
      mistakes.insert(mistakes.end(), text.error().begin(), text.error().end());
    }
  }
  return files;
}

struct ClusterInputs {
  inventory::Request request;
  std::vector<inventory::NetworkChoice> networks;
  std::vector<profiles::SourceFile> links;
};

/// All options and files, with the mistakes of all.
Expected<ClusterInputs> read_inputs(const ClusterArguments& arguments) {
  ClusterInputs inputs;
  Diagnostics mistakes;
  for (const std::string& text : arguments.networks) {
    auto choice = inventory::parse_network(text, cluster::catalogue());
    if (!choice) return fail(choice.error());
    inputs.networks.push_back(std::move(*choice));
  }
  for (const std::string& text : arguments.gpus) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return fail(usage_mistake("bad-value", fmt::format("--gpu {}: no \"=\" in it", text),
                                "NAME=TYPE, as in a100=A100-80GB-SXM"));
    }
    inputs.request.gpu_names[text.substr(0, equals)] = text.substr(equals + 1);
  }
  inputs.request.files = read_files(arguments.files, mistakes);
  inputs.links = read_files(arguments.links, mistakes);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return inputs;
}

Expected<inventory::Inventory> take_inventory(const ClusterArguments& arguments, const ClusterSource& source) {
  const auto inputs = read_inputs(arguments);
  if (!inputs) return fail(inputs.error());
  auto found = source.import(inputs->request);
  if (!found) return found;
  if (!arguments.name.empty()) found->name = arguments.name;
  if (!inputs->links.empty()) {
    const auto applied = inventory::apply_measured_links(*found, inputs->links, cluster::catalogue());
    if (!applied) return fail(applied.error());
  }
  inventory::apply_network(*found, inputs->networks);
  return found;
}

nlohmann::ordered_json document_of(const inventory::Inventory& found, const std::string& text) {
  nlohmann::ordered_json left = nlohmann::ordered_json::array();
  for (const inventory::LeftOut& out : found.left_out) left.push_back({{"node", out.node}, {"reason", out.reason}});
  return {{"schema", "tangram.inventory/1"},
          {"status", "ok"},
          {"cluster", nlohmann::ordered_json::parse(text)},
          {"left_out", std::move(left)},
          {"notes", found.notes}};
}

/// GPUs by type.
std::string for_people(const cluster::Fleet& fleet, const Terminal& terminal) {
  std::map<std::string, std::pair<int, int>> types;  // nodes, GPUs
  for (const cluster::Node& node : fleet.nodes) {
    for (const cluster::DeviceGroup& group : node.groups) {
      ++types[group.device.name].first;
      types[group.device.name].second += group.count;
    }
  }
  Table table({{"GPU"}, {"nodes", true}, {"GPUs", true}});
  for (const auto& [type, counts] : types) {
    table.add({{type, Style::kBold}, {thousands(counts.first)}, {thousands(counts.second)}});
  }
  return fmt::format("{}: {} on {}\n\n{}", fleet.name, counted(fleet.gpu_count(), "GPU"),
                     counted(static_cast<std::int64_t>(fleet.nodes.size()), "node"), table.render(terminal));
}

ExitCode run_cluster(const ClusterArguments& arguments, const Context& context) {
  const auto failed = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  const auto source = find_source(arguments.action);
  if (!source) return failed(source.error());
  if (const auto wrong = complaint(arguments, *source)) return failed(*wrong);
  const auto found = take_inventory(arguments, *source);
  if (!found) return failed(found.error());
  const auto text = inventory::write_cluster(*found);
  if (!text) return failed(text.error());
  const auto fleet = cluster::read_fleet(*text, "cluster.json");
  if (!fleet) return failed(fleet.error());

  for (const inventory::LeftOut& out : found->left_out) {
    context.terminal.note(fmt::format("left out: {}: {}", out.node, out.reason));
  }
  for (const std::string& note : found->notes) context.terminal.note(note);
  auto output = open_output(context, arguments.output);
  if (!output) return failed(output.error());
  if (const auto written = write_output(context, *output, *text); !written) return failed(written.error());
  if (context.json) return print_result(context, "", document_of(*found, *text));
  return print_text(context, output->has_value() ? for_people(*fleet, context.terminal) : *text);
}

}  // namespace

Command cluster_command() {
  return {.name = "cluster",
          .usage = "from-slurm|from-kubernetes|from-nvidia-smi|probe [FILE...]",
          .summary = "write cluster.json from what a fleet reports",
          .examples = R"(  scontrol show nodes --json | tangram cluster from-slurm - \
    --network 8x400Gbit,infiniband -o fleet.json
  kubectl get nodes -o json | tangram cluster from-kubernetes - \
    --network 4x200Gbit,roce -o fleet.json
  tangram cluster from-nvidia-smi n1.xml n1.txt n2.xml n2.txt \
    --links all_reduce.log -o fleet.json
  tangram cluster probe
)",
          .details = R"(from-slurm reads the output of scontrol show nodes, as text or with --json.
from-kubernetes reads nodes with the labels of GPU feature discovery.
from-nvidia-smi reads the output of nvidia-smi -q -x (HOST.xml) and of
nvidia-smi topo -m (HOST.txt). probe inspects this machine.

Drained, cordoned and failed nodes are left out and listed. GPU names are
looked up in the catalogue; --gpu maps a name that the catalogue lacks. These
reports do not describe the network: --network gives the number, rate and kind
of network cards, for all nodes or for those of one GPU type
(H100-80GB-SXM=8x400Gbit,infiniband); --links takes nccl-tests measurements
instead. Without -o the file goes to standard output; --json prints it together
with what was left out.

Manual: tangram help fleet
)",
          .bind = bound<ClusterArguments>(parameters_of, run_cluster)};
}

}  // namespace tangram::app
