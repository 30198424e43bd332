#include <fmt/format.h>

#include "command.hpp"
#include "kernels_analyze.hpp"

namespace tangram::app {

namespace {

constexpr auto kAnalyze = "analyze";

struct KernelsArguments {
  std::string action;
  AnalyzeOptions analyze;
};

Parameters parameters_of(KernelsArguments& a) {
  return {{{"ACTION", "analyze", &a.action, true, {kAnalyze}}, {"FILE", "PTX", &a.analyze.file}},
          {{"launch", "LAUNCHES", "JSON lines: which bytes each of these launches touches", &a.analyze.launches},
           {"explain", "", "every access, and why what is not known is not", &a.analyze.explain}}};
}

ExitCode run_kernels(const KernelsArguments& arguments, const Context& context) {
  if (arguments.action == kAnalyze) return analyze_kernels(arguments.analyze, context);
  return report(context.terminal, context.json,
                usage_mistake("unknown-action", fmt::format("kernels has no action \"{}\"", arguments.action),
                              suggestion(arguments.action, {kAnalyze}, "actions: analyze")));
}

}  // namespace

Command kernels_command() {
  return {.name = "kernels",
          .usage = "analyze FILE",
          .summary = "say what kernels read and write, from their PTX",
          .examples = R"(  tangram kernels analyze kernel.ptx
  tangram kernels analyze kernel.ptx --launch launches.jsonl --explain
)",
          .details = R"(Says for each pointer parameter of each kernel whether what it points to is read,
written or updated (by atomic operations), and whether offsets depend on data.
A kernel is pinned where that cannot be known, as with pointers loaded from
memory; the reasons name the lines. Nothing is run, and no GPU is needed.

With --launch also the bytes of each buffer that a launch touches: exact, or
clipped to what is certain. A line of LAUNCHES is one launch, such as
  {"entry": "add", "grid": [4, 1, 1], "block": [256, 1, 1],
   "arguments": [{"buffer": "x", "bytes": 4096, "offset": 0}, {"value": 1000}]}
with no break between. Accesses stay within the allocation that their pointer
points into, as C++ has it.
)",
          .bind = bound<KernelsArguments>(parameters_of, run_kernels)};
}

}  // namespace tangram::app
