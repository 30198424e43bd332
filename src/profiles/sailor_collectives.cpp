// Collectives in Aceso's format: prim_NAME_OP_Ngpus.csv of "data_size(MB),time(ms)", and p2p_{intra,inter}_node.csv, a
// line of sizes in MB and a line of GB/s. MB are MiB (the sizes are powers of two of them). Groups are inside one node.
#include <fmt/format.h>

#include "reading.hpp"
#include "sailor.hpp"

namespace tangram::profiles {
namespace {

std::string source_of(const std::string& gpu) {
  return fmt::format("Aceso's collective profiler (as in github.com/eth-easl/sailor), {}", gpu);
}

std::optional<cost::Exchange> operation_in(const std::string& name) {
  for (const cost::Exchange operation : {cost::Exchange::kAllReduce, cost::Exchange::kAllGather,
                                         cost::Exchange::kReduceScatter, cost::Exchange::kAllToAll}) {
    if (name.find(fmt::format("_{}_", cost::to_string(operation))) != std::string::npos) return operation;
  }
  return std::nullopt;
}

Expected<std::vector<double>> numbers_in(const SourceFile& file, const std::vector<std::string>& lines,
                                         std::size_t line, std::size_t count) {
  std::vector<double> values;
  for (const std::string& cell : split(lines[line], ',')) {
    if (const auto value = number(cell)) values.push_back(*value);
  }
  const bool complete = values.size() == split(lines[line], ',').size() && (count == 0 || values.size() == count);
  if (complete) return values;
  return fail(error_in(file.path, file.text, static_cast<int>(line) + 1, "wrong-type",
                       "expected numbers, separated by commas"));
}

void import_prim(const SourceFile& file, const cluster::GpuType& device, Context& context) {
  const std::string name = file_name(file.path);
  const auto operation = operation_in(name);
  const auto ranks = whole_number(text_between(name.substr(name.rfind('_') + 1), "", "gpus").value_or(""));
  if (!operation || !ranks) {
    return context.add_file_error(file.path, "unknown-value", "the name does not say operation and GPUs",
                                  "files are named prim_MODEL_all_reduce_4gpus.csv");
  }
  const std::vector<std::string> lines = lines_of(file.text);
  std::vector<RawPoint> points;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const auto values = numbers_in(file, lines, i, 2);
    if (!values) return context.add_error(values.error());
    points.push_back({(*values)[0] * kMiB, (*values)[1]});
  }
  add_curve(context, device, *operation, {*ranks, 1, 1}, points, kMilliseconds, file.path, source_of(device.name));
}

void import_p2p(const SourceFile& file, const cluster::GpuType& device, Context& context) {
  const std::vector<std::string> lines = lines_of(file.text);
  if (lines.size() < 2)
    return context.notes.left_out("unknown-file", file.path, "no line of sizes and one of bandwidths");
  const auto sizes = numbers_in(file, lines, 0, 0);
  if (!sizes) return context.add_error(sizes.error());
  const auto bandwidths = numbers_in(file, lines, 1, sizes->size());
  if (!bandwidths) return context.add_error(bandwidths.error());
  const double link = cost::fastest_link(device).value();
  const auto unit = link > 0 ? bandwidth_unit(median(*bandwidths), link) : Unit{"GB/s", 1e9};
  if (!unit) return context.notes.left_out("implausible-bandwidth", file.path, "no unit of bandwidth fits the links");
  if (unit->name != "GB/s") {
    context.notes.corrected("bandwidth-unit", file.path, fmt::format("bandwidths are {}, not GB/s", unit->name));
  }
  std::vector<RawPoint> points;
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    const double bytes = (*sizes)[i] * kMiB;
    points.push_back({bytes, bytes / ((*bandwidths)[i] * unit->scale)});
  }
  const bool inside = file_name(file.path).find("intra") != std::string::npos;
  add_curve(context, device, cost::Exchange::kSendRecv, inside ? cost::CurveGroup{2, 1, 1} : cost::CurveGroup{1, 2, 1},
            points, kSeconds, file.path, source_of(device.name));
}

}  // namespace

void import_collective_csv(const SourceFile& file, Context& context) {
  const std::string name = file_name(file.path);
  const bool prim = name.starts_with("prim_");
  if (!prim && !name.starts_with("p2p_")) {
    return context.notes.left_out("unknown-file", file.path, "not one of Sailor's profiles");
  }
  const auto* device = context.gpu(folder_above(file.path, 2), file.path);
  if (device == nullptr) return;
  if (prim) {
    import_prim(file, *device, context);
  } else {
    import_p2p(file, *device, context);
  }
}

}  // namespace tangram::profiles
