#include "kernels_analyze.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <variant>
#include <vector>

#include "inputs.hpp"
#include "table.hpp"
#include "tangram/base/at.hpp"
#include "tangram/io/file.hpp"
#include "tangram/kernels/signatures.hpp"
#include "tangram/ptx/analysis.hpp"
#include "tangram/ptx/launches.hpp"
#include "tangram/ptx/parse.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

/// A launch and what it does.
struct AnalyzedLaunch {
  ptx::RecordedLaunch recorded;
  kernels::LaunchTouch touch;
};

struct KernelFile {
  ptx::Module module;
  std::vector<ptx::EntryAnalysis> entries;
  std::vector<AnalyzedLaunch> launches;
};

// Inputs

Expected<std::vector<AnalyzedLaunch>> launches_of(const ptx::Module& module, const std::string& path) {
  const auto text = io::read_file(path);
  if (!text) return fail(text.error());
  auto recorded = ptx::read_launches(*text, path);
  if (!recorded) return fail(recorded.error());
  std::vector<AnalyzedLaunch> launches;
  Diagnostics mistakes;
  for (ptx::RecordedLaunch& launch : *recorded) {
    auto touch = kernels::touch_of(module, launch.launch);
    if (touch) {
      launches.push_back({std::move(launch), std::move(*touch)});
      continue;
    }
    for (Diagnostic& mistake : touch.error()) {
      mistake.where = {path, launch.line, 0};
      mistakes.push_back(std::move(mistake));
    }
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return launches;
}

Expected<KernelFile> load_kernels(const AnalyzeOptions& options) {
  const auto text = io::read_file(options.file);
  if (!text) return fail(text.error());
  auto module = ptx::parse(*text, options.file);
  if (!module) return fail(module.error());
  KernelFile file{std::move(*module), {}, {}};
  for (const std::string& entry : file.module.entries()) {
    auto analysis = ptx::analyze(file.module, entry);
    if (!analysis) return fail(analysis.error());
    file.entries.push_back(std::move(*analysis));
  }
  if (options.launches.empty()) return file;
  auto launches = launches_of(file.module, options.launches);
  if (!launches) return fail(launches.error());
  file.launches = std::move(*launches);
  return file;
}

// For people

std::string effects_text(const ptx::ParameterUse& use) {
  std::vector<std::string_view> words;
  if (use.reads) words.emplace_back("read");
  if (use.writes) words.emplace_back("written");
  if (use.updates) words.emplace_back("updated");
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string reason_text(const ptx::Reason& reason) {
  return reason.place.line > 0 ? fmt::format("line {}: {}", reason.place.line, reason.text) : reason.text;
}

/// "[0, 3600)", "[0, 4) x 900 every 12"
std::string bytes_text(const ptx::ByteSet& set) {
  std::string text = fmt::format("[{}, {})", set.first, set.first + set.run);
  for (const ptx::Repeat& repeat : set.repeats) text += fmt::format(" x {} every {}", repeat.count, repeat.stride);
  return text;
}

std::string base_text(const ptx::Module& module, const ptx::EntryAnalysis& entry, const ptx::Base& base) {
  switch (base.kind) {
    case ptx::BaseKind::kParameter:
    case ptx::BaseKind::kTensorMap:
      for (const ptx::ParameterUse& use : entry.parameters) {
        if (use.base.index == base.index && use.base.offset == base.offset) return use.name;
      }
      return fmt::format("parameter {}", base.index);
    case ptx::BaseKind::kVariable: return at(module.variables, base.index).name;
    case ptx::BaseKind::kLoaded: return "a pointer from memory";
    default: return "unknown";
  }
}

std::string accesses_text(const ptx::Module& module, const ptx::EntryAnalysis& entry, const Terminal& terminal) {
  Table table({{"line", true}, {"instruction"}, {"effect"}, {"bytes", true}, {"of"}, {"offset"}});
  for (const ptx::Access& access : entry.accesses) {
    std::vector<std::string> bases;
    for (const ptx::Base& base : access.bases) bases.push_back(base_text(module, entry, base));
    table.add({{std::to_string(access.place.line)},
               {access.text},
               {std::string(to_string(access.effect))},
               {access.width > 0 ? std::to_string(access.width) : "?"},
               {fmt::format("{}", fmt::join(bases, " or "))},
               {access.indirect ? "indirect" : ""}});
  }
  return table.render(terminal);
}

std::string entry_text(const KernelFile& file, const ptx::EntryAnalysis& entry, const AnalyzeOptions& options,
                       const Terminal& terminal) {
  std::string out = fmt::format("{}: {}\n", entry.entry, entry.pinned.empty() ? "all accesses known" : "pinned");
  if (!entry.parameters.empty()) {
    Table table({{"  parameter"}, {"is"}, {"offsets from"}});
    for (const ptx::ParameterUse& use : entry.parameters) {
      table.add(
          {{"  " + use.name, Style::kBold}, {effects_text(use)}, {use.indirect ? "indices and data" : "indices"}});
    }
    out += table.render(terminal);
  }
  if (!entry.variables.empty()) {
    out += fmt::format("  variables of the module: {}\n", fmt::join(entry.variables, ", "));
  }
  for (const ptx::Reason& why : entry.pinned) out += fmt::format("  {}\n", reason_text(why));
  if (options.explain && !entry.accesses.empty()) out += "\n" + accesses_text(file.module, entry, terminal);
  return out;
}

const ptx::BufferArgument& buffer_of(const ptx::Launch& launch, int argument) {
  return std::get<ptx::BufferArgument>(at(launch.arguments, argument));
}

std::string known_by_text(const kernels::LaunchTouch& touch) {
  std::string text = touch.signature == nullptr ? "" : fmt::format(", by signature: {}", touch.signature->family);
  if (!touch.ranges.pinned.empty()) return text + ", pinned: it may touch more than this";
  return touch.pinned == kernels::Pin::kNone ? text : fmt::format("{}, pinned: {}", text, to_string(touch.pinned));
}

std::string launch_text(const AnalyzedLaunch& analyzed, const AnalyzeOptions& options, const Terminal& terminal) {
  const ptx::Launch& launch = analyzed.recorded.launch;
  std::string out =
      fmt::format("line {}: {} <<<({}), ({})>>>{}\n", analyzed.recorded.line, launch.entry,
                  fmt::join(launch.grid, ", "), fmt::join(launch.block, ", "), known_by_text(analyzed.touch));
  Table table({{"  buffer"}, {"effect"}, {"is"}, {"bytes"}});
  for (const ptx::BufferRange& range : analyzed.touch.ranges.ranges) {
    bool first = true;
    for (const ptx::ByteSet& set : range.bytes) {
      table.add({{first ? "  " + buffer_of(launch, range.argument).name : "", Style::kBold},
                 {first ? std::string(to_string(range.effect)) : ""},
                 {first ? (range.exact ? "exact" : "clipped") : ""},
                 {bytes_text(set)}});
      first = false;
    }
    if (!options.explain) continue;
    for (const ptx::Reason& why : range.reasons) table.add({{}, {}, {}, {reason_text(why)}});
  }
  return out + table.render(terminal);
}

std::string for_people(const KernelFile& file, const AnalyzeOptions& options, const Terminal& terminal) {
  std::string out;
  for (const ptx::EntryAnalysis& entry : file.entries) {
    out += (out.empty() ? "" : "\n") + entry_text(file, entry, options, terminal);
  }
  if (file.entries.empty()) out += "the module has no entries\n";
  for (const AnalyzedLaunch& launch : file.launches) out += "\n" + launch_text(launch, options, terminal);
  return out;
}

// For machines

Json reasons_json(const std::vector<ptx::Reason>& reasons) {
  Json list = Json::array();
  for (const ptx::Reason& reason : reasons) {
    Json entry;
    if (reason.place.line > 0) entry["line"] = reason.place.line;
    if (reason.place.line > 0) entry["column"] = reason.place.column;
    entry["reason"] = reason.text;
    list.push_back(std::move(entry));
  }
  return list;
}

Json entry_json(const ptx::EntryAnalysis& entry) {
  Json json{{"entry", entry.entry}, {"parameters", Json::array()}};
  for (const ptx::ParameterUse& use : entry.parameters) {
    json["parameters"].push_back(Json{{"name", use.name},
                                      {"index", use.base.index},
                                      {"reads", use.reads},
                                      {"writes", use.writes},
                                      {"updates", use.updates},
                                      {"indirect", use.indirect}});
  }
  json["variables"] = entry.variables;
  json["pinned"] = reasons_json(entry.pinned);
  return json;
}

Json range_json(const ptx::Launch& launch, const ptx::BufferRange& range) {
  Json json{{"argument", range.argument},
            {"buffer", buffer_of(launch, range.argument).name},
            {"effect", to_string(range.effect)},
            {"exact", range.exact},
            {"bytes", Json::array()}};
  for (const ptx::ByteSet& set : range.bytes) {
    Json bytes{{"from", set.first}, {"to", set.first + set.run}};
    for (const ptx::Repeat& repeat : set.repeats) {
      bytes["repeats"].push_back(Json{{"stride", repeat.stride}, {"count", repeat.count}});
    }
    json["bytes"].push_back(std::move(bytes));
  }
  json["reasons"] = reasons_json(range.reasons);
  return json;
}

std::vector<ptx::Reason> pinned_of(const kernels::LaunchTouch& touch) {
  std::vector<ptx::Reason> reasons = touch.ranges.pinned;
  if (reasons.empty() && touch.pinned != kernels::Pin::kNone)
    reasons.push_back({{}, std::string(to_string(touch.pinned))});
  return reasons;
}

Json kernels_json(const KernelFile& file) {
  Json json{{"schema", "tangram.kernel_analysis/1"}, {"status", "ok"}, {"entries", Json::array()}};
  for (const ptx::EntryAnalysis& entry : file.entries) json["entries"].push_back(entry_json(entry));
  json["launches"] = Json::array();
  for (const AnalyzedLaunch& analyzed : file.launches) {
    const ptx::Launch& launch = analyzed.recorded.launch;
    Json one{{"line", analyzed.recorded.line}, {"entry", launch.entry}, {"ranges", Json::array()}};
    for (const ptx::BufferRange& range : analyzed.touch.ranges.ranges)
      one["ranges"].push_back(range_json(launch, range));
    if (analyzed.touch.signature != nullptr) one["signature"] = analyzed.touch.signature->family;
    one["pinned"] = reasons_json(pinned_of(analyzed.touch));
    json["launches"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

ExitCode analyze_kernels(const AnalyzeOptions& options, const Context& context) {
  const auto file = load_kernels(options);
  if (!file) return report(context.terminal, context.json, file.error());
  return print_result(context, for_people(*file, options, context.terminal), kernels_json(*file));
}

}  // namespace tangram::app
