#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "inputs.hpp"
#include "kernels_analyze.hpp"
#include "kernels_view.hpp"
#include "table.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/cluster/gpu_names.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/kernels/alignment.hpp"
#include "tangram/kernels/check.hpp"
#include "tangram/kernels/document.hpp"
#include "tangram/kernels/held_out.hpp"
#include "tangram/kernels/launched_graph.hpp"
#include "tangram/kernels/recording.hpp"
#include "tangram/kernels/synth.hpp"
#include "tangram/ptx/parse.hpp"
#include "tangram/ptx/triton_log.hpp"

namespace tangram::app {

namespace {

struct KernelsArguments {
  std::string action;
  std::vector<std::string> files;
  std::vector<std::string> gpus;    ///< catalogue names, or those of other tools
  std::string catalogue;            ///< a file of GPU types that overrides the built-in ones; empty: none
  std::string onto;                 ///< import: the graph that the recording is aligned with; empty: none
  std::vector<std::string> phases;  ///< synth; empty: decode
  std::int64_t requests = 1;
  std::int64_t context = 1024;
  std::vector<std::string> times;  ///< tables of operator times that come before the built-in ones
  std::string launches;            ///< analyze: JSON lines; empty: none
  bool explain = false;            ///< analyze: every access
  std::string output;              ///< empty: not written
};

Parameters parameters_of(KernelsArguments& a) {
  return {{{"ACTION", "import, show, check, synth, accuracy or analyze", &a.action},
           {"FILE", "recordings, a kernel graph, a model, operator times, or PTX", &a.files, /*required=*/false}},
          {{"gpu", "NAME", "GPU types, by their catalogue names", &a.gpus, {}, /*list=*/true},
           {"gpus", "FILE", "a catalogue of GPU types that overrides the built-in one", &a.catalogue},
           {"onto", "GRAPH", "import: add the recording's times to this graph of the same step", &a.onto},
           {"phase",
            "PHASE",
            "synth: prefill, decode (default), or prefill,decode",
            &a.phases,
            {"prefill", "decode"},
            /*list=*/true},
           {"requests", "N", "synth: requests of a step (default: 1)", &a.requests},
           {"context", "TOKENS", "synth: tokens that each request has (default: 1024)", &a.context},
           {"times", "FILE", "operator times that come before the built-in ones", &a.times, {}, /*list=*/true},
           {"launch", "LAUNCHES", "analyze, import of PTX: JSON lines, one for each launch", &a.launches},
           {"explain", "", "analyze: every access, and why what is not known is not", &a.explain},
           output_option("FILE", "write the result to FILE", a.output)}};
}

// Inputs

/// The GPU types of --gpu, or every mistake in their names.
Expected<std::vector<cluster::GpuType>> gpus_of(const std::vector<std::string>& names,
                                                const std::vector<cluster::GpuType>& devices) {
  std::vector<cluster::GpuType> gpus;
  Diagnostics mistakes;
  std::vector<std::string> known;
  for (const cluster::GpuType& device : devices) known.push_back(device.name);
  for (const std::string& name : names) {
    const cluster::GpuType* device = cluster::device_of(name, devices);
    if (device == nullptr) {
      mistakes.push_back(problem(ErrorKind::kUsage, "unknown-gpu", fmt::format("--gpu {}: no such GPU type", name),
                                 suggestion(name, known, "tangram gpus lists them")));
    } else if (std::ranges::find(gpus, device->name, &cluster::GpuType::name) == gpus.end()) {
      gpus.push_back(*device);
    }
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return gpus;
}

/// With its inference part, found where the file has none.
Expected<kernels::OperatorTable> load_table(const std::string& path, const std::vector<cluster::GpuType>& devices) {
  auto text = io::read_file(path);
  if (!text) return fail(std::move(text.error()));
  auto table = kernels::read_operator_table(std::move(*text), path);
  if (!table || !table->inference.empty()) return table;
  return kernels::inferred(std::move(*table), devices);
}

/// Or the mistakes of all files.
Expected<std::vector<kernels::OperatorTable>> load_tables(const std::vector<std::string>& paths,
                                                          const std::vector<cluster::GpuType>& devices) {
  std::vector<kernels::OperatorTable> tables(paths.size());
  Diagnostics mistakes;
  for (std::size_t i = 0; i < paths.size(); ++i) take(load_table(paths[i], devices), tables[i], mistakes);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return tables;
}

ExitCode failed(const Context& context, const Diagnostics& why) { return report(context.terminal, context.json, why); }

std::optional<Diagnostics> wrong_files(const KernelsArguments& a, std::size_t least, std::size_t most,
                                       std::string_view what) {
  return wrong_file_count("kernels " + a.action, a.files.size(), least, most, what);
}

std::optional<Diagnostics> overwrites(const KernelsArguments& a) {
  std::vector<std::string> inputs = a.files;
  if (!a.onto.empty()) inputs.push_back(a.onto);
  return overwritten_input(a.output, inputs, "give the result a name of its own");
}

/// Writes the graph where -o says so, and prints it.
ExitCode finish_graph(const KernelsArguments& a, const Context& context, const kernels::KernelGraph& graph) {
  const nlohmann::ordered_json document = kernels::kernel_graph_json(graph);
  const std::string text = io::write_canonical(document);
  auto output = open_output(context, a.output);
  if (!output) return failed(context, output.error());
  if (const auto written = write_output(context, *output, text); !written) return failed(context, written.error());
  if (a.output == "-") return print_text(context, text);
  return print_result(context, graph_for_people(graph, context.terminal), document);
}

// Actions

Expected<kernels::KernelGraph> graph_of_ptx(const KernelsArguments& a) {
  std::vector<cluster::GpuType> devices;
  std::string text;
  std::string lines;
  Diagnostics mistakes;
  take(load_devices(a.catalogue), devices, mistakes);
  take(io::read_file(a.files.front()), text, mistakes);
  take(io::read_file(a.launches), lines, mistakes);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  const auto gpus = gpus_of(a.gpus, devices);
  if (!gpus) return fail(gpus.error());
  const auto module = ptx::parse(text, a.files.front());
  if (!module) return fail(module.error());
  const auto launches = ptx::read_launches(lines, a.launches);
  if (!launches) return fail(launches.error());
  const kernels::KernelCosts costs(kernels::shipped_tables());
  auto graph = kernels::graph_of_launches({&*module, 1}, *launches, a.launches, *gpus, costs);
  if (!graph) return graph;
  graph->sources = {{"ptx", a.files.front(), digest(text)}, {"launches", a.launches, digest(lines)}};
  return graph;
}

Expected<kernels::KernelGraph> graph_of_triton_log(const KernelsArguments& a, const kernels::RecordingFile& file) {
  const auto devices = load_devices(a.catalogue);
  if (!devices) return fail(devices.error());
  const auto gpus = gpus_of(a.gpus, *devices);
  if (!gpus) return fail(gpus.error());
  const auto log = ptx::read_triton_log(file.text, file.name);
  if (!log) return fail(log.error());
  const kernels::KernelCosts costs(kernels::shipped_tables());
  auto graph = kernels::graph_of_launches(log->modules, log->launches, file.name, *gpus, costs);
  if (graph) graph->sources = {{"triton_log", file.name, digest(file.text)}};
  return graph;
}

/// Of PTX with --launch, or of a log of Triton, which has both.
ExitCode import_ptx(const KernelsArguments& a, const Context& context, const kernels::RecordingFile* log = nullptr) {
  if (const auto wrong = wrong_files(a, 1, 1, "one file of PTX where there is --launch")) {
    return failed(context, *wrong);
  }
  if (!a.onto.empty()) {
    return failed(context,
                  usage_mistake("extra-option", "kernels import of PTX takes no --onto",
                                "its launches have no measured times: import PTX first, then a recording of the "
                                "same step --onto that graph"));
  }
  if (const auto wrong = overwrites(a)) return failed(context, *wrong);
  if (a.gpus.empty()) {
    return failed(context, usage_mistake("missing-option", "kernels import of PTX needs --gpu NAME",
                                         "the GPU types to plan for; tangram gpus lists them"));
  }
  const auto graph = log == nullptr ? graph_of_ptx(a) : graph_of_triton_log(a, *log);
  if (!graph) return failed(context, graph.error());
  return finish_graph(a, context, *graph);
}

ExitCode run_import(const KernelsArguments& a, const Context& context) {
  if (!a.launches.empty()) return import_ptx(a, context);
  if (const auto wrong = wrong_files(a, 1, 2, "one recording, or a Kineto trace and an execution trace")) {
    return failed(context, *wrong);
  }
  if (const auto wrong = overwrites(a)) return failed(context, *wrong);
  std::vector<cluster::GpuType> devices;
  std::vector<kernels::RecordingFile> files;
  std::optional<KernelGraphFile> onto;
  Diagnostics mistakes;
  take(load_devices(a.catalogue), devices, mistakes);
  for (const std::string& path : a.files) {
    std::string text;
    take(io::read_file(path), text, mistakes);
    files.push_back({path, std::move(text)});
  }
  if (files.size() == 1 && ptx::is_triton_log(files.front().text)) return import_ptx(a, context, &files.front());
  if (a.gpus.size() > 1) {
    return failed(context, usage_mistake("extra-value", "kernels import takes one --gpu", "a recording is of one GPU"));
  }
  if (!a.onto.empty()) take(load_kernel_graph(a.onto), onto, mistakes);
  if (!mistakes.empty()) return failed(context, mistakes);
  auto recording = kernels::import_recording(files, a.gpus.empty() ? "" : a.gpus.front(), devices);
  if (!recording) return failed(context, recording.error());
  if (!onto) {
    for (const std::string& note : recording->notes) context.terminal.note(note);
    return finish_graph(a, context, recording->graph);
  }
  const auto both = kernels::aligned(onto->graph, recording->graph);
  if (!both) return failed(context, both.error());
  return finish_graph(a, context, *both);
}

ExitCode run_show(const KernelsArguments& a, const Context& context) {
  if (const auto wrong = wrong_files(a, 1, 1, "one GRAPH")) return failed(context, *wrong);
  const auto file = load_kernel_graph(a.files.front());
  if (!file) return failed(context, file.error());
  return print_result(context, graph_for_people(file->graph, context.terminal),
                      kernels::kernel_graph_json(file->graph));
}

ExitCode run_check(const KernelsArguments& a, const Context& context) {
  if (const auto wrong = wrong_files(a, 1, 1, "one GRAPH")) return failed(context, *wrong);
  const auto file = load_kernel_graph(a.files.front());
  if (!file) return failed(context, file.error());
  const auto findings = kernels::check(file->graph);
  const auto document = findings_document(file->graph, findings);
  const bool ok = document["status"] == "ok";
  return print_result(context, findings_for_people(file->graph, findings, context.terminal), document,
                      ok ? ExitCode::kOk : ExitCode::kInfeasible);
}

/// What --phase, --requests and --context say.
Expected<std::vector<kernels::PhaseLoad>> loads_of(const KernelsArguments& a) {
  std::vector<kernels::PhaseLoad> loads;
  const std::vector<std::string> phases = a.phases.empty() ? std::vector<std::string>{"decode"} : a.phases;
  for (const std::string& phase : phases) {
    if (phase != "prefill" && phase != "decode") {
      return fail(usage_mistake("unknown-value", fmt::format("--phase {}: no such phase", phase),
                                suggestion(phase, {"prefill", "decode"}, "prefill or decode")));
    }
    const auto kind = phase == "prefill" ? kernels::PhaseKind::kPrefill : kernels::PhaseKind::kDecode;
    loads.push_back({kind, a.requests, a.context});
  }
  return loads;
}

ExitCode run_synth(const KernelsArguments& a, const Context& context) {
  if (const auto wrong = wrong_files(a, 1, 1, "one MODEL")) return failed(context, *wrong);
  if (const auto wrong = overwrites(a)) return failed(context, *wrong);
  if (a.gpus.empty()) {
    return failed(context,
                  usage_mistake("missing-option", "kernels synth needs --gpu NAME", "tangram gpus lists them"));
  }
  const auto loads = loads_of(a);
  if (!loads) return failed(context, loads.error());
  std::vector<cluster::GpuType> devices;
  std::optional<model::Model> model;
  Diagnostics mistakes;
  take(load_devices(a.catalogue), devices, mistakes);
  take(load_model(a.files.front()), model, mistakes);
  if (!mistakes.empty()) return failed(context, mistakes);
  const auto gpus = gpus_of(a.gpus, devices);
  if (!gpus) return failed(context, gpus.error());
  auto tables = load_tables(a.times, devices);
  if (!tables) return failed(context, tables.error());
  const auto& shipped = kernels::shipped_tables();
  tables->insert(tables->end(), shipped.begin(), shipped.end());
  const auto graph = kernels::synthesize(*model, *loads, *gpus, kernels::KernelCosts(std::move(*tables)));
  if (!graph) return failed(context, graph.error());
  return finish_graph(a, context, *graph);
}

ExitCode run_accuracy(const KernelsArguments& a, const Context& context) {
  if (const auto wrong = overwrites(a)) return failed(context, *wrong);
  if (!a.output.empty() && a.files.size() != 1) {
    return failed(context, usage_mistake("missing-argument", "kernels accuracy -o needs one FILE of operator times"));
  }
  const auto devices = load_devices(a.catalogue);
  if (!devices) return failed(context, devices.error());
  auto tables = a.files.empty() ? kernels::shipped_tables() : load_tables(a.files, *devices);
  if (!tables) return failed(context, tables.error());
  std::vector<kernels::HeldOut> lines;
  for (kernels::OperatorTable& table : *tables) {
    auto fresh = kernels::inferred(std::move(table), *devices);
    if (!fresh) return failed(context, fresh.error());
    table = std::move(*fresh);
    const auto more = kernels::held_out(table, *devices);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  auto output = open_output(context, a.output);
  if (!output) return failed(context, output.error());
  const std::string text = a.output.empty() ? "" : io::write_canonical(kernels::operator_table_json(tables->front()));
  if (const auto written = write_output(context, *output, text); !written) return failed(context, written.error());
  if (a.output == "-") return print_text(context, text);
  return print_result(context, held_out_for_people(lines, context.terminal), held_out_document(lines));
}

ExitCode run_analyze(const KernelsArguments& a, const Context& context) {
  if (const auto wrong = wrong_files(a, 1, 1, "one file of PTX")) return failed(context, *wrong);
  return analyze_kernels({a.files.front(), a.launches, a.explain}, context);
}

struct KernelsAction {
  std::string name;
  ExitCode (*run)(const KernelsArguments&, const Context&);
};

const std::vector<KernelsAction>& kernels_actions() {
  static const std::vector<KernelsAction> actions{{"import", run_import},     {"show", run_show},
                                                  {"check", run_check},       {"synth", run_synth},
                                                  {"accuracy", run_accuracy}, {"analyze", run_analyze}};
  return actions;
}

ExitCode run_kernels(const KernelsArguments& a, const Context& context) {
  const auto action = std::ranges::find(kernels_actions(), a.action, &KernelsAction::name);
  if (action != kernels_actions().end()) return action->run(a, context);
  return failed(context, unknown_action("kernels", a.action, names_of(kernels_actions())));
}

}  // namespace

Command kernels_command() {
  return {.name = "kernels",
          .usage = "import|show|check|synth|accuracy|analyze FILE...",
          .summary = "kernel graphs of inference: recorded, or made of a model",
          .examples = R"(  tangram kernels synth llama-3-8b --phase decode --requests 32 \
    --context 2048 --gpu A100-80GB-SXM,L40S -o kernels.json
  tangram kernels import trace.json execution.json --gpu L40S -o l40s.json
  tangram kernels import a100.json --gpu A100-80 --onto l40s.json -o both.json
  tangram kernels import k.ptx --launch launches.jsonl --gpu A100-80,L40S
  tangram kernels import triton.ndjson --gpu A100-80,L40S
  tangram kernels show kernels.json
  tangram kernels check kernels.json
  tangram kernels analyze kernel.ptx --launch launches.jsonl --explain
)",
          .details = R"(A kernel graph lists the kernels of one inference step, the bytes of the
buffers that each reads and writes, and how long it takes on each GPU.

import reads what a run recorded: a Kineto trace of PyTorch, with the execution
trace of the same run where there is one; a dump of a CUDA graph; tables of nsys
or ncu. Of PTX and --launch, or of a log of Triton (tritonparse), it makes a
graph of what the analysis of each launch finds, with times by the roofline.
--onto adds the times of another GPU to a graph: kernels are matched by the
operators that launch them, and the first difference is an error. PTX takes no
--onto: its launches have no measured times.

synth makes the graph of a model file. Times are measured rows of operators
where there are any, interpolated between rows else, and the roofline's last;
each carries its error, which accuracy shows from rows held out. --times adds
tables of your own; accuracy FILE -o writes one with what follows from its rows.

analyze says what each kernel of a PTX file reads, writes or updates (by atomic
operations), and whether offsets depend on data. A kernel is pinned where that
cannot be known, as with pointers loaded from memory; the reasons name the
lines. With --launch also the bytes of each buffer that a launch touches: exact,
or clipped to what is certain. A line of LAUNCHES is one launch, such as
  {"entry": "add", "grid": [4, 1, 1], "block": [256, 1, 1],
   "arguments": [{"buffer": "x", "bytes": 4096, "offset": 0}, {"value": 1000}]}
with no break between. Accesses stay within the allocation that their pointer
points into, as C++ has it. A launch of a kernel that the PTX lacks, but whose
name is that of a library's (ampere_sgemm_128x64_tn), is known by signature.

show lists a graph, check looks for cycles, missing times and what cannot be
placed freely. --json prints the graph itself, the same bytes that -o writes.

Manual: tangram help kernel-graphs
)",
          .bind = bound<KernelsArguments>(parameters_of, run_kernels)};
}

}  // namespace tangram::app
