// Sailor (Strati et al., SOSP 2025; github.com/eth-easl/sailor). Its files, told apart by what is in them:
//   profile.json                   {mbs: {tp: {layer: [forward, backward, update]}}}, seconds; layer 0 embedding, then
//                                  blocks, then one or two that make the head. Times hold the exchanges of tp.
//                                  In folders MODEL/GPU/
//   profiles_tmp.json              {model: {gpu: <the same>}}
//   llm_info.json, training_config_*.json   the models (sailor_models.cpp)
//   NAME_mbsB_tpT_algoA.csv        operators, microseconds and MiB (sailor_operators.cpp)
//   prim_NAME_OP_Ngpus.csv, p2p_*_node.csv  collectives (sailor_collectives.cpp)
// `update` is one number of the whole model that was profiled, repeated for each layer, and is left out.
#include "sailor.hpp"

#include <fmt/format.h>

#include "layers.hpp"
#include "reading.hpp"

namespace tangram::profiles {
namespace {

constexpr const char* kSailorSource = "Sailor's planner (github.com/eth-easl/sailor), ";

/// Members deep until something else than an object.
std::size_t depth_of(const io::Node& root) {
  std::size_t depth = 0;
  const io::Node* node = &root;
  while (node->kind == io::NodeKind::kObject && !node->members.empty()) {
    node = &node->members.front().value;
    ++depth;
  }
  return node->kind == io::NodeKind::kArray ? depth : 0;
}

struct LayerTable {
  const io::Document& document;
  const io::Node& by_microbatch;
  std::string model;
  std::string gpu;
  bool one_of_several = false;
};

class TableImport {
 public:
  TableImport(const LayerTable& table, SailorModels& models, Context& context)
      : table_(table), models_(models), context_(context), file_(table.document.file) {}

  void run() {
    const auto* device =
        table_.one_of_several ? context_.one_of_several_gpus(table_.gpu, file_) : context_.gpu(table_.gpu, file_);
    if (device == nullptr) return;
    const auto dimensions = models_.dimensions(table_.model, file_, context_);
    if (!dimensions || !models_.agrees(table_.model, *dimensions, file_, context_)) return;
    raw_.gpu = device->name;
    raw_.dimensions = *dimensions;
    raw_.source = kSailorSource + std::string("times of layers");
    if (!table_.model.empty() && !table_.gpu.empty()) {
      raw_.source += fmt::format(", {} on {}", table_.model, table_.gpu);
    }
    raw_.unit = kSeconds;
    raw_.includes_tp_communication = true;
    read_microbatches();
    note_the_rest();
    if (!raw_.rows.empty()) context_.add(std::move(raw_));
  }

 private:
  void read_microbatches() {
    for (const io::Member& microbatch : table_.by_microbatch.members) {
      for (const io::Member& degree : microbatch.value.members) {
        const auto samples = whole_number(microbatch.key);
        const auto tp = whole_number(degree.key);
        if (!samples || !tp || *samples < 1 || *tp < 1) {
          context_.add_error(
              error_at(table_.document, degree.value, "unknown-value",
                       fmt::format("\"{}\" and \"{}\" are no microbatch and degree", microbatch.key, degree.key)));
          return;
        }
        read_layers(degree.value, *samples, *tp);
      }
    }
  }

  /// [forward, backward, update] of layers 0, 1, ...
  void read_layers(const io::Node& layers, int samples, int tp) {
    std::vector<double> forward;
    std::vector<double> backward;
    for (std::size_t i = 0; i < layers.members.size(); ++i) {
      const io::Node* layer = layers.find(std::to_string(i));
      const auto times =
          layer == nullptr ? Expected<std::vector<double>>(std::vector<double>()) : numbers(table_.document, *layer);
      if (!times) return context_.add_error(times.error());
      if (times->size() < 2) {
        return context_.add_error(error_at(table_.document, layer == nullptr ? layers : *layer, "wrong-type",
                                           fmt::format("layer {} lacks [forward, backward, update]", i)));
      }
      forward.push_back((*times)[0]);
      backward.push_back((*times)[1]);
    }
    if (!divides(forward.size(), raw_.dimensions, 1, 2, file_, context_)) return;
    const LayerTimes ahead = layer_times(forward, raw_.dimensions, 1, file_, context_);
    const LayerTimes back = layer_times(backward, raw_.dimensions, 1, file_, context_);
    add(cost::ProfileKind::kEmbedding, samples, tp, ahead.embedding, back.embedding);
    add(cost::ProfileKind::kBlock, samples, tp, ahead.block, back.block);
    add(cost::ProfileKind::kHead, samples, tp, ahead.head, back.head);
  }

  void add(cost::ProfileKind kind, int samples, int tp, double forward, double backward) {
    RawRow row;
    row.kind = kind;
    row.sequence_length = raw_.dimensions.sequence_length;
    row.tp = tp;
    row.samples = samples;
    row.forward = forward;
    row.backward = backward;
    row.file = file_;
    if (kind == cost::ProfileKind::kBlock) {
      row.activation = samples * models_.activation(table_.model, tp, raw_.dimensions.blocks);
      with_activation_ = with_activation_ || row.activation > 0;
    }
    raw_.rows.push_back(row);
  }

  void note_the_rest() {
    if (raw_.rows.empty()) return;
    context_.notes.left_out("update", file_,
                            "the update times: one number of the whole model that was profiled, not of a layer");
    if (!with_activation_) return;
    context_.notes.detected(
        "computed-memory", file_,
        "activations are llm_info's of one sample times the samples: measured at one, computed beyond");
  }

  LayerTable table_;
  SailorModels& models_;
  Context& context_;
  std::string file_;
  RawProfile raw_;
  bool with_activation_ = false;
};

void import_tables(const io::Document& document, SailorModels& models, Context& context) {
  const std::size_t depth = depth_of(document.root);
  if (depth == 3 && whole_number(document.root.members.front().key)) {
    TableImport({document, document.root, folder_above(document.file, 2), folder_above(document.file, 1)}, models,
                context)
        .run();
  } else if (depth == 5) {
    for (const io::Member& model : document.root.members) {
      for (const io::Member& gpu : model.value.members) {
        TableImport({document, gpu.value, model.key, gpu.key, true}, models, context).run();
      }
    }
  } else {
    context.notes.left_out("unknown-file", document.file, "not one of Sailor's profiles");
  }
}

}  // namespace

void import_sailor(Context& context) {
  SailorModels models;
  std::vector<io::Document> tables;
  for (const SourceFile& file : context.request.files) {
    if (file.path.ends_with(".csv")) continue;
    auto document = io::parse_json(file.text, file.path);
    if (!document) {
      context.add_error(document.error());
    } else if (!models.take(*document, context)) {
      tables.push_back(std::move(*document));
    }
  }
  for (const io::Document& document : tables) import_tables(document, models, context);
  OperatorProfiles operators;
  for (const SourceFile& file : context.request.files) {
    if (!file.path.ends_with(".csv")) continue;
    if (file.text.starts_with("op_name,")) {
      import_operators(file, models, operators, context);
    } else {
      import_collective_csv(file, context);
    }
  }
  for (auto& [key, raw] : operators) {
    if (!raw.rows.empty()) context.add(std::move(raw));
  }
}

}  // namespace tangram::profiles
