// Metis (Um et al., ATC 2024): one JSON file for each GPU, tp and samples, named DeviceType.GPU_tpT_bsB.json, or
// GPU/mbsB_tmpT.json as Sailor writes the same format. Read of it:
//   execution_time.layer_compute_total_ms      forward and backward together of one microbatch, layer by layer; the
//                                              exchanges of tp are in it
//   model.parameters.parameters_per_layer_bytes   Metis' own files hold a count of parameters there, Sailor's bytes
//   execution_memory.layer_memory_total_mb     states and activations in one, so that no activation can be told from it
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "context.hpp"
#include "layers.hpp"
#include "reading.hpp"

namespace tangram::profiles {
namespace {

struct MetisFileName {
  std::string gpu;
  std::string model;
  int tp = 0;
  int samples = 0;
  bool by_sailor = false;
};

std::optional<MetisFileName> parse_metis_name(const std::string& path) {
  const std::string name = file_name(path);
  const auto made = [](const std::optional<std::string>& samples, const std::optional<std::string>& tp) {
    MetisFileName out;
    out.samples = whole_number(samples.value_or("")).value_or(0);
    out.tp = whole_number(tp.value_or("")).value_or(0);
    return out;
  };
  MetisFileName out;
  if (name.starts_with("DeviceType.")) {
    out = made(text_between(name, "_bs", ".json"), text_between(name, "_tp", "_bs"));
    out.gpu = text_between(name, "DeviceType.", "_tp").value_or("");
  } else if (name.starts_with("mbs")) {
    out = made(text_between(name, "mbs", "_tmp"), text_between(name, "_tmp", ".json"));
    out.gpu = folder_above(path, 1);
    out.model = folder_above(path, 2);
    out.by_sailor = true;
  }
  return out.samples > 0 && out.tp > 0 ? std::optional(out) : std::nullopt;
}

class MetisImport {
 public:
  explicit MetisImport(Context& context) : context_(context) {}

  void add(const SourceFile& file) {
    const auto name = parse_metis_name(file.path);
    if (!name) {
      context_.add_file_error(file.path, "unknown-value", "the name does not say GPU, tp and samples",
                              "files are named DeviceType.A100_tp1_bs2.json, or A100-40/mbs2_tmp1.json");
      return;
    }
    const auto* device = context_.gpu(name->gpu, file.path);
    const auto dimensions = device != nullptr ? dimensions_of(*name, file.path) : std::nullopt;
    auto document = io::parse_json(file.text, file.path);
    if (!document) return context_.add_error(document.error());
    if (dimensions) read(*document, *name, *device, *dimensions);
  }

  void finish() {
    note_memory();
    for (auto& [key, raw] : raws_) context_.add(std::move(raw));
  }

 private:
  std::optional<Dimensions> dimensions_of(const MetisFileName& name, const std::string& file) {
    if (!context_.request.model) {
      context_.add_file_error(file, "unknown-model", "the file does not say what a block looks like",
                              "give it with --model");
      return std::nullopt;
    }
    auto out = context_.dimensions(file);
    // Sailor converted its own 32-bit layers.
    if (out && name.by_sailor && bytes_of(out->dtype) < 4) out->dtype = DType::kFp32;
    return out;
  }

  void read(const io::Document& document, const MetisFileName& name, const cluster::GpuType& device,
            const Dimensions& dimensions) {
    const io::Node* layers = find_path(document.root, {"execution_time", "layer_compute_total_ms"});
    if (layers == nullptr) {
      return context_.add_error(error_at(document, document.root, "missing-key",
                                         "there is no \"execution_time\" with \"layer_compute_total_ms\""));
    }
    const auto times = numbers(document, *layers);
    if (!times) return context_.add_error(times.error());
    if (!divides(times->size(), dimensions, 1, 2, document.file, context_)) return;
    if (!same_model(document, name, dimensions)) return;
    keep_memory(document, name, device);
    const LayerTimes whole = layer_times(*times, dimensions, 1, document.file, context_);
    RawProfile& raw = raws_[device.name];
    raw.gpu = device.name;
    raw.source = "profiles in Metis' format; forward and backward as a third and two thirds of their measured sum";
    raw.dimensions = dimensions;
    raw.unit = kMilliseconds;
    raw.includes_tp_communication = true;
    raw.backward_measured = false;
    add_row(raw, cost::ProfileKind::kBlock, whole.block, name, document.file);
    add_row(raw, cost::ProfileKind::kHead, whole.head, name, document.file);
    context_.notes.detected("sum-of-passes", "",
                            "forward and backward were timed together; a third and two thirds are what products take");
    context_.notes.left_out("embedding", "", "embeddings: looking up and adding gradients do not divide like products");
  }

  static void add_row(RawProfile& raw, cost::ProfileKind kind, double time, const MetisFileName& name,
                      const std::string& file) {
    RawRow row;
    row.kind = kind;
    row.sequence_length = raw.dimensions.sequence_length;
    row.tp = name.tp;
    row.samples = name.samples;
    row.forward = time / 3;
    row.backward = time - row.forward;
    if (is_sentinel(time)) row.forward = row.backward = time;
    row.file = file;
    raw.rows.push_back(row);
  }

  /// Parameters of one rank are counts, or bytes of 2 or 4; what every rank holds (norms, some biases) does not weigh.
  bool same_model(const io::Document& document, const MetisFileName& name, const Dimensions& dimensions) {
    const io::Node* list = find_path(document.root, {"model", "parameters", "parameters_per_layer_bytes"});
    if (list == nullptr) return true;
    const auto sizes = numbers(document, *list);
    if (!sizes || sizes->size() < 3) return true;
    const double parameters = static_cast<double>(model::parameters(dimensions.block).total()) / name.tp;
    for (const double element : {4.0, 2.0}) {
      const auto unit = size_unit((*sizes)[1], parameters * element, element);
      if (!unit || (unit->name != "bytes" && unit->name != "elements")) continue;
      if (unit->name == "elements") {
        context_.notes.corrected(
            "size-unit", document.file,
            fmt::format("parameters_per_layer_bytes counts parameters: {:.1f} M in a block", (*sizes)[1] / 1e6));
      }
      return true;
    }
    context_.notes.left_out(
        "other-model", document.file,
        fmt::format("parameters_per_layer_bytes of a block are {:.4g}; the model's block has {:.4g} "
                    "parameters",
                    (*sizes)[1], parameters));
    return false;
  }

  void keep_memory(const io::Document& document, const MetisFileName& name, const cluster::GpuType& device) {
    const io::Node* list = find_path(document.root, {"execution_memory", "layer_memory_total_mb"});
    if (list == nullptr) return;
    const auto sizes = numbers(document, *list);
    if (!sizes || sizes->size() < 3) return;
    memory_[device.name][name.tp].push_back({static_cast<double>(name.samples), (*sizes)[1]});
  }

  void note_memory() {
    if (memory_.empty()) return;
    bool computed = false;
    for (auto& [gpu, by_tp] : memory_) {
      for (auto& [tp, samples] : by_tp) {
        std::ranges::sort(samples, {}, &Sample::samples);
        computed = computed || is_computed(samples) || same_elsewhere(gpu, tp, samples);
      }
    }
    if (computed) {
      context_.notes.detected(
          "computed-memory", "",
          "layer_memory_total_mb was calculated: an exact line over samples, or equal on other GPUs");
    }
    context_.notes.left_out("memory", "", "layer_memory_total_mb: states and activations in one number");
  }

  [[nodiscard]] bool same_elsewhere(const std::string& gpu, int tp, const std::vector<Sample>& samples) const {
    return std::ranges::any_of(memory_, [&](const auto& other) {
      const auto found = other.second.find(tp);
      if (other.first == gpu || found == other.second.end()) return false;
      return std::ranges::any_of(found->second, [&](const Sample& a) {
        return std::ranges::any_of(samples,
                                   [&](const Sample& b) { return a.samples == b.samples && a.time == b.time; });
      });
    });
  }

  Context& context_;
  std::map<std::string, RawProfile> raws_;
  std::map<std::string, std::map<int, std::vector<Sample>>> memory_;  ///< MB of a block, by GPU and tp
};

}  // namespace

void import_metis(Context& context) {
  MetisImport import(context);
  for (const SourceFile& file : context.request.files) import.add(file);
  import.finish();
}

}  // namespace tangram::profiles
