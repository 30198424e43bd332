#include "tangram/model/slice.hpp"

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::model {

std::string to_string(const BlockRange& blocks) {
  return std::to_string(blocks.first) + "-" + std::to_string(blocks.last - 1);
}

namespace {

std::int64_t activation_width(const Model& model) { return model.job.parameter_bytes; }

// Blocks before the last encoder block: an encoder block is one that attends both ways and has a causal block behind
// it. A model without causal blocks (BERT) has none.
int encoder_end(const Model& model) {
  bool causal_behind = false;
  for (int i = model.block_count() - 1; i >= 0; --i) {
    if (model.block(i).attention.causal) {
      causal_behind = true;
    } else if (causal_behind) {
      return i + 1;
    }
  }
  return 0;
}

}  // namespace

int SliceSignature::block_count() const {
  int count = 0;
  for (const auto& [type, blocks] : runs) count += blocks;
  return count;
}

std::int64_t cut_bytes(const Model& model, int cut) {
  TANGRAM_ASSERT(cut > 0 && cut < model.block_count());
  const BlockType& before = model.block(cut - 1);
  std::int64_t values = before.tokens * before.hidden;
  const int encoders = encoder_end(model);
  if (cut <= encoders) {
    // The first stage holds the token embedding, the decoder needs its output and that of every finished encoder.
    values += model.job.sequence_length * model.hidden;
    for (int i = 1; i < cut; ++i) {
      const bool ends_encoder = at(model.blocks, i) != at(model.blocks, i - 1);
      if (ends_encoder) values += model.block(i - 1).tokens * model.block(i - 1).hidden;
    }
  }
  return values * activation_width(model);
}

SliceSignature signature(const Model& model, int first, int last) {
  TANGRAM_ASSERT(first >= 0 && first < last && last <= model.block_count());
  SliceSignature out;
  for (int i = first; i < last; ++i) {
    const int type = at(model.blocks, i);
    if (out.runs.empty() || out.runs.back().first != type) out.runs.emplace_back(type, 0);
    ++out.runs.back().second;
  }
  out.embedding = first == 0;
  out.head = last == model.block_count();
  out.tied_elsewhere = model.tied_embeddings && out.embedding != out.head;
  out.entry_bytes = out.embedding ? 0 : cut_bytes(model, first);
  out.exit_bytes = out.head ? 0 : cut_bytes(model, last);
  return out;
}

std::int64_t slice_parameters(const Model& model, const SliceSignature& slice) {
  std::int64_t total = 0;
  for (const auto& [type, count] : slice.runs) {
    total += count * parameters(at(model.types, type)).total();
  }
  if (slice.embedding) total += model.embedding_parameters();
  if (slice.head) total += model.head_parameters();
  if (slice.head && slice.tied_elsewhere) {
    total += model.vocabulary * (model.embedding_projection > 0 ? model.embedding_projection : model.hidden);
  }
  return total;
}

}  // namespace tangram::model
