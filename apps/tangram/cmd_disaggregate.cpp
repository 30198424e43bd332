#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "disaggregation_view.hpp"
#include "inputs.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/disaggregate/bind.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/kernels/document.hpp"

namespace tangram::app {

namespace {

struct DisaggregateArguments {
  std::string action;
  std::string fleet;
  std::vector<std::string> graphs;
  std::string objective = "throughput";
  std::int64_t in_flight = 2;
  std::int64_t requests = 0;  ///< compare: in memory at most; 0: what memory holds
  std::int64_t generated = 256;
  std::int64_t token_ms = 0;  ///< compare: at most; 0: any
  std::int64_t message_us = 5;
  std::int64_t message_gpu_us = 2;
  std::string output;  ///< empty: not written
};

Parameters parameters_of(DisaggregateArguments& a) {
  return {{{"ACTION", "plan, compare or simulate", &a.action},
           {"CLUSTER", "the GPUs there are", &a.fleet},
           {"GRAPH", "kernel graphs; compare takes one for each size of micro-batches", &a.graphs}},
          {{"objective", "WHAT", "plan: throughput (default) or latency", &a.objective, {"throughput", "latency"}},
           {"in-flight", "N", "micro-batches under way for each GPU, at most (default: 2)", &a.in_flight},
           {"requests", "N", "compare: requests in memory, the same for all arms (default: what fits)", &a.requests},
           {"generated", "TOKENS", "tokens that a request generates, in the mean (default: 256)", &a.generated},
           {"token-ms", "N", "compare: milliseconds from token to token, at most", &a.token_ms},
           {"message-us", "N", "microseconds of a link for each message beside its bytes (default: 5)", &a.message_us},
           {"message-gpu-us", "N", "microseconds of both GPUs for each message (default: 2)", &a.message_gpu_us},
           output_option("FILE", "plan: write the placement to FILE", a.output)}};
}

ExitCode failed(const Context& context, const Diagnostics& why) { return report(context.terminal, context.json, why); }

/// The inputs of all actions.
struct Inputs {
  cluster::Fleet fleet;
  std::vector<std::string> digests;  ///< of the graphs
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
                            positive("message-us", a.message_us, 0), positive("message-gpu-us", a.message_gpu_us, 0)}) {
    if (wrong) return wrong;
  }
  if (a.objective == "throughput" || a.objective == "latency") return std::nullopt;
  return usage_mistake("unknown-value", fmt::format("--objective {}: no such objective", a.objective),
                       suggestion(a.objective, {"throughput", "latency"}, "throughput or latency"));
}

Expected<Inputs> load_inputs(const DisaggregateArguments& a, const Context& context) {
  Inputs inputs;
  Diagnostics mistakes;
  take(load_fleet(a.fleet, context.edits), inputs.fleet, mistakes);
  std::vector<kernels::KernelGraph> graphs;
  for (const std::string& path : a.graphs) {
    auto text = io::read_file(path);
    if (!text) {
      mistakes.insert(mistakes.end(), text.error().begin(), text.error().end());
      continue;
    }
    inputs.digests.push_back(digest(*text));
    kernels::KernelGraph graph;
    take(kernels::read_kernel_graph(std::move(*text), path), graph, mistakes);
    graphs.push_back(std::move(graph));
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  const disaggregate::Deployment deployment{static_cast<int>(a.in_flight), static_cast<double>(a.generated),
                                            static_cast<double>(a.message_us) * 1e-6,
                                            static_cast<double>(a.message_gpu_us) * 1e-6};
  for (const kernels::KernelGraph& graph : graphs) {
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
  if (result.found.solution.found) return result;
  return fail(problem(ErrorKind::kInfeasible, "memory", "the GPUs' memory suffices for no placement of the kernels",
                      "fewer requests, fewer --in-flight, or more GPUs (--add)"));
}

std::optional<Diagnostics> more_than_one(const DisaggregateArguments& a) {
  if (a.graphs.size() == 1) return std::nullopt;
  return usage_mistake("extra-argument", fmt::format("disaggregate {} takes one GRAPH", a.action),
                       "compare takes several, one for each size of micro-batches");
}

ExitCode run_plan(const DisaggregateArguments& a, const Context& context, const Inputs& inputs) {
  if (const auto wrong = more_than_one(a)) return failed(context, *wrong);
  auto output = open_output(context, a.output);
  if (!output) return failed(context, output.error());
  const auto plan = placed(a, inputs);
  if (!plan) return failed(context, plan.error());
  const nlohmann::ordered_json document = placement_document(*plan);
  const std::string text = io::write_canonical(document);
  if (const auto written = write_output(context, *output, text); !written) return failed(context, written.error());
  if (a.output == "-") return print_text(context, text);
  return print_result(context, placement_for_people(*plan, context.terminal), document);
}

ExitCode run_compare(const DisaggregateArguments& a, const Context& context, const Inputs& inputs) {
  disaggregate::Terms terms;
  terms.most_requests = static_cast<int>(a.requests);
  if (a.token_ms > 0) terms.token_seconds = static_cast<double>(a.token_ms) * 1e-3;
  terms.in_flight.clear();
  const int each = disaggregate::most_gpus(inputs.batches.front().problem);
  for (int m = 1; m <= a.in_flight; ++m) terms.in_flight.push_back(m * each);
  const disaggregate::Comparison comparison = disaggregate::compare(inputs.batches, terms);
  const bool fits = comparison.decision.rule != disaggregate::Rule::kNothingFits;
  return print_result(context, comparison_for_people(comparison, context.terminal), comparison_document(comparison),
                      fits ? ExitCode::kOk : ExitCode::kInfeasible);
}

ExitCode run_simulate(const DisaggregateArguments& a, const Context& context, const Inputs& inputs) {
  if (const auto wrong = more_than_one(a)) return failed(context, *wrong);
  const auto plan = placed(a, inputs);
  if (!plan) return failed(context, plan.error());
  std::vector<InFlight> rows;
  const disaggregate::Placement& placement = plan->found.solution.placement;
  for (const int each : {1, 2, 3, 4, 6, 8}) {
    const int in_flight = each * disaggregate::most_gpus(plan->problem);
    const disaggregate::Problem problem = disaggregate::with_in_flight(plan->problem, in_flight);
    const double period = disaggregate::usage_of(problem, placement).period;
    const double simulated = disaggregate::simulated_period(problem, {{1, placement}}, 200);
    rows.push_back({in_flight, period, std::max(period, simulated)});
  }
  return print_result(context, in_flight_for_people(rows, plan->requests, context.terminal),
                      in_flight_document(rows, plan->requests));
}

struct DisaggregateAction {
  std::string name;
  ExitCode (*run)(const DisaggregateArguments&, const Context&, const Inputs&);
};

const std::vector<DisaggregateAction>& disaggregate_actions() {
  static const std::vector<DisaggregateAction> actions{
      {"plan", run_plan}, {"compare", run_compare}, {"simulate", run_simulate}};
  return actions;
}

ExitCode run_disaggregate(const DisaggregateArguments& a, const Context& context) {
  const auto action = std::ranges::find(disaggregate_actions(), a.action, &DisaggregateAction::name);
  if (action == disaggregate_actions().end()) {
    return failed(context, unknown_action("disaggregate", a.action, names_of(disaggregate_actions())));
  }
  if (const auto wrong = wrong_numbers(a)) return failed(context, *wrong);
  const auto inputs = load_inputs(a, context);
  if (!inputs) return failed(context, inputs.error());
  return action->run(a, context, *inputs);
}

}  // namespace

Command disaggregate_command() {
  return {.name = "disaggregate",
          .usage = "plan|compare|simulate CLUSTER GRAPH...",
          .summary = "place the kernels of an inference step on mixed GPUs",
          .examples = R"(  tangram kernels synth llama-3-8b --phase decode --requests 32 \
    --context 2048 --gpu A100-80GB-SXM,L40S -o decode.json
  tangram disaggregate compare cluster.json decode.json
  tangram disaggregate plan cluster.json decode.json -o placement.json
  tangram disaggregate simulate cluster.json decode.json
)",
          .details = R"(GRAPH lists the kernels of a step with their times on every GPU type of the
fleet: tangram kernels makes it of a model or of a recording.

compare is the place to begin: one GPU, replicas, a split by layers, by prefill
and decode, by attention and feed-forward, and by single kernels, each with what
no plan of its kind exceeds, what errors of the times leave of it, and its rate
in a simulation; then which to run, and which rule decided. Of several graphs,
each of another number of requests, every arm takes what suits it best.

plan places the kernels, prints how far that may be from the best, and writes
tangram.disaggregation/1. simulate shows what micro-batches in flight make of
the placement.

Manual: tangram help disaggregation
)",
          .bind = bound<DisaggregateArguments>(parameters_of, run_disaggregate),
          .edits_fleet = true};
}

}  // namespace tangram::app
