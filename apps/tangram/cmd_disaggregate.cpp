#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "disaggregate_accuracy.hpp"
#include "disaggregate_adapt.hpp"
#include "disaggregate_serve.hpp"
#include "disaggregate_verify.hpp"
#include "disaggregation_page.hpp"
#include "disaggregation_view.hpp"
#include "export_files.hpp"
#include "inputs.hpp"
#include "page_output.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/disaggregate/adapt.hpp"
#include "tangram/disaggregate/bind.hpp"
#include "tangram/disaggregate/dispatched.hpp"
#include "tangram/dispatch/timeline.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::app {

namespace {

struct DisaggregateArguments {
  std::string action;
  std::vector<std::string> files;  ///< CLUSTER and graphs, or a schedule
  std::string objective = "throughput";
  std::int64_t in_flight = 2;
  std::int64_t requests = 0;  ///< compare: in memory at most; 0: what memory holds
  std::int64_t generated = 256;
  std::int64_t token_ms = 0;  ///< compare: at most; 0: any
  std::int64_t message_us = 5;
  std::int64_t message_gpu_us = 2;
  std::string ptx;       ///< verify; empty: none
  std::string launches;  ///< of the PTX
  std::string arrivals;  ///< adapt; empty: generated
  std::int64_t rate = 2;
  std::int64_t seed = 1;
  std::int64_t timings = 50;
  std::int64_t passes = 2;
  std::string to;      ///< compare; empty: nothing is written
  std::string arm;     ///< of --to; empty: the recommended one
  std::string output;  ///< empty: not written
  std::string html;    ///< empty: not written
};

Parameters parameters_of(DisaggregateArguments& a) {
  return {{{"ACTION", "plan, compare, simulate, verify, adapt or accuracy", &a.action},
           {"FILE", "the GPUs there are and kernel graphs, a schedule that plan wrote, or measurements", &a.files}},
          {{"objective", "WHAT", "plan: throughput (default) or latency", &a.objective, {"throughput", "latency"}},
           {"in-flight", "N", "micro-batches under way for each GPU, at most (default: 2)", &a.in_flight},
           {"requests", "N", "compare: requests in memory, the same for all arms (default: what fits)", &a.requests},
           {"generated", "TOKENS", "tokens that a request generates, in the mean (default: 256)", &a.generated},
           {"token-ms", "N", "compare: milliseconds from token to token, at most", &a.token_ms},
           {"message-us", "N", "microseconds of a link for each message beside its bytes (default: 5)", &a.message_us},
           {"message-gpu-us", "N", "microseconds of both GPUs for each message (default: 2)", &a.message_gpu_us},
           {"ptx", "FILE", "verify: the PTX of the graph's kernels, which is run", &a.ptx},
           {"launch", "LAUNCHES", "verify: JSON lines, how each kernel of the graph launches it", &a.launches},
           {"arrivals", "FILE", "adapt: lines of milliseconds, prompt and generated tokens", &a.arrivals},
           {"rate", "N", "adapt: requests a second, at random, without --arrivals (default: 2)", &a.rate},
           {"seed", "N", "of what is at random: timings, contents, arrivals, noise (default: 1)", &a.seed},
           {"timings", "N", "verify: orders in which streams run (default: 50)", &a.timings},
           {"passes", "N", "verify: passes of the last phase, one after the other (default: 2)", &a.passes},
           {"to", "FORMAT", "compare: write what starts the recommended arm: vllm", &a.to, {"vllm"}},
           {"arm", "NAME", "compare: write this arm instead", &a.arm},
           output_option("FILE", "plan: write the schedule to FILE; compare --to: folder to create", a.output),
           html_option("simulate: write a page for browsers to FILE", a.html)}};
}

ExitCode failed(const Context& context, const Diagnostics& why) { return report(context.terminal, context.json, why); }

/// The inputs of all actions.
struct Inputs {
  cluster::Fleet fleet;
  std::vector<std::string> digests;  ///< of the graphs
  std::vector<kernels::KernelGraph> graphs;
  std::vector<disaggregate::Batch> batches;
};

std::optional<Diagnostics> wrong_numbers(const DisaggregateArguments& a) {
  const auto positive = [](std::string_view option, std::int64_t value,
                           std::int64_t least) -> std::optional<Diagnostics> {
    if (value >= least) return std::nullopt;
    return usage_mistake("bad-value", fmt::format("--{} {}: at least {} is needed", option, value, least));
  };
  for (const auto& wrong : {positive("in-flight", a.in_flight, 1), positive("requests", a.requests, 0),
                            positive("generated", a.generated, 1), positive("token-ms", a.token_ms, 0),
                            positive("message-us", a.message_us, 0), positive("message-gpu-us", a.message_gpu_us, 0),
                            positive("seed", a.seed, 0), positive("timings", a.timings, 1),
                            positive("passes", a.passes, 1), positive("rate", a.rate, 1)}) {
    if (wrong) return wrong;
  }
  if (a.objective == "throughput" || a.objective == "latency") return std::nullopt;
  return usage_mistake("unknown-value", fmt::format("--objective {}: no such objective", a.objective),
                       suggestion(a.objective, {"throughput", "latency"}, "throughput or latency"));
}

Expected<Inputs> load_inputs(const DisaggregateArguments& a, const Context& context) {
  Inputs inputs;
  Diagnostics mistakes;
  take(load_fleet(a.files.front(), context.edits), inputs.fleet, mistakes);
  for (std::size_t i = 1; i < a.files.size(); ++i) {
    KernelGraphFile file;
    take(load_kernel_graph(a.files[i]), file, mistakes);
    inputs.digests.push_back(std::move(file.digest));
    inputs.graphs.push_back(std::move(file.graph));
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  const disaggregate::Deployment deployment{static_cast<int>(a.in_flight), static_cast<double>(a.generated),
                                            static_cast<double>(a.message_us) * 1e-6,
                                            static_cast<double>(a.message_gpu_us) * 1e-6};
  for (const kernels::KernelGraph& graph : inputs.graphs) {
    auto problem = disaggregate::problem_of(inputs.fleet, graph, deployment);
    if (!problem) return fail(std::move(problem.error()));
    inputs.batches.push_back({disaggregate::requests_of(graph), std::move(*problem)});
  }
  return inputs;
}

Expected<PlacedKernels> placed(const DisaggregateArguments& a, const Inputs& inputs) {
  PlacedKernels result;
  result.fleet = inputs.fleet.name;
  result.fleet_digest = inputs.fleet.digest;
  result.graphs = inputs.digests;
  result.requests = inputs.batches.front().requests;
  result.problem = inputs.batches.front().problem;
  if (a.objective == "latency") {
    result.objective = disaggregate::Objective::kLatency;
    result.found.solution = disaggregate::solve(result.problem, result.objective);
    if (result.found.solution.found) {
      result.found.simulated = disaggregate::simulated_period(result.problem, {{1, result.found.solution.placement}});
    }
  } else {
    result.found = disaggregate::solve_simulated(result.problem);
  }
  if (result.found.solution.found) {
    const disaggregate::Placement& placement = result.found.solution.placement;
    result.schedule = disaggregate::dispatched(result.problem, placement, inputs.graphs.front());
    return result;
  }
  return fail(problem(ErrorKind::kInfeasible, "memory", "the GPUs' memory suffices for no placement of the kernels",
                      "fewer requests, fewer --in-flight, or more GPUs (--add)"));
}

constexpr std::size_t kAnyCount = 1000;  // of files

std::optional<Diagnostics> wrong_files(const DisaggregateArguments& a, std::size_t least, std::size_t most,
                                       std::string_view what) {
  return wrong_file_count("disaggregate " + a.action, a.files.size(), least, most, what);
}

ExitCode run_plan(const DisaggregateArguments& a, const Context& context) {
  if (const auto wrong = wrong_files(a, 2, 2, "CLUSTER and one GRAPH")) return failed(context, *wrong);
  const auto inputs = load_inputs(a, context);
  if (!inputs) return failed(context, inputs.error());
  auto output = open_output(context, a.output);
  if (!output) return failed(context, output.error());
  const auto plan = placed(a, *inputs);
  if (!plan) return failed(context, plan.error());
  const nlohmann::ordered_json document = placement_document(*plan);
  const std::string text = io::write_canonical(document);
  if (const auto written = write_output(context, *output, text); !written) return failed(context, written.error());
  if (a.output == "-") return print_text(context, text);
  return print_result(context, placement_for_people(*plan, context.terminal), document);
}

std::optional<Diagnostics> wrong_format(const DisaggregateArguments& a) {
  if (a.to.empty() && !a.arm.empty()) return usage_mistake("unused-option", "--arm is for --to");
  if (a.to.empty()) return std::nullopt;
  if (a.to != "vllm") {
    return usage_mistake("unknown-format", fmt::format("--to {}: no such format", a.to), "formats: vllm");
  }
  if (a.output.empty()) return usage_mistake("missing-argument", "--to vllm needs -o FOLDER");
  return std::nullopt;
}

/// Writes what starts the arm. What people are told of it; nothing where nothing was asked for.
Expected<std::string> serve(const DisaggregateArguments& a, const Context& context, const Inputs& inputs,
                            const disaggregate::Comparison& comparison) {
  if (a.to.empty()) return std::string();
  auto folder = context.signals.open_folder(a.output);
  if (!folder) return fail(std::move(folder.error()));
  const auto made = serving_files(inputs.fleet, inputs.batches.front().problem, comparison, a.arm);
  if (!made) return fail(made.error());
  if (const auto written = write_files(*made, *folder); !written) return fail(written.error());
  context.signals.release();
  return "\n" + files_for_people(a.output, *made);
}

ExitCode run_compare(const DisaggregateArguments& a, const Context& context) {
  if (const auto wrong = wrong_files(a, 2, kAnyCount, "CLUSTER and GRAPHs")) return failed(context, *wrong);
  if (const auto wrong = wrong_format(a)) return failed(context, *wrong);
  const auto inputs = load_inputs(a, context);
  if (!inputs) return failed(context, inputs.error());
  disaggregate::Terms terms;
  terms.most_requests = static_cast<int>(a.requests);
  if (a.token_ms > 0) terms.token_seconds = static_cast<double>(a.token_ms) * 1e-3;
  terms.in_flight.clear();
  const int each = disaggregate::most_gpus(inputs->batches.front().problem);
  for (int m = 1; m <= a.in_flight; ++m) terms.in_flight.push_back(m * each);
  const disaggregate::Comparison comparison = disaggregate::compare(inputs->batches, terms);
  const bool fits = comparison.decision.rule != disaggregate::Rule::kNothingFits;
  const auto written = fits ? serve(a, context, *inputs, comparison) : std::string();
  if (!written) return failed(context, written.error());
  return print_result(context, comparison_for_people(comparison, context.terminal) + *written,
                      comparison_document(comparison), fits ? ExitCode::kOk : ExitCode::kInfeasible);
}

/// That is read, or planned now.
Expected<dispatch::ScheduleFile> schedule_to_simulate(const DisaggregateArguments& a, const Context& context) {
  if (a.files.size() == 1) return load_schedule(a.files.front());
  const auto inputs = load_inputs(a, context);
  if (!inputs) return fail(inputs.error());
  auto plan = placed(a, *inputs);
  if (!plan) return fail(std::move(plan.error()));
  dispatch::ScheduleFile file;
  file.cluster = plan->fleet;
  file.requests = plan->requests;
  file.schedule = std::move(plan->schedule);
  return file;
}

ExitCode run_simulate(const DisaggregateArguments& a, const Context& context) {
  if (const auto wrong = wrong_files(a, 1, 2, "a SCHEDULE, or CLUSTER and one GRAPH")) return failed(context, *wrong);
  if (const auto wrong = page_complaint(context, a.html, "", a.files)) return failed(context, *wrong);
  const auto file = schedule_to_simulate(a, context);
  if (!file) return failed(context, file.error());
  auto html = open_output(context, a.html);
  if (!html) return failed(context, html.error());
  const int most = std::ranges::max_element(file->schedule.devices, {}, &dispatch::Device::count)->count;
  std::vector<InFlight> rows;
  for (const int each : {1, 2, 3, 4, 6, 8}) {
    constexpr int kRounds = 200;
    const dispatch::Periods periods = dispatch::periods_of(file->schedule, each * most, kRounds);
    rows.push_back({each * most, periods.allowed, periods.simulated});
  }
  const std::string page = a.html.empty() ? "" : schedule_page(*file, rows);
  if (const auto written = write_output(context, *html, page); !written) return failed(context, written.error());
  if (a.html == "-") return print_text(context, page);
  return print_result(context, in_flight_for_people(rows, file->requests, context.terminal),
                      in_flight_document(rows, file->requests));
}

ExitCode run_verify(const DisaggregateArguments& a, const Context& context) {
  if (const auto wrong = wrong_files(a, 2, 2, "a SCHEDULE and its GRAPH")) return failed(context, *wrong);
  if (a.ptx.empty() != a.launches.empty()) {
    return failed(context, usage_mistake("missing-option", "disaggregate verify needs --ptx and --launch, or neither"));
  }
  return verify_schedule({a.files[0], a.files[1], a.ptx, a.launches, a.seed, a.timings, a.passes}, context);
}

Expected<std::vector<disaggregate::Request>> arrivals_of(const DisaggregateArguments& a, const Inputs& inputs) {
  if (!a.arrivals.empty()) {
    const auto text = io::read_file(a.arrivals);
    if (!text) return fail(text.error());
    return disaggregate::read_arrivals(*text, a.arrivals);
  }
  constexpr int kGenerated = 1000;  // requests
  disaggregate::Request like;
  like.prompt = static_cast<int>(std::max<std::int64_t>(1, inputs.graphs.front().phases.front().context));
  like.generated = static_cast<int>(a.generated);
  return disaggregate::random_arrivals(kGenerated, static_cast<double>(a.rate), like,
                                       static_cast<std::uint64_t>(a.seed));
}

ExitCode run_adapt(const DisaggregateArguments& a, const Context& context) {
  if (const auto wrong = wrong_files(a, 2, kAnyCount, "CLUSTER and GRAPHs of prefill and decode")) {
    return failed(context, *wrong);
  }
  const auto inputs = load_inputs(a, context);
  if (!inputs) return failed(context, inputs.error());
  auto arrivals = arrivals_of(a, *inputs);
  if (!arrivals) return failed(context, arrivals.error());
  return adapt_to({*std::move(arrivals), inputs->graphs, inputs->batches, static_cast<std::uint64_t>(a.seed)}, context);
}

ExitCode run_accuracy(const DisaggregateArguments& a, const Context& context) {
  if (const auto wrong = wrong_files(a, 1, 1, "one file of MEASUREMENTS")) return failed(context, *wrong);
  return serving_accuracy(a.files.front(), context);
}

struct DisaggregateAction {
  std::string name;
  ExitCode (*run)(const DisaggregateArguments&, const Context&);
};

const std::vector<DisaggregateAction>& disaggregate_actions() {
  static const std::vector<DisaggregateAction> actions{{"plan", run_plan},         {"compare", run_compare},
                                                       {"simulate", run_simulate}, {"verify", run_verify},
                                                       {"adapt", run_adapt},       {"accuracy", run_accuracy}};
  return actions;
}

ExitCode run_disaggregate(const DisaggregateArguments& a, const Context& context) {
  const auto action = std::ranges::find(disaggregate_actions(), a.action, &DisaggregateAction::name);
  if (action == disaggregate_actions().end()) {
    return failed(context, unknown_action("disaggregate", a.action, names_of(disaggregate_actions())));
  }
  if (const auto wrong = wrong_numbers(a)) return failed(context, *wrong);
  if (!a.html.empty() && a.action != "simulate") {
    return failed(context, usage_mistake("wrong-option", fmt::format("disaggregate {} has no --html", a.action),
                                         "disaggregate simulate draws a schedule"));
  }
  return action->run(a, context);
}

}  // namespace

Command disaggregate_command() {
  return {.name = "disaggregate",
          .usage = "plan|compare|simulate|verify|adapt|accuracy FILE...",
          .summary = "place the kernels of an inference step on mixed GPUs",
          .examples = R"(  tangram kernels synth llama-3-8b --phase decode --requests 32 \
    --context 2048 --gpu A100-80GB-SXM,L40S -o decode.json
  tangram disaggregate compare cluster.json decode.json
  tangram disaggregate compare cluster.json decode.json --to vllm -o serve
  tangram disaggregate plan cluster.json decode.json -o placement.json
  tangram disaggregate simulate placement.json --html placement.html
  tangram disaggregate verify placement.json decode.json
  tangram disaggregate adapt cluster.json prefill.json d1.json d32.json --rate 4
  tangram disaggregate accuracy measured.json
)",
          .details = R"(GRAPH lists the kernels of a step with their times on every GPU type of the
fleet: tangram kernels makes it of a model or of a recording.

compare is the place to begin: one GPU, replicas, a split by layers, by prefill
and decode, by attention and feed-forward, and by single kernels, each with what
no plan of its kind exceeds, what errors of the times leave of it, and its rate
in a simulation; then which to run, and which rule decided. Of several graphs,
each of another number of requests, every arm takes what suits it best. --to
vllm writes scripts that start the recommended arm, or --arm, as servers of
vLLM: one GPU, replicas behind nginx, or prefill and decode apart; other arms
have no engine that runs them.

plan places the kernels, prints how far that may be from the best, and writes
tangram.disaggregation/1: segments of each GPU's streams, copies, waits.
simulate shows what micro-batches in flight make of that file, or of what plan
finds for CLUSTER GRAPH; --html draws streams and links on a page.

verify runs the file on emulated GPUs with memory of their own, in orders at
random: every kernel must read what it reads on one GPU. What is missing is
named: kernel, bytes, GPUs. With --ptx the kernels themselves are run, and every
byte that they write is compared.

adapt serves arrivals by two GPU types: one alone, replicas, prefill and decode
apart, or by turns as a monitor of the queue says; then what an oracle could
gain, and what re-balancing recovers of a plan whose times are wrong.

accuracy holds predictions against what was measured of such splits: tokens a
second, and how many times those of one GPU.

Manual: tangram help disaggregation
)",
          .bind = bound<DisaggregateArguments>(parameters_of, run_disaggregate),
          .edits_fleet = true};
}

}  // namespace tangram::app
