#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "inputs.hpp"
#include "profile_words.hpp"
#include "table.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/profiles/import.hpp"

namespace tangram::app {

namespace {

/// `profile import FILE...` and `profile show FILE`.
struct ProfileArguments {
  std::string action;
  std::vector<std::string> files;
  std::string from;    ///< import: the tool
  std::string gpu;     ///< empty: as the files say
  std::string model;   ///< empty: not given
  std::string date;    ///< empty: not known
  std::string output;  ///< empty: not written
};

Parameters parameters_of(ProfileArguments& a) {
  const std::vector<std::string> tools = profiles::tool_names();
  return {{{"ACTION", "import or show", &a.action}, {"FILE", "output of the tool, or a profile", &a.files}},
          {{"from", "TOOL", "the tool that measured: " + any_of(tools), &a.from, tools},
           {"gpu", "NAME", "GPU type, by its catalogue name", &a.gpu},
           {"model", "MODEL", "the model that was measured", &a.model},
           {"date", "DATE", "date of the measurement: YYYY-MM-DD", &a.date},
           output_option("FILE", "write the profile to FILE", a.output)}};
}

// What a profile holds, for people.

/// "1-8", "1, 2, 8": whole numbers that follow each other in doubling steps or by one are runs.
std::string list_text(std::vector<std::int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return fmt::format("{}", fmt::join(numbers, ","));
}

std::string unit_text(const cost::ProfileUnit& unit) {
  switch (unit.kind) {
    case cost::ProfileKind::kBlock:
      if (unit.block.recurrence) {
        return fmt::format("block h{} {}", unit.block.hidden, to_string(unit.block.recurrence->kind));
      }
      return fmt::format("block h{} a{}{}", unit.block.hidden, unit.block.attention.heads,
                         unit.flash_attention ? " flash" : "");
    case cost::ProfileKind::kEmbedding: return fmt::format("embedding h{} V{}", unit.hidden, unit.vocabulary);
    case cost::ProfileKind::kHead: return fmt::format("head h{} V{}", unit.hidden, unit.vocabulary);
  }
  return "block";
}

std::string unit_table(const cost::Profile& profile, const Terminal& terminal) {
  Table table({{"unit"},
               {"dtype"},
               {"tokens", true},
               {"degrees"},
               {"samples", false, 12},
               {"forward ms", true},
               {"backward ms", true},
               {"activation", true}});
  for (const cost::ProfileUnit& unit : profile.units) {
    std::map<cost::Degrees, std::vector<const cost::ProfileRow*>> by_degrees;
    for (const cost::ProfileRow& row : unit.rows) by_degrees[row.degrees].push_back(&row);
    for (const auto& [degrees, rows] : by_degrees) {
      std::vector<std::int64_t> samples;
      for (const cost::ProfileRow* row : rows) samples.push_back(row->samples);
      const cost::ProfileRow& first = *rows.front();
      table.add(
          {{unit_text(unit), Style::kBold},
           {std::string(to_string(unit.dtype))},
           {thousands(unit.sequence_length)},
           {degrees_text(degrees)},
           {list_text(samples)},
           {fmt::format("{:.4g}", first.forward.as_double() / 1e6)},
           {fmt::format("{:.4g}", first.backward.as_double() / 1e6)},
           {first.activation > Bytes(0) ? fmt::format("{:.1f} MiB", first.activation.as_double() / (1 << 20)) : "-"}});
    }
  }
  return table.render(terminal);
}

std::string scaled_text(const cost::Profile& profile) {
  std::int64_t scaled = 0;
  for (const cost::ProfileUnit& unit : profile.units)
    scaled += std::ranges::count(unit.rows, true, &cost::ProfileRow::scaled);
  return scaled > 0 ? fmt::format("{} were not measured but scaled\n", counted(scaled, "row")) : "";
}

std::string size_text(Bytes bytes) {
  const double value = bytes.as_double();
  if (value >= 1 << 30) return fmt::format("{:.4g} GiB", value / (1 << 30));
  if (value >= 1 << 20) return fmt::format("{:.4g} MiB", value / (1 << 20));
  return value >= 1 << 10 ? fmt::format("{:.4g} KiB", value / (1 << 10)) : fmt::format("{} B", bytes.value());
}

std::string curve_table(const cost::Profile& profile, const Terminal& terminal) {
  Table table({{"collective"},
               {"nodes x ranks", true},
               {"sharing", true},
               {"sizes"},
               {"points", true},
               {"shortest", true},
               {"best bus GB/s", true}});
  for (const cost::CollectiveCurve& curve : profile.collectives) {
    double best = 0;
    for (const cost::CurvePoint& point : curve.points) best = std::max(best, cost::bus_bandwidth(curve, point));
    table.add({{std::string(cost::to_string(curve.operation)), Style::kBold},
               {fmt::format("{} x {}", curve.group.nodes, curve.group.ranks_per_node)},
               {std::to_string(curve.group.sharing)},
               {fmt::format("{} to {}", size_text(curve.points.front().bytes), size_text(curve.points.back().bytes))},
               {std::to_string(curve.points.size())},
               {people_time(to_seconds(curve.points.front().time))},
               {fmt::format("{:.4g}", best / 1e9)}});
  }
  return table.render(terminal);
}

std::string for_people(const cost::Profile& profile, const Terminal& terminal) {
  std::string head = fmt::format("{}{}", profile.device.name, profile.date.empty() ? "" : ", measured " + profile.date);
  if (!profile.units.empty()) {
    head += "; " + exchanges_text(profile.includes_tp_communication);
  }
  std::string out = head + "\n";
  for (const std::string& line : wrapped("source: " + profile.source, terminal.text_width())) out += line + "\n";
  if (!profile.units.empty()) {
    out += "\n" + unit_table(profile, terminal) + "times and activations are of the first sample count\n" +
           scaled_text(profile);
  }
  if (!profile.collectives.empty()) out += "\n" + curve_table(profile, terminal);
  return out;
}

// show

ExitCode show(const ProfileArguments& arguments, const Context& context) {
  if (arguments.files.size() != 1) {
    return report(context.terminal, context.json, usage_mistake("extra-argument", "profile show takes one FILE"));
  }
  const auto profiles = load_profiles(arguments.files, cluster::catalogue());
  if (!profiles) return report(context.terminal, context.json, profiles.error());
  const cost::Profile& profile = profiles->profiles().front();
  return print_result(context, for_people(profile, context.terminal), cost::profile_json(profile));
}

// import

bool is_date(const std::string& text) {
  constexpr std::string_view kPattern = "dddd-dd-dd";
  return text.size() == kPattern.size() && std::equal(text.begin(), text.end(), kPattern.begin(), [](char c, char p) {
           return p == '-' ? c == '-' : c >= '0' && c <= '9';
         });
}

std::optional<Diagnostics> complaint(const ProfileArguments& arguments) {
  const std::vector<std::string> tools = profiles::tool_names();
  const std::string known = listing("tools", tools);
  if (arguments.from.empty()) return usage_mistake("missing-option", "profile import needs --from TOOL", known);
  if (!profiles::parse_tool(arguments.from)) {
    return usage_mistake("unknown-tool", fmt::format("no such tool: \"{}\"", arguments.from),
                         suggestion(arguments.from, tools, known));
  }
  if (!arguments.date.empty() && !is_date(arguments.date)) {
    return usage_mistake("bad-value", fmt::format("--date {} is not a date", arguments.date), "write YYYY-MM-DD");
  }
  return overwritten_input(arguments.output, arguments.files, "give the profile a name of its own");
}

/// All files, with the mistakes of all.
Expected<profiles::Request> request_of(const ProfileArguments& arguments) {
  profiles::Request request;
  request.tool = profiles::parse_tool(arguments.from).value_or(profiles::Tool::kSailor);  // known: complaint() looked
  request.gpu = arguments.gpu;
  request.date = arguments.date;
  Diagnostics mistakes;
  const auto keep = [&](Diagnostics& found) { mistakes.insert(mistakes.end(), found.begin(), found.end()); };
  for (const std::string& path : arguments.files) {
    auto text = io::read_file(path);
    if (text) {
      request.files.push_back({path, std::move(*text)});
    } else {
      keep(text.error());
    }
  }
  if (!arguments.model.empty()) {
    auto model = load_model(arguments.model);
    if (model) {
      request.model = std::move(*model);
    } else {
      keep(model.error());
    }
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return request;
}

/// A file holds one profile.
std::optional<Diagnostics> not_one(const std::vector<cost::Profile>& found) {
  if (found.size() == 1) return std::nullopt;
  std::vector<std::string> names;
  names.reserve(found.size());
  for (const cost::Profile& profile : found) names.push_back(profile.device.name);
  const bool same = std::ranges::all_of(names, [&](const std::string& name) { return name == names.front(); });
  return Diagnostics{
      problem(ErrorKind::kInput, "several-profiles",
              same ? fmt::format("some times of {} hold the exchanges of tp, others do not", names.front())
                   : fmt::format("the files are of {} GPU types: {}", names.size(), fmt::join(names, ", ")),
              same ? "import them one by one" : "choose one with --gpu")};
}

std::string note_text(const profiles::Note& note) {
  return fmt::format("{}{}: {}", note.file.empty() ? "" : note.file + ": ", to_string(note.kind), note.message);
}

ExitCode import(const ProfileArguments& arguments, const Context& context) {
  const auto failed = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  if (const auto wrong = complaint(arguments)) return failed(*wrong);
  const auto request = request_of(arguments);
  if (!request) return failed(request.error());
  const auto imported = profiles::import_profiles(*request, cluster::catalogue());
  if (!imported) return failed(imported.error());
  for (const profiles::Note& note : imported->notes) context.terminal.note(note_text(note));
  if (const auto several = not_one(imported->profiles)) return failed(*several);

  const cost::Profile& profile = imported->profiles.front();
  const nlohmann::ordered_json document = cost::profile_json(profile);
  const std::string text = io::write_canonical(document);
  auto output = open_output(context, arguments.output);
  if (!output) return failed(output.error());
  if (const auto written = write_output(context, *output, text); !written) return failed(written.error());
  if (arguments.output == "-") return print_text(context, text);
  return print_result(context, for_people(profile, context.terminal), document);
}

ExitCode run_profile(const ProfileArguments& arguments, const Context& context) {
  if (arguments.action == "import") return import(arguments, context);
  if (arguments.action == "show") return show(arguments, context);
  return report(context.terminal, context.json,
                usage_mistake("unknown-action", fmt::format("profile has no action \"{}\"", arguments.action),
                              "actions: import, show"));
}

}  // namespace

Command profile_command() {
  return {.name = "profile",
          .usage = "import|show FILE...",
          .summary = "import measurements of other tools, show a profile",
          .examples = R"(  tangram profile import --from sailor OPT-350/A100-40/profile.json \
    --model model.yaml -o a100.json
  tangram profile import --from metis metis/*.json --gpu A100-80GB-SXM \
    --model model.yaml -o a100.json
  tangram profile import --from nccl-tests all_reduce.log -o links.json
  tangram profile show a100.json
)",
          .details = R"(import reads files of sailor, metis, galvatron, amp or nccl-tests and writes
one profile, which plan --profile takes. Units are inferred from the numbers;
everything detected, corrected or left out is reported. --gpu and --model are
needed where the files do not name the GPU and the model. --json prints the
profile itself, the same bytes that -o writes. show lists the contents of a
profile.

Manual: tangram help predictions
)",
          .bind = bound<ProfileArguments>(parameters_of, run_profile)};
}

}  // namespace tangram::app
