// AMP (Li et al., NeurIPS 2022): known_cost/MODEL_INSTANCE_TP.npy, INSTANCE P3 (V100) or G4 (T4): seconds of the
// forward pass of each layer of the pipeline, one sample, with the exchanges of tp. A GPT is [embedding, noop, blocks,
// noop, final norm, head, loss]. Backward was not timed; AMP takes twice forward.
#include <fmt/format.h>

#include <map>

#include "context.hpp"
#include "layers.hpp"
#include "npy.hpp"
#include "reading.hpp"

namespace tangram::profiles {
namespace {

constexpr std::size_t kBefore = 2;  // embedding, noop
constexpr std::size_t kAfter = 4;   // noop, final norm, head, loss

struct AmpFileName {
  std::string instance;
  int tp = 0;
};

std::optional<AmpFileName> parse_amp_name(const std::string& path) {
  std::string name = file_name(path);
  if (!name.ends_with(".npy")) return std::nullopt;
  name.resize(name.size() - 4);
  const std::vector<std::string> parts = split(name, '_');
  if (parts.size() < 3) return std::nullopt;
  const auto tp = whole_number(parts.back());
  return tp && *tp > 0 ? std::optional(AmpFileName{parts[parts.size() - 2], *tp}) : std::nullopt;
}

RawRow row_of(cost::ProfileKind kind, double forward, int tp, std::int64_t tokens, const std::string& file) {
  RawRow row;
  row.kind = kind;
  row.sequence_length = tokens;
  row.tp = tp;
  row.forward = forward;
  row.backward = is_sentinel(forward) ? forward : 2 * forward;
  row.file = file;
  return row;
}

void import_file(const SourceFile& file, std::map<std::string, RawProfile>& raws, Context& context) {
  const auto name = parse_amp_name(file.path);
  if (!name) {
    return context.add_file_error(file.path, "unknown-value", "the name does not say instance and tp",
                                  "files are named MODEL_P3_2.npy");
  }
  const auto* device = context.gpu(name->instance, file.path);
  const auto times = read_npy(file.text, file.path);
  if (!times) return context.add_error(times.error());
  if (!context.request.model) {
    return context.add_file_error(file.path, "unknown-model", "the file does not say what a block looks like",
                                  "give it with --model");
  }
  const auto dimensions = context.dimensions(file.path);
  if (device == nullptr || !dimensions) return;
  if (times->size() != kBefore + static_cast<std::size_t>(dimensions->blocks) + kAfter) {
    return context.notes.left_out("other-model", file.path,
                                  fmt::format("{} layers; {} blocks, 2 layers before and 4 after make {}",
                                              times->size(), dimensions->blocks, dimensions->blocks + 6));
  }
  const LayerTimes layers = layer_times(*times, *dimensions, kBefore, file.path, context);
  RawProfile& raw = raws[device->name];
  raw.gpu = device->name;
  raw.dimensions = *dimensions;
  raw.source = "AMP (Li et al., NeurIPS 2022), layer times; backward as twice the measured forward";
  raw.unit = kSeconds;
  raw.includes_tp_communication = true;
  raw.backward_measured = false;
  raw.rows.push_back(row_of(cost::ProfileKind::kBlock, layers.block, name->tp, dimensions->sequence_length, file.path));
  raw.rows.push_back(row_of(cost::ProfileKind::kHead, layers.head, name->tp, dimensions->sequence_length, file.path));
  context.notes.detected("computed-backward", "", "forward alone was timed; backward is taken as twice of it");
  context.notes.left_out("embedding", "", "embeddings: the gradient of the table was not timed");
}

}  // namespace

void import_amp(Context& context) {
  std::map<std::string, RawProfile> raws;
  for (const SourceFile& file : context.request.files) import_file(file, raws, context);
  for (auto& [gpu, raw] : raws) context.add(std::move(raw));
}

}  // namespace tangram::profiles
