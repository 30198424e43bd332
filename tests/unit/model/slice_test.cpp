#include <algorithm>
#include <set>

#include "models.hpp"
#include "support/catch.hpp"
#include "tangram/model/slice.hpp"

using namespace tangram::model;
using namespace tangram::model::test;

namespace {

std::set<SliceSignature> signatures(const Model& model) {
  std::set<SliceSignature> found;
  for (int first = 0; first < model.block_count(); ++first) {
    for (int last = first + 1; last <= model.block_count(); ++last) found.insert(signature(model, first, last));
  }
  return found;
}

// Three dense blocks, then five MoE blocks, like DeepSeek-V3 in small.
Model mixed_model() {
  Model model = uniform_model(dense_block(8, 2, 32, 4), 3);
  model.types.push_back(moe_block(8, 2, 4, 2, 16, 4));
  model.blocks.insert(model.blocks.end(), 5, 1);
  return model;
}

}  // namespace

TEST_CASE("slice: runs, ends and cut bytes") {
  const Model model = mixed_model();
  const SliceSignature middle = signature(model, 1, 6);
  CHECK(middle.runs == std::vector<std::pair<int, int>>{{0, 2}, {1, 3}});
  CHECK(middle.block_count() == 5);
  CHECK_FALSE(middle.embedding);
  CHECK_FALSE(middle.head);
  // 4 tokens x 8 values x 2 bytes
  CHECK(middle.entry_bytes == 64);
  CHECK(middle.exit_bytes == 64);

  const SliceSignature whole = signature(model, 0, 8);
  CHECK(whole.embedding);
  CHECK(whole.head);
  CHECK(whole.entry_bytes == 0);
  CHECK(whole.exit_bytes == 0);
  CHECK(whole.runs == std::vector<std::pair<int, int>>{{0, 3}, {1, 5}});
}

TEST_CASE("slice: activations are four bytes wide in fp32") {
  Model model = mixed_model();
  model.job.parameter_bytes = 4;
  CHECK(cut_bytes(model, 1) == 128);
}

TEST_CASE("slice: uniform blocks have 3L - 3 signatures") {
  // Whole model 1; with the embedding alone L-1 lengths; with the head alone L-1; with neither L-2.
  for (const int layers : {3, 8, 32, 80}) {
    CHECK(signatures(uniform_model(dense_block(8, 2, 32, 4), layers)).size() ==
          static_cast<std::size_t>(3 * layers - 3));
  }
  CHECK(signatures(uniform_model(dense_block(8, 2, 32, 4), 1)).size() == 1);
}

TEST_CASE("slice: a tied embedding marks the ends that are apart") {
  Model model = mixed_model();
  model.tied_embeddings = true;
  CHECK(signature(model, 0, 4).tied_elsewhere);
  CHECK(signature(model, 4, 8).tied_elsewhere);
  CHECK_FALSE(signature(model, 2, 5).tied_elsewhere);
  CHECK_FALSE(signature(model, 0, 8).tied_elsewhere);
  // The last stage keeps a copy of the 100 x 8 table.
  const auto first = slice_parameters(model, signature(model, 0, 4));
  const auto last = slice_parameters(model, signature(model, 4, 8));
  CHECK(first + last == model.total_parameters() + 800);
  CHECK(slice_parameters(model, signature(model, 0, 8)) == model.total_parameters());
}

TEST_CASE("slice: the parts of any partition hold all parameters") {
  const Model model = mixed_model();
  // Every way to cut 8 blocks: bit i of `cuts` cuts before block i+1.
  for (unsigned cuts = 0; cuts < 128; ++cuts) {
    std::int64_t sum = 0;
    int first = 0;
    for (int last = 1; last <= 8; ++last) {
      if (last < 8 && (cuts >> (last - 1) & 1U) == 0) continue;
      sum += slice_parameters(model, signature(model, first, last));
      first = last;
    }
    CHECK(sum == model.total_parameters());
  }
}

TEST_CASE("slice: before the end of the encoders everything the decoder needs travels") {
  // vision (2 blocks, 16 tokens x 6) and audio (2 blocks, 10 tokens x 4) before a decoder of 4 tokens x 8.
  Model model = uniform_model(dense_block(8, 2, 32, 4), 3);
  BlockType vision = dense_block(6, 2, 24, 16);
  BlockType audio = dense_block(4, 2, 16, 10);
  vision.attention.causal = audio.attention.causal = false;
  model.types = {vision, audio, model.types[0]};
  model.blocks = {0, 0, 1, 1, 2, 2, 2};
  const std::int64_t text = 4 * 8, image = 16 * 6, sound = 10 * 4;
  CHECK(cut_bytes(model, 1) == 2 * (image + text));
  CHECK(cut_bytes(model, 2) == 2 * (image + text));
  CHECK(cut_bytes(model, 3) == 2 * (sound + image + text));
  CHECK(cut_bytes(model, 4) == 2 * (sound + image + text));
  CHECK(cut_bytes(model, 5) == 2 * text);
  // A model that only attends both ways has no decoder to feed.
  model.types[2].attention.causal = false;
  CHECK(cut_bytes(model, 1) == 2 * image);
}
