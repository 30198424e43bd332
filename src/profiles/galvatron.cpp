// Galvatron (Miao et al., VLDB 2022; github.com/PKU-DAIR/Hetu-Galvatron). Its files, told apart by their keys:
//   computation_profiling_PRECISION_MODEL_*.json   "layertype_0_bszB_seqS": milliseconds of one block's forward pass,
//       for one sample of B; "layertype_other_bszB_seqS": embedding and head together; both derived from
//       "layernum[N]_bszB_seqS", the whole model with N blocks. Backward is not timed: Galvatron takes twice forward.
//   memory_profiling_*.json   "layertype_0_sp": {S: {parameter_size: MB in 32 bits, tp_activation_per_bsz_dict: {tp:
//   MB}}} sp_time_*.json            "allreduce_size_N_KMB_time", "all2all_size_N_KMB_time": milliseconds
//   allreduce_bandwidth_*.json, p2p_bandwidth_*.json   GB/s without a size: no curve
#include <fmt/format.h>

#include <map>

#include "context.hpp"
#include "reading.hpp"

namespace tangram::profiles {
namespace {

constexpr const char* kSource = "Galvatron's profiler (github.com/PKU-DAIR/Hetu-Galvatron)";

struct TimeKey {
  std::string layer;  ///< "0", "other", or "" of a whole model
  int blocks = 0;     ///< of a whole model
  int samples = 0;
  int tokens = 0;
};

std::optional<TimeKey> parse_time_key(const std::string& key) {
  TimeKey out;
  out.samples = whole_number(text_between(key, "_bsz", "_seq").value_or("")).value_or(0);
  out.tokens = whole_number(text_between(key, "_seq", "").value_or("")).value_or(0);
  out.layer = text_between(key, "layertype_", "_bsz").value_or("");
  out.blocks = whole_number(text_between(key, "layernum[", "]").value_or("")).value_or(0);
  const bool known = out.samples > 0 && out.tokens > 0 && (!out.layer.empty() || out.blocks > 0);
  return known ? std::optional(out) : std::nullopt;
}

DType dtype_in(const std::string& path, DType otherwise) {
  const std::string name = file_name(path);
  for (const DType type : {DType::kBf16, DType::kFp16, DType::kFp32}) {
    if (name.find(fmt::format("_{}_", to_string(type))) != std::string::npos) return type;
  }
  return otherwise;
}

class GalvatronImport {
 public:
  explicit GalvatronImport(Context& context) : context_(context) {}

  void run() {
    std::vector<io::Document> documents;
    for (const SourceFile& file : context_.request.files) {
      auto document = io::parse_json(file.text, file.path);
      if (!document) {
        context_.add_error(document.error());
      } else if (document->root.kind != io::NodeKind::kObject || document->root.members.empty()) {
        context_.notes.left_out("unknown-file", file.path, "not one of Galvatron's profiles");
      } else {
        documents.push_back(std::move(*document));
      }
    }
    for (const io::Document& document : documents) take_memory(document);
    for (const io::Document& document : documents) take(document);
  }

 private:
  void take(const io::Document& document) {
    const std::string& key = document.root.members.front().key;
    if (key.starts_with("layernum[") || key.starts_with("layertype_")) {
      if (document.root.members.front().value.kind != io::NodeKind::kObject) take_times(document);
    } else if (key.find("_size_") != std::string::npos && key.ends_with("MB_time")) {
      take_collectives(document);
    } else if (key.starts_with("allreduce_size_") || key.starts_with("pp_size_")) {
      note_bandwidths(document);
    } else if (key == "overlap_coe") {
      context_.notes.left_out("overlap", document.file, "the slow-down of overlapped kernels: no time of a layer");
    } else if (!is_memory(document)) {
      context_.notes.left_out("unknown-file", document.file, "not one of Galvatron's profiles");
    }
  }

  // Times.

  std::optional<Dimensions> dimensions(const std::string& file) {
    if (!context_.request.model) {
      context_.add_file_error(file, "unknown-model", "the file does not say what a block looks like",
                              "give it with --model");
      return std::nullopt;
    }
    auto out = context_.dimensions(file);
    if (out) out->dtype = dtype_in(file, out->dtype);
    return out;
  }

  void take_times(const io::Document& document) {
    const auto* device = context_.gpu("", document.file);
    if (device == nullptr) return;
    const auto found = dimensions(document.file);
    if (!found) return;
    RawProfile raw;
    raw.gpu = device->name;
    raw.dimensions = *found;
    raw.source = fmt::format("{}; backward as twice the measured forward", kSource);
    raw.unit = kMilliseconds;
    raw.backward_measured = false;
    read_times(document, raw);
    if (raw.rows.empty()) {
      context_.notes.left_out("incomplete", document.file,
                              "whole models of one number of blocks alone: the time of a block cannot be told");
      return;
    }
    context_.notes.detected("computed-backward", document.file,
                            "forward alone was timed; backward is taken as twice of it");
    context_.add(std::move(raw));
  }

  void read_times(const io::Document& document, RawProfile& raw) {
    std::map<std::pair<int, int>, std::map<int, double>> whole;  ///< (tokens, samples): time by blocks
    for (const io::Member& member : document.root.members) {
      const auto key = parse_time_key(member.key);
      const bool is_number = member.value.kind == io::NodeKind::kNumber || member.value.kind == io::NodeKind::kInteger;
      if (!key || !is_number) continue;
      if (key->layer == "0")
        add_row(raw, cost::ProfileKind::kBlock, *key, member.value.number * key->samples, document.file);
      if (key->layer == "other")
        add_row(raw, cost::ProfileKind::kHead, *key, member.value.number * key->samples, document.file);
      if (key->blocks > 0) whole[{key->tokens, key->samples}][key->blocks] = member.value.number;
      if (!key->layer.empty() && key->layer != "0" && key->layer != "other") {
        context_.notes.left_out("layer-type", document.file, fmt::format("{}: a second type of layers", member.key));
      }
    }
    if (raw.rows.empty()) derive(whole, raw, document.file);
    if (raw.rows.empty()) return;
    context_.notes.detected("embedding-in-head", document.file,
                            "embedding and head were timed together: taken as the head, the embedding stays modelled");
  }

  /// time(n blocks) = other + n block, of all samples.
  void derive(const std::map<std::pair<int, int>, std::map<int, double>>& whole, RawProfile& raw,
              const std::string& file) {
    for (const auto& [point, times] : whole) {
      if (times.size() < 2) continue;
      const auto& [few, few_time] = *times.begin();
      const auto& [many, many_time] = *times.rbegin();
      const double block = (many_time - few_time) / (many - few);
      const TimeKey key{"", 0, point.second, point.first};
      add_row(raw, cost::ProfileKind::kBlock, key, block, file);
      add_row(raw, cost::ProfileKind::kHead, key, few_time - few * block, file);
    }
  }

  void add_row(RawProfile& raw, cost::ProfileKind kind, const TimeKey& key, double forward, const std::string& file) {
    RawRow row;
    row.kind = kind;
    row.sequence_length = key.tokens;
    row.samples = key.samples;
    row.forward = forward;
    row.backward = 2 * forward;
    row.file = file;
    const auto activation = activations_.find(key.tokens);
    if (kind == cost::ProfileKind::kBlock && activation != activations_.end()) {
      row.activation = activation->second * key.samples;
      context_.notes.detected("computed-memory", file, "activations are those of one sample times the samples");
    }
    raw.rows.push_back(row);
  }

  // Memory.

  static bool is_memory(const io::Document& document) {
    for (const io::Member& member : document.root.members) {
      if (member.value.kind == io::NodeKind::kObject) return true;
    }
    return false;
  }

  /// tp 1 alone: no other degree was timed.
  void take_memory(const io::Document& document) {
    const io::Node* layer = document.root.find("layertype_0_sp");
    if (layer == nullptr) layer = document.root.find("layertype_0");
    if (layer == nullptr || layer->kind != io::NodeKind::kObject) {
      if (is_memory(document)) {
        context_.notes.left_out("incomplete", document.file, "memory of whole models alone, none of a layer");
      }
      return;
    }
    for (const io::Member& length : layer->members) {
      const auto tokens = whole_number(length.key);
      const io::Node* size = find_path(length.value, {"parameter_size"});
      const io::Node* one = find_path(length.value, {"tp_activation_per_bsz_dict", "1"});
      if (!tokens || size == nullptr || one == nullptr) continue;
      const double scale = memory_scale(document.file, size->number);
      if (scale > 0) activations_[*tokens] = one->number * scale;
    }
  }

  /// Bytes of the file's "MB", from the parameters of a block, which are known.
  double memory_scale(const std::string& file, double parameter_size) {
    if (!context_.request.model) return kMiB;  // reported with the times
    const auto found = dimensions(file);
    if (!found) return 0;
    const auto bytes = 4 * static_cast<double>(model::parameters(found->block).total());
    const auto unit = size_unit(parameter_size, bytes, 4);
    if (!unit) {
      context_.notes.left_out(
          "other-model", file,
          fmt::format("parameter_size of a block is {:.1f}, its parameters in 32 bits make {:.1f} MiB", parameter_size,
                      bytes / kMiB));
      return 0;
    }
    context_.notes.detected("size-unit", file,
                            fmt::format("sizes called MB are {}: that is what a block's parameters make", unit->name));
    return unit->scale;
  }

  // Links.

  void take_collectives(const io::Document& document) {
    const auto* device = context_.gpu("", document.file);
    if (device == nullptr) return;
    std::map<std::pair<cost::Exchange, int>, std::vector<RawPoint>> curves;
    for (const io::Member& member : document.root.members) {
      const auto ranks =
          whole_number(text_between(text_between(member.key, "_size_", "MB_time").value_or(""), "", "_").value_or(""));
      const auto size =
          whole_number(text_between(member.key, fmt::format("_size_{}_", ranks.value_or(0)), "MB_time").value_or(""));
      if (!ranks || *ranks < 2 || !size) continue;
      const auto operation = member.key.starts_with("all2all") ? cost::Exchange::kAllToAll : cost::Exchange::kAllReduce;
      curves[{operation, *ranks}].push_back({*size * kMiB, member.value.number});
    }
    const int per_node =
        whole_number(text_between(file_name(document.file), "nodes_", "gpus").value_or("")).value_or(0);
    for (const auto& [key, points] : curves) {
      const int inside = per_node > 0 ? std::min(per_node, key.second) : key.second;
      add_curve(context_, *device, key.first, {inside, key.second / inside, 1}, points, kMilliseconds, document.file,
                kSource);
    }
  }

  void note_bandwidths(const io::Document& document) {
    std::vector<double> values;
    values.reserve(document.root.members.size());
    for (const io::Member& member : document.root.members) values.push_back(member.value.number);
    const auto* device = context_.gpu("", document.file);
    if (device == nullptr) return;
    const double link = cost::fastest_link(*device).value();
    const auto unit = link > 0 ? bandwidth_unit(median(values), link) : std::nullopt;
    if (unit && unit->name != "GB/s") {
      context_.notes.corrected("bandwidth-unit", document.file, fmt::format("bandwidths are {}, not GB/s", unit->name));
    }
    context_.notes.left_out("no-size", document.file,
                            "bandwidths without the size they were measured at make no curve");
  }

  Context& context_;
  std::map<int, double> activations_;  ///< bytes of one sample at tp 1, by sequence length
};

}  // namespace

void import_galvatron(Context& context) { GalvatronImport(context).run(); }

}  // namespace tangram::profiles
