#include "calibrate_kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "inputs.hpp"
#include "table.hpp"
#include "tangram/accuracy/report.hpp"
#include "tangram/base/dtype.hpp"
#include "tangram/calibrate/kernel_times.hpp"
#include "tangram/io/file.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

struct FittedTable {
  calibrate::KernelTable table;
  calibrate::KernelFit fit;

  [[nodiscard]] std::string kernel() const { return std::string(calibrate::to_string(table.kernel)); }
  [[nodiscard]] bool has_recipe() const { return table.recipe != model::Fp8Recipe::kDelayed; }
  [[nodiscard]] accuracy::Errors catalogue() const { return accuracy::errors_of(fit.catalogue); }
  [[nodiscard]] accuracy::Errors held_out() const { return accuracy::errors_of(fit.held_out); }
};

Expected<std::vector<FittedTable>> fitted_tables(const std::vector<std::string>& files) {
  std::vector<FittedTable> fitted;
  Diagnostics mistakes;
  for (const std::string& path : files) {
    std::string text;
    take(io::read_file(path), text, mistakes);
    if (text.empty()) continue;
    std::vector<calibrate::KernelTable> tables;
    take(calibrate::read_kernel_times(std::move(text), path, cluster::catalogue()), tables, mistakes);
    for (calibrate::KernelTable& table : tables) fitted.push_back({std::move(table), {}});
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  for (FittedTable& one : fitted) one.fit = calibrate::fit_kernels(one.table);
  return fitted;
}

// For people

std::string kernel_text(const FittedTable& of) {
  if (!has_products(of.table)) return of.kernel();
  const std::string recipe = of.has_recipe() ? fmt::format(" {}", model::to_string(of.table.recipe)) : "";
  return fmt::format("{}, {}{}", of.kernel(), to_string(of.table.precision), recipe);
}

std::string factors_text(const FittedTable& of) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < of.fit.factors.size(); ++i) {
    parts.push_back(fmt::format("{} x{:.2f}", calibrate::figures_of(of.table)[i], of.fit.factors[i]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string tables_text(const std::vector<FittedTable>& tables, const Terminal& terminal) {
  Table text({{"kernel"},
              {"GPU", false, 16},
              {"rows", true},
              {"catalogue", true},
              {"bias", true},
              {"held out", true},
              {"own figures", false, 24}});
  for (const FittedTable& one : tables) {
    const accuracy::Errors catalogue = one.catalogue();
    text.add({{kernel_text(one)},
              {one.table.gpu.name},
              {std::to_string(one.table.rows.size())},
              {table_percent(catalogue.mean)},
              {signed_percent(catalogue.bias)},
              {table_percent(one.held_out().mean), Style::kBold},
              {factors_text(one)}});
  }
  return text.render(terminal) +
         "means of absolute errors: with the catalogue's figures; with own figures, fitted to the other half of the "
         "rows\n";
}

// For machines

Json kernel_errors_json(const accuracy::Errors& errors) {
  return {{"median", errors.median}, {"mean", errors.mean}, {"p90", errors.p90}, {"bias", errors.bias}};
}

Json table_json(const FittedTable& of) {
  Json json;
  json["kernel"] = of.kernel();
  json["gpu"] = of.table.gpu.name;
  if (has_products(of.table)) json["precision"] = to_string(of.table.precision);
  if (of.has_recipe()) json["fp8_recipe"] = to_string(of.table.recipe);
  json["rows"] = of.table.rows.size();
  json["catalogue"] = kernel_errors_json(of.catalogue());
  json["held_out"] = kernel_errors_json(of.held_out());
  for (std::size_t i = 0; i < of.fit.factors.size(); ++i) {
    json["factors"][std::string(calibrate::figures_of(of.table)[i])] = of.fit.factors[i];
  }
  return json;
}

Json tables_document(const std::vector<FittedTable>& tables) {
  Json json;
  json["schema"] = "tangram.kernel_calibration/1";
  json["status"] = "ok";
  json["tables"] = Json::array();
  for (const FittedTable& one : tables) json["tables"].push_back(table_json(one));
  return json;
}

}  // namespace

ExitCode show_kernel_times(const std::vector<std::string>& files, const Context& context) {
  const auto tables = fitted_tables(files);
  if (!tables) return report(context.terminal, context.json, tables.error());
  return print_result(context, tables_text(*tables, context.terminal), tables_document(*tables));
}

}  // namespace tangram::app
