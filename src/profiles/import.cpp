#include "tangram/profiles/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "context.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/cluster/gpu_names.hpp"

namespace tangram::profiles {
namespace {

struct ToolEntry {
  Tool tool;
  std::string_view name;
  void (*import)(Context&);
};

constexpr std::array kTools = {
    ToolEntry{Tool::kSailor, "sailor", import_sailor},
    ToolEntry{Tool::kMetis, "metis", import_metis},
    ToolEntry{Tool::kGalvatron, "galvatron", import_galvatron},
    ToolEntry{Tool::kAmp, "amp", import_amp},
    ToolEntry{Tool::kNcclTests, "nccl-tests", import_nccl_tests},
};

/// A long message uses a good part of its link, so that a slip of a unit shows as far more than the link; a little more
/// than the link is a wrong point, not a wrong unit.
constexpr double kSlip = 10;
constexpr int kMostRanks = 65'536;

const ToolEntry& entry_of(Tool tool) {
  return *std::ranges::find_if(kTools, [&](const ToolEntry& entry) { return entry.tool == tool; });
}

Diagnostic plain(std::string code, std::string message, std::string hint) {
  return problem(ErrorKind::kInput, std::move(code), std::move(message), std::move(hint));
}

std::optional<Diagnostic> complaint(const Request& request, std::span<const cluster::GpuType> devices) {
  if (request.gpu.empty()) return std::nullopt;
  if (std::ranges::find(devices, request.gpu, &cluster::GpuType::name) != devices.end()) return std::nullopt;
  return plain("unknown-name", fmt::format("there is no GPU type \"{}\"", request.gpu),
               cluster::suggested_gpu(request.gpu, devices, "types are those of the catalogue"));
}

/// Why nothing was imported: what was left out last says it best.
Diagnostic nothing(const std::vector<Note>& notes, Tool tool) {
  const auto last =
      std::find_if(notes.rbegin(), notes.rend(), [](const Note& n) { return n.kind == NoteKind::kLeftOut; });
  if (last != notes.rend()) {
    Diagnostic diagnostic = plain("nothing-imported", last->message, "nothing else in these files can be imported");
    diagnostic.where.file = last->file;
    return diagnostic;
  }
  return plain("nothing-imported", fmt::format("no measurement of {} in these files", to_string(tool)), "");
}

}  // namespace

std::string_view to_string(Tool tool) { return entry_of(tool).name; }

std::optional<Tool> parse_tool(std::string_view name) {
  for (const ToolEntry& entry : kTools) {
    if (entry.name == name) return entry.tool;
  }
  return std::nullopt;
}

std::vector<std::string> tool_names() {
  std::vector<std::string> names;
  names.reserve(kTools.size());
  for (const ToolEntry& entry : kTools) names.emplace_back(entry.name);
  return names;
}

std::string_view to_string(NoteKind kind) {
  switch (kind) {
    case NoteKind::kDetected: return "detected";
    case NoteKind::kCorrected: return "corrected";
    case NoteKind::kLeftOut: return "left out";
  }
  return "detected";
}

Expected<Imported> import_profiles(const Request& request, std::span<const cluster::GpuType> devices) {
  if (auto wrong = complaint(request, devices)) return fail(std::move(*wrong));
  Notes notes;
  Diagnostics mistakes;
  Context context{request, devices, notes, mistakes, {}};
  entry_of(request.tool).import(context);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  Imported imported;
  imported.profiles = join(std::move(context.profiles));
  imported.notes = notes.take();
  if (imported.profiles.empty()) return fail(nothing(imported.notes, request.tool));
  return imported;
}

void Context::add(RawProfile raw) {
  raw.date = request.date;
  const cluster::GpuType* device = cluster::device_of(raw.gpu, devices);
  profiles.push_back(normalized(std::move(raw), *device, notes));
}

void Context::add_error(Diagnostic diagnostic) { mistakes.push_back(std::move(diagnostic)); }

void Context::add_error(Diagnostics diagnostics) {
  mistakes.insert(mistakes.end(), diagnostics.begin(), diagnostics.end());
}

void Context::add_file_error(const std::string& file, std::string code, std::string message, std::string hint) {
  Diagnostic diagnostic = plain(std::move(code), std::move(message), std::move(hint));
  diagnostic.where.file = file;
  add_error(std::move(diagnostic));
}

const cluster::GpuType* Context::gpu(const std::string& name, const std::string& file) {
  const cluster::GpuType* named = cluster::device_of(name, devices);
  if (!request.gpu.empty()) {
    if (named == nullptr || cluster::may_mean(name, request.gpu)) return cluster::device_of(request.gpu, devices);
    notes.left_out("other-gpu", file, fmt::format("of {}, not of {}", name, request.gpu));
    return nullptr;
  }
  if (named == nullptr) {
    add_file_error(file, "unknown-gpu",
                   name.empty() ? std::string("no GPU type can be told from the file or its name")
                                : fmt::format("\"{}\" is no GPU type of the catalogue", name),
                   "name it with --gpu");
  }
  return named;
}

const cluster::GpuType* Context::one_of_several_gpus(const std::string& name, const std::string& file) {
  if (cluster::device_of(name, devices) != nullptr) return gpu(name, file);
  notes.left_out("unknown-gpu", file, fmt::format("\"{}\" is no GPU type of the catalogue", name));
  return nullptr;
}

std::optional<Dimensions> Context::dimensions(const std::string& file) {
  if (!request.model) return std::nullopt;
  const model::Model& model = *request.model;
  const bool uniform = std::ranges::all_of(model.blocks, [&](int type) { return type == model.blocks.front(); });
  if (!uniform || model.blocks.empty()) {
    add_file_error(file, "several-block-types",
                   fmt::format("{} has several types of blocks, the file measures one", model.name),
                   "give a model of one type of block");
    return std::nullopt;
  }
  return Dimensions{
      model.block(0),      model.block_count(),      model.vocabulary, model.hidden, model.job.sequence_length,
      model.job.precision, model.job.flash_attention};
}

model::BlockType gpt_block(std::int64_t hidden, int heads, std::int64_t tokens) {
  model::BlockType block;
  block.hidden = hidden;
  block.tokens = tokens;
  block.attention.heads = heads;
  block.attention.kv_heads = heads;
  block.attention.head_dim = static_cast<int>(hidden / heads);
  block.attention.qkv_bias = true;
  block.attention.output_bias = true;
  block.feed_forward.hidden = 4 * hidden;
  block.feed_forward.gated = false;
  block.feed_forward.bias = true;
  block.norm_bias = true;
  return block;
}

void add_curve(Context& context, const cluster::GpuType& device, cost::Exchange operation,
               const cost::CurveGroup& group, const std::vector<RawPoint>& points, const Unit& declared,
               const std::string& file, const std::string& source) {
  std::vector<RawPoint> real;
  std::ranges::copy_if(points, std::back_inserter(real), [](const RawPoint& p) {
    return p.bytes >= 1 && p.bytes < 1e15 && p.time > 0 && !is_sentinel(p.time);
  });
  if (real.empty() || group.ranks() < 2 || group.ranks() > kMostRanks) return;
  const RawPoint longest = *std::ranges::max_element(real, {}, &RawPoint::bytes);
  const double link = cost::fastest_link(device).value();
  double scale = declared.scale;
  const double amount = cost::bus_share(operation, group.ranks()) * longest.bytes;
  const double share = link > 0 ? amount / (longest.time * declared.scale) / link : 1;
  if (share < kLeastRate || share > kSlip) {
    const auto unit = time_unit(amount, link, longest.time, declared);
    if (!unit) {
      context.notes.left_out("implausible-bandwidth", file,
                             fmt::format("{} over {} ranks: no unit of time fits {:.4g} for {:.4g} bytes on links of "
                                         "{:.4g} GB/s",
                                         to_string(operation), group.ranks(), longest.time, longest.bytes, link / 1e9));
      return;
    }
    context.notes.corrected("time-unit", file,
                            fmt::format("{} over {} ranks: times are {}, not {}: {:.4g} bytes in {:.4g} {} would be "
                                        "{:.3g} GB/s on links of {:.4g}",
                                        to_string(operation), group.ranks(), unit->name, declared.name, longest.bytes,
                                        longest.time, declared.name, share * link / 1e9, link / 1e9));
    scale = unit->scale;
  }
  cost::CollectiveCurve curve{operation, group, {}};
  for (const RawPoint& p : real) {
    curve.points.push_back({Bytes(std::llround(p.bytes)), measured_nanoseconds(p.time * scale)});
  }
  curve = normalized_curve(std::move(curve), device, file, context.notes);
  if (curve.points.empty()) return;
  cost::Profile profile;
  profile.device = device;
  profile.source = source;
  profile.date = context.request.date;
  profile.collectives = {std::move(curve)};
  context.profiles.push_back(std::move(profile));
}

}  // namespace tangram::profiles
