#include "calibrate_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "inputs.hpp"
#include "own_runs.hpp"
#include "table.hpp"
#include "tangram/accuracy/report.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

/// Smaller families say nothing about parts of them.
constexpr std::size_t kFewest = 10;
constexpr std::size_t kFolds = 10;  // a tenth of a family is known
constexpr std::size_t kKnown = 10;  // or so many runs

struct FamilyErrors {
  discrepancy::Family family;
  discrepancy::Validation each;            // corrected by all others
  std::optional<accuracy::Errors> others;  // of those; none: it is the only one
  std::optional<accuracy::Errors> tenth;   // by a tenth of them; none: there are fewer than kFewest
  std::optional<accuracy::Errors> ten;     // by ten; none: there are fewer than twice as many
  [[nodiscard]] accuracy::Errors predicted() const { return accuracy::errors_of(each.before); }
};

std::optional<accuracy::Errors> errors_by_fold(const discrepancy::Family& family, std::size_t folds) {
  return accuracy::errors_of(discrepancy::from_each_fold(family.runs, folds).after);
}

FamilyErrors family_errors(discrepancy::Family family) {
  FamilyErrors errors;
  errors.each = discrepancy::leave_one_out(family.runs);
  const std::size_t runs = family.runs.size();
  if (runs > 1) errors.others = accuracy::errors_of(errors.each.after);
  if (runs >= kFewest) errors.tenth = errors_by_fold(family, kFolds);
  if (runs >= 2 * kKnown) errors.ten = errors_by_fold(family, runs / kKnown);
  errors.family = std::move(family);
  return errors;
}

// For people

Cell median_cell(const std::optional<accuracy::Errors>& errors) {
  return {errors ? table_percent(errors->median) : "-"};
}
Cell mean_cell(const std::optional<accuracy::Errors>& errors) { return {errors ? table_percent(errors->mean) : "-"}; }

std::string runs_table(const std::vector<FamilyErrors>& families, const Terminal& terminal) {
  Table table({{"run", false, 20},
               {"measured", true},
               {"predicted", true},
               {"error", true},
               {"by the others", true},
               {"error", true}});
  for (const FamilyErrors& errors : families) {
    for (std::size_t i = 0; i < errors.family.runs.size(); ++i) {
      const discrepancy::Run& run = errors.family.runs[i];
      table.add({{run.name},
                 {people_time(run.measured_s)},
                 {people_time(run.predicted_s)},
                 {signed_percent(errors.each.before[i])},
                 {people_time(run.measured_s * (1 + errors.each.after[i]))},
                 {signed_percent(errors.each.after[i]), Style::kBold}});
    }
  }
  return table.render(terminal);
}

std::string families_table(const std::vector<FamilyErrors>& families, const Terminal& terminal) {
  Table table({{"family", false, 16},
               {"runs", true},
               {"predicted", true},
               {"mean", true},
               {"by a tenth", true},
               {"mean", true},
               {"by ten", true},
               {"mean", true},
               {"by all others", true},
               {"mean", true}});
  for (const FamilyErrors& errors : families) {
    table.add({{errors.family.name.empty() ? "-" : errors.family.name},
               {std::to_string(errors.family.runs.size())},
               median_cell(errors.predicted()),
               mean_cell(errors.predicted()),
               median_cell(errors.tenth),
               mean_cell(errors.tenth),
               median_cell(errors.ten),
               mean_cell(errors.ten),
               median_cell(errors.others),
               mean_cell(errors.others)});
  }
  return table.render(terminal);
}

std::string runs_for_people(const std::vector<FamilyErrors>& families, bool summary, const Terminal& terminal) {
  return (summary ? "" : runs_table(families, terminal) + "\n") + families_table(families, terminal) +
         "medians and means of absolute errors; corrected by runs of the same family, the run itself left out\n";
}

// For machines

Json errors_json(const accuracy::Errors& errors) { return {{"median", errors.median}, {"mean", errors.mean}}; }

Json family_json(const FamilyErrors& errors) {
  Json json;
  json["family"] = errors.family.name;
  json["predicted"] = errors_json(errors.predicted());
  if (errors.tenth) json["by_a_tenth"] = errors_json(*errors.tenth);
  if (errors.ten) json["by_ten"] = errors_json(*errors.ten);
  if (errors.others) json["by_all_others"] = errors_json(*errors.others);
  json["runs"] = Json::array();
  for (std::size_t i = 0; i < errors.family.runs.size(); ++i) {
    const discrepancy::Run& run = errors.family.runs[i];
    json["runs"].push_back({{"name", run.name},
                            {"measured_s", run.measured_s},
                            {"predicted_s", run.predicted_s},
                            {"by_all_others_s", run.measured_s * (1 + errors.each.after[i])}});
  }
  return json;
}

Json runs_document(const std::vector<FamilyErrors>& families, const OwnRuns& runs) {
  Json json;
  json["schema"] = "tangram.own_runs/1";
  json["status"] = "ok";
  json["families"] = Json::array();
  for (const FamilyErrors& errors : families) json["families"].push_back(family_json(errors));
  json["left_out"] = runs.left_out;
  return json;
}

}  // namespace

ExitCode validate_runs(const std::vector<std::string>& files, bool summary, const Context& context) {
  const auto runs = load_own_runs(files, cluster::catalogue(), {});
  if (!runs) return report(context.terminal, context.json, runs.error());
  report_left_out(context, *runs);
  std::vector<FamilyErrors> families;
  for (discrepancy::Family& family : discrepancy::families_of(runs->runs)) {
    families.push_back(family_errors(std::move(family)));
  }
  return print_result(context, runs_for_people(families, summary, context.terminal), runs_document(families, *runs));
}

}  // namespace tangram::app
