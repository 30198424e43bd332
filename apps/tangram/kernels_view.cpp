#include "kernels_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "table.hpp"
#include "tangram/base/at.hpp"
#include "tangram/kernels/hazards.hpp"
#include "tangram/kernels/unroll.hpp"

namespace tangram::app {

namespace {

using kernels::Kernel;
using kernels::KernelGraph;
using kernels::Phase;
using Json = nlohmann::ordered_json;

constexpr int kMostListed = 40;  // kernels; of longer phases the operators that take most time

std::string time_text(const std::optional<kernels::KernelTime>& time) {
  if (!time) return "-";
  const char* mark = time->from == kernels::TimeSource::kMeasured       ? ""
                     : time->from == kernels::TimeSource::kInterpolated ? " ~"
                                                                        : " ?";
  return people_time(to_seconds(time->time)) + mark;
}

const std::optional<kernels::KernelTime>& time_on(const Kernel& kernel, int gpu) {
  static const std::optional<kernels::KernelTime> none;
  return static_cast<std::size_t>(gpu) < kernel.times.size() ? at(kernel.times, gpu) : none;
}

std::vector<Column> columns_with_gpus(std::vector<Column> columns, const KernelGraph& graph) {
  for (const std::string& gpu : graph.gpus) columns.push_back({gpu, true});
  return columns;
}

std::string kernels_table(const KernelGraph& graph, const Phase& phase, const Terminal& terminal) {
  Table table(columns_with_gpus({{"kernel"}, {"passes", true}, {"operator"}, {"shape"}}, graph));
  for (int k = phase.first; k < phase.first + phase.count; ++k) {
    const Kernel& kernel = at(graph.kernels, k);
    std::vector<Cell> row{{kernel.id, Style::kBold},
                          {std::to_string(phase.passes_of(k))},
                          {kernel.op.substr(0, 40)},
                          {fmt::format("{}", fmt::join(kernel.shape, " x "))}};
    for (int gpu = 0; gpu < graph.gpu_count(); ++gpu) row.push_back({time_text(time_on(kernel, gpu))});
    table.add(std::move(row));
  }
  return table.render(terminal);
}

/// Kernels of one operator.
struct OperatorSum {
  std::string op;
  std::int64_t kernels = 0;
  std::vector<double> seconds;  ///< by GPU
};

std::string operators_table(const KernelGraph& graph, const Phase& phase, const Terminal& terminal) {
  std::map<std::string, OperatorSum> by_name;
  for (int k = phase.first; k < phase.first + phase.count; ++k) {
    const Kernel& kernel = at(graph.kernels, k);
    OperatorSum& sum = by_name[kernel.op];
    sum.op = kernel.op;
    sum.kernels += phase.passes_of(k);
    sum.seconds.resize(graph.gpus.size());
    for (int gpu = 0; gpu < graph.gpu_count(); ++gpu) {
      const auto& time = time_on(kernel, gpu);
      if (time) at(sum.seconds, gpu) += to_seconds(time->time) * static_cast<double>(phase.passes_of(k));
    }
  }
  std::vector<OperatorSum> sums;
  for (auto& [name, sum] : by_name) sums.push_back(std::move(sum));
  std::ranges::stable_sort(sums, [](const OperatorSum& a, const OperatorSum& b) {
    return a.seconds.empty() ? a.kernels > b.kernels : a.seconds.front() > b.seconds.front();
  });
  Table table(columns_with_gpus({{"operator"}, {"kernels", true}}, graph));
  constexpr std::size_t kMostOperators = 20;
  for (std::size_t i = 0; i < std::min(sums.size(), kMostOperators); ++i) {
    std::vector<Cell> row{{sums[i].op.substr(0, 60), Style::kBold}, {thousands(sums[i].kernels)}};
    for (const double seconds : sums[i].seconds) row.push_back({people_time(seconds)});
    table.add(std::move(row));
  }
  std::string out = table.render(terminal);
  if (sums.size() > kMostOperators) out += fmt::format("and {} operators more\n", sums.size() - kMostOperators);
  return out;
}

std::string phase_head(const Phase& phase) {
  std::string head = phase.name;
  if (phase.requests > 0) head += fmt::format(": {}", counted(phase.requests, "request"));
  if (phase.context > 0) head += fmt::format(" of {} tokens", thousands(phase.context));
  std::int64_t launches = 0;
  for (int k = phase.first; k < phase.first + phase.count; ++k) launches += phase.passes_of(k);
  return head + fmt::format("{}{}", phase.requests > 0 ? ", " : ": ", counted(launches, "kernel"));
}

std::string sums_line(const KernelGraph& graph, const Phase& phase) {
  std::string line;
  for (int gpu = 0; gpu < graph.gpu_count(); ++gpu) {
    double seconds = 0;
    double off = 0;
    int missing = 0;
    for (int k = phase.first; k < phase.first + phase.count; ++k) {
      const auto& time = time_on(at(graph.kernels, k), gpu);
      if (!time) {
        ++missing;
        continue;
      }
      const double all = to_seconds(time->time) * static_cast<double>(phase.passes_of(k));
      seconds += all;
      off += all * time->error;
    }
    line += fmt::format("{}: {}", at(graph.gpus, gpu), people_time(seconds));
    if (seconds > 0) line += fmt::format(", off by {:.0f} % in the mean", 100 * off / seconds);
    if (missing > 0) line += fmt::format(", {} without a time", counted(missing, "kernel"));
    line += "\n";
  }
  return line;
}

/// Of a phase whose repeats, if it has any, are written out in `few`.
std::string hazards_line(const KernelGraph& few, const Phase& phase, bool repeated) {
  std::map<kernels::HazardKind, int> counts;
  int storage = 0;
  for (const kernels::Hazard& hazard : kernels::hazards(few, phase)) {
    ++counts[hazard.kind];
    storage += hazard.storage ? 1 : 0;
  }
  return fmt::format("hazards{}: {} read after write, {} write after read, {} write after write; {} of storage alone\n",
                     repeated ? " of three passes" : "", counts[kernels::HazardKind::kReadAfterWrite],
                     counts[kernels::HazardKind::kWriteAfterRead], counts[kernels::HazardKind::kWriteAfterWrite],
                     storage);
}

std::string memory_line(const KernelGraph& graph) {
  std::map<kernels::BufferKind, Bytes> bytes;
  for (const kernels::Buffer& buffer : graph.buffers) bytes[buffer.kind] += buffer.bytes * buffer.copies;
  std::vector<std::string> parts;
  constexpr Bytes kLeastShown(1 << 20);
  for (const auto& [kind, sum] : bytes) {
    parts.push_back(fmt::format("{} {}", to_string(kind), sum < kLeastShown ? "below 1 MiB" : people_bytes(sum)));
  }
  return parts.empty() ? "" : fmt::format("memory: {}\n", fmt::join(parts, ", "));
}

/// How it is known what kernels touch; nothing where the model says all of it.
std::string evidence_line(const KernelGraph& graph) {
  std::map<kernels::Evidence, int> counts;
  for (const Kernel& kernel : graph.kernels) ++counts[kernel.evidence];
  if (counts[kernels::Evidence::kModel] == graph.kernel_count()) return "";
  std::vector<std::string> parts;
  for (const auto& [evidence, count] : counts) {
    if (count == 0) continue;
    parts.push_back(evidence == kernels::Evidence::kConservative ? fmt::format("{} not known", count)
                                                                 : fmt::format("{} by {}", count, to_string(evidence)));
  }
  return fmt::format("accesses of kernels: {}\n", fmt::join(parts, ", "));
}

/// The least and the largest of several mean errors.
struct ErrorRange {
  double least = 0;
  double most = 0;
  bool any = false;

  void add(double error) {
    least = any ? std::min(least, error) : error;
    most = any ? std::max(most, error) : error;
    any = true;
  }
  [[nodiscard]] std::string text() const {
    if (!any) return "";
    const std::string upper = fmt::format("{:.1f}%", 100 * most);
    return least == most ? upper : fmt::format("{:.1f}-{}", 100 * least, upper);
  }
};

/// Of one operator on one GPU.
struct ErrorRanges {
  int rows = 0;
  ErrorRange one_axis;
  ErrorRange two_axes;
  ErrorRange beyond;
  ErrorRange roofline;

  void add(const kernels::HeldOut& line) {
    ErrorRange& range = line.method == "roofline"                    ? roofline
                        : line.method == "beyond"                    ? beyond
                        : line.method.find(',') != std::string::npos ? two_axes
                                                                     : one_axis;
    range.add(line.mean);
    if (line.method == "roofline") rows = line.rows;
  }
};

bool has_guesses(const KernelGraph& graph) {
  return std::ranges::any_of(graph.kernels, [](const Kernel& kernel) {
    return std::ranges::any_of(kernel.times,
                               [](const auto& time) { return time && time->from != kernels::TimeSource::kMeasured; });
  });
}

}  // namespace

std::string graph_for_people(const KernelGraph& graph, const Terminal& terminal) {
  // Three passes show the first, one in the middle and the last.
  const KernelGraph few = kernels::unrolled(graph, 3);
  std::string out;
  for (std::size_t p = 0; p < graph.phases.size(); ++p) {
    const Phase& phase = graph.phases[p];
    out += phase_head(phase) + "\n\n";
    out += phase.count <= kMostListed ? kernels_table(graph, phase, terminal) : operators_table(graph, phase, terminal);
    out += "\n" + sums_line(graph, phase) + hazards_line(few, few.phases[p], !phase.repeats.empty()) + "\n";
  }
  out += memory_line(graph) + evidence_line(graph);
  if (has_guesses(graph)) out += "~ interpolated between measured times, ? by the roofline\n";
  return out;
}

std::string findings_for_people(const KernelGraph& graph, const std::vector<kernels::Finding>& findings,
                                const Terminal& terminal) {
  if (findings.empty()) return fmt::format("{}: nothing to complain about\n", counted(graph.kernel_count(), "kernel"));
  Table table({{"", false}, {"code"}, {"about", false, 16}, {"what", false, 40}});
  constexpr std::size_t kMostFindings = 40;
  for (std::size_t i = 0; i < std::min(findings.size(), kMostFindings); ++i) {
    const kernels::Finding& finding = findings[i];
    const bool is_error = finding.severity == kernels::Severity::kError;
    table.add({{is_error ? "error" : "warning", is_error ? Style::kBold : Style::kPlain},
               {finding.code},
               {finding.about},
               {finding.message}});
  }
  std::string out = table.render(terminal);
  if (findings.size() > kMostFindings) out += fmt::format("and {} more\n", findings.size() - kMostFindings);
  return out;
}

Json findings_document(const KernelGraph& graph, const std::vector<kernels::Finding>& findings) {
  const bool wrong = std::ranges::any_of(
      findings, [](const kernels::Finding& finding) { return finding.severity == kernels::Severity::kError; });
  Json out;
  out["schema"] = "tangram.kernel_check/1";
  out["status"] = wrong ? "violations" : "ok";
  out["kernels"] = graph.kernel_count();
  out["findings"] = Json::array();
  for (const kernels::Finding& finding : findings) {
    out["findings"].push_back({{"severity", finding.severity == kernels::Severity::kError ? "error" : "warning"},
                               {"code", finding.code},
                               {"about", finding.about},
                               {"message", finding.message}});
  }
  return out;
}

std::string held_out_for_people(const std::vector<kernels::HeldOut>& lines, const Terminal& terminal) {
  Table table({{"operator"},
               {"GPU"},
               {"rows", true},
               {"one axis", true},
               {"two axes", true},
               {"beyond", true},
               {"roofline", true}});
  for (std::size_t first = 0; first < lines.size();) {
    std::size_t end = first;
    ErrorRanges ranges;
    for (; end < lines.size() && lines[end].op == lines[first].op && lines[end].gpu == lines[first].gpu; ++end) {
      ranges.add(lines[end]);
    }
    table.add({{std::string(to_string(lines[first].op)), Style::kBold},
               {lines[first].gpu.empty() ? "any other" : lines[first].gpu},
               {thousands(ranges.rows)},
               {ranges.one_axis.text()},
               {ranges.two_axes.text()},
               {ranges.beyond.text()},
               {ranges.roofline.text()}});
    first = end;
  }
  return table.render(terminal) + "mean errors of rows held out; --json has medians and 90th percentiles\n";
}

Json held_out_document(const std::vector<kernels::HeldOut>& lines) {
  Json out;
  out["schema"] = "tangram.kernel_accuracy/1";
  out["status"] = "ok";
  out["errors"] = Json::array();
  for (const kernels::HeldOut& line : lines) {
    Json entry;
    entry["operator"] = to_string(line.op);
    if (!line.gpu.empty()) entry["gpu"] = line.gpu;
    entry["method"] = line.method;
    entry["rows"] = line.rows;
    entry["median"] = line.median;
    entry["mean"] = line.mean;
    entry["p90"] = line.p90;
    out["errors"].push_back(std::move(entry));
  }
  return out;
}

}  // namespace tangram::app
