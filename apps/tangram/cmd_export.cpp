#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "export_files.hpp"
#include "inputs.hpp"
#include "tangram/export/export.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

struct ExportArguments {
  std::string plan;
  std::string to;       ///< the format
  std::string output;   ///< the folder
  std::string program;  ///< of slurm and kubernetes; empty: generic
  std::string image;    ///< of kubernetes; empty: not given
};

Parameters parameters_of(ExportArguments& a) {
  const std::vector<std::string> formats = names_of(exporting::format_names());
  return {{{"PLAN", "a launch plan", &a.plan}},
          {{"to", "FORMAT", fmt::format("{}", fmt::join(formats, ", ")), &a.to, formats},
           output_option("FOLDER", "folder to create", a.output),
           {"program",
            "FORMAT",
            "what slurm and kubernetes start: generic (default), torch or megatron",
            &a.program,
            {"generic", "torch", "megatron"}},
           {"image", "IMAGE", "container image for kubernetes", &a.image}}};
}

/// The format of that name, or what is wrong with it.
Expected<exporting::Format> format_of(const std::string& name, const std::string& option) {
  for (const exporting::FormatName& format : exporting::format_names()) {
    if (format.name == name) return format.format;
  }
  const std::vector<std::string> known = names_of(exporting::format_names());
  return fail(usage_mistake("unknown-format", fmt::format("{} {}: no such format", option, name),
                            suggestion(name, known, listing("formats", known))));
}

std::optional<Diagnostics> complaint(const ExportArguments& arguments) {
  if (arguments.to.empty()) {
    return usage_mistake("missing-argument", "export needs --to FORMAT",
                         listing("formats", names_of(exporting::format_names())));
  }
  if (arguments.output.empty()) {
    return usage_mistake("missing-argument", "export needs -o FOLDER", "tangram export --help");
  }
  return std::nullopt;
}

Expected<exporting::Options> options_of(const ExportArguments& arguments, exporting::Format format) {
  using exporting::Format;
  const bool wraps = format == Format::kSlurm || format == Format::kKubernetes;
  if (!arguments.program.empty() && !wraps) {
    return fail(usage_mistake("unused-option", "--program is for slurm and kubernetes"));
  }
  if (!arguments.image.empty() && format != Format::kKubernetes) {
    return fail(usage_mistake("unused-option", "--image is for kubernetes"));
  }
  exporting::Options options;
  options.image = arguments.image;
  if (arguments.program.empty()) return options;
  auto program = format_of(arguments.program, "--program");
  if (!program) return fail(std::move(program.error()));
  if (*program != Format::kGeneric && *program != Format::kTorch && *program != Format::kMegatron) {
    return fail(usage_mistake("wrong-program", fmt::format("--program {} cannot be wrapped", arguments.program),
                              "generic, torch or megatron"));
  }
  options.program = *program;
  return options;
}

Json document_of(const ExportArguments& arguments, const exporting::Export& made) {
  Json json;
  json["schema"] = "tangram.export/1";
  json["status"] = "ok";
  json["format"] = arguments.to;
  json["folder"] = arguments.output;
  json["files"] = Json::array();
  for (const exporting::File& file : made.files) json["files"].push_back(file.path);
  json["notes"] = made.notes;
  return json;
}

ExitCode run_export(const ExportArguments& arguments, const Context& context) {
  const auto refuse = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  if (const auto wrong = complaint(arguments)) return refuse(*wrong);
  const auto format = format_of(arguments.to, "--to");
  if (!format) return refuse(format.error());
  const auto options = options_of(arguments, *format);
  if (!options) return refuse(options.error());
  const auto plan = load_plan(arguments.plan);
  if (!plan) return refuse(plan.error());
  auto folder = context.signals.open_folder(arguments.output);
  if (!folder) return refuse(folder.error());
  const auto made = exporting::export_plan(*plan, *format, *options);
  if (!made) return refuse(made.error());
  if (const auto written = write_files(*made, *folder); !written) return refuse(written.error());
  context.signals.release();
  return print_result(context, files_for_people(arguments.output, *made), document_of(arguments, *made));
}

}  // namespace

Command export_command() {
  return {.name = "export",
          .usage = "PLAN --to FORMAT -o FOLDER",
          .summary = "write the files with which a runtime starts a plan",
          .examples = R"(  tangram export plan.json --to generic -o start
  tangram export plan.json --to torch -o start
  tangram export plan.json --to megatron -o start
  tangram export plan.json --to flagscale -o conf
  tangram export plan.json --to slurm --program megatron -o job
)",
          .details = R"(FORMAT is torch (start scripts and a runtime that needs PyTorch alone and runs
every plan of a text model), generic (rank map, hostfile, a start script per
node for a program of yours), megatron (arguments of Megatron-LM, with
scripts), mimo (--component of each module for Megatron-Bridge, with scripts),
flagscale (FlagScale's heterogeneous training), slurm (a heterogeneous job) or
kubernetes (a JobSet) around torch, generic or megatron. sailor, flashflex and
galvatron write those planners' plan files, for comparisons. A plan that a
format cannot express is refused with all reasons; plan --target finds one that
a runtime can run. The folder is written whole or not at all, and must be empty
or not exist. Exit 3: refused.

Manual: tangram help runtimes
)",
          .bind = bound<ExportArguments>(parameters_of, run_export)};
}

}  // namespace tangram::app
