#include "disaggregate_verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "inputs.hpp"
#include "table.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/dispatch/emulate.hpp"
#include "tangram/io/file.hpp"
#include "tangram/kernels/unroll.hpp"
#include "tangram/ptx/parse.hpp"
#include "words.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

struct Verified {
  kernels::KernelGraph graph;  ///< with repeats written out
  dispatch::Schedule schedule;
  dispatch::Emulation result;
  bool has_code = false;
};

Expected<std::optional<dispatch::Code>> code_for(const VerifySchedule& what, const kernels::KernelGraph& graph) {
  if (what.ptx.empty()) return std::optional<dispatch::Code>();
  const auto text = io::read_file(what.ptx);
  if (!text) return fail(text.error());
  auto module = ptx::parse(*text, what.ptx);
  if (!module) return fail(std::move(module.error()));
  const auto launches = io::read_file(what.launches);
  if (!launches) return fail(launches.error());
  auto code = dispatch::code_of(graph, *std::move(module), *launches, what.launches);
  if (!code) return fail(std::move(code.error()));
  return std::optional(*std::move(code));
}

Expected<Verified> verified(const VerifySchedule& what) {
  Verified done;
  auto planned = load_schedule(what.schedule);
  if (!planned) return fail(std::move(planned.error()));
  done.schedule = std::move(planned->schedule);
  const auto file = load_kernel_graph(what.graph);
  if (!file) return fail(file.error());
  if (std::ranges::find(planned->graphs, file->digest) == planned->graphs.end()) {
    return fail(problem(ErrorKind::kInput, "other-graph",
                        fmt::format("{} is not the graph that {} was made of", what.graph, what.schedule),
                        "its digest differs: plan again, or name the graph that was planned"));
  }
  done.graph = kernels::unrolled(file->graph);
  if (auto same = dispatch::check_against(done.graph, done.schedule, what.schedule); !same) {
    return fail(std::move(same.error()));
  }
  const auto code = code_for(what, done.graph);
  if (!code) return fail(code.error());
  dispatch::EmulationOptions options;
  options.seed = static_cast<std::uint64_t>(what.seed);
  options.timings = static_cast<int>(what.timings);
  options.passes = static_cast<int>(what.passes);
  options.code = *code ? &**code : nullptr;
  done.has_code = code->has_value();
  auto result = dispatch::emulate(done.graph, done.schedule, options);
  if (!result) return fail(std::move(result.error()));
  done.result = *std::move(result);
  return done;
}

std::size_t waits_of(const dispatch::Schedule& schedule) {
  std::size_t sum = 0;
  for (const dispatch::Segment& segment : schedule.segments) sum += segment.waits.size();
  return sum;
}

std::string verified_for_people(const Verified& done, const Terminal& terminal) {
  std::string out;
  const auto line = [&](std::string_view label, const std::string& text) { out += labelled(terminal, label, text); };
  const dispatch::Emulation& result = done.result;
  line(
      "schedule",
      fmt::format("{} kernels on {}, {}, {}, {}", thousands(done.graph.kernel_count()),
                  counted(static_cast<int>(done.schedule.devices.size()), "GPU type"),
                  counted(static_cast<int>(done.schedule.segments.size()), "segment"),
                  counted(static_cast<int>(waits_of(done.schedule)), "wait"),
                  done.schedule.copies.size() == 1 ? "1 copy" : fmt::format("{} copies", done.schedule.copies.size())));
  line("run", fmt::format("{} at random, {} of kernels{}", counted(result.timings, "timing"),
                          counted(static_cast<int>(result.kernels), "run"),
                          done.has_code ? fmt::format(", {} bytes compared", thousands(result.bytes_compared)) : ""));
  if (!result.finding) {
    line("result", done.has_code ? "every kernel computes the bytes that it computes on one GPU"
                                 : "every kernel reads what it reads on one GPU");
    return out;
  }
  line("result", fmt::format("{}, in timing {}", to_string(result.finding->fault), result.finding->timing));
  line("because", result.finding->message);
  return out;
}

Json verified_document(const Verified& done) {
  const dispatch::Emulation& result = done.result;
  Json document{{"schema", "tangram.disaggregation_verification/1"},
                {"status", result.finding ? "wrong" : "equal"},
                {"kernels", done.graph.kernel_count()},
                {"segments", done.schedule.segments.size()},
                {"waits", waits_of(done.schedule)},
                {"copies", done.schedule.copies.size()},
                {"ptx", done.has_code},
                {"timings", result.timings},
                {"runs", result.kernels},
                {"bytes_compared", result.bytes_compared}};
  if (result.finding) {
    const dispatch::Finding& finding = *result.finding;
    document["finding"] = {{"fault", to_string(finding.fault)},
                           {"kernel", finding.kernel},
                           {"other", finding.other},
                           {"buffer", finding.buffer},
                           {"offset", finding.offset},
                           {"bytes", finding.bytes},
                           {"gpu", finding.device},
                           {"from_gpu", finding.from_device},
                           {"timing", finding.timing},
                           {"message", finding.message}};
  }
  return document;
}

}  // namespace

ExitCode verify_schedule(const VerifySchedule& what, const Context& context) {
  const auto done = verified(what);
  if (!done) return report(context.terminal, context.json, done.error());
  return print_result(context, verified_for_people(*done, context.terminal), verified_document(*done),
                      done->result.finding ? ExitCode::kInfeasible : ExitCode::kOk);
}

}  // namespace tangram::app
