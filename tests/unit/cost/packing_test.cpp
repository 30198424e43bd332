// Samples that are packed of sequences take what these take by themselves, but for what depends on the sample.
#include "support/catch.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/memory.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;

namespace {

model::Model packed_llama(std::int64_t tokens, double packed = 0) {
  model::JobOverrides overrides;
  overrides.sequence_length = tokens;
  model::Model model = shipped_model("llama-3-8b.yaml", overrides);
  model.job.packing.mean = packed;
  model::set_packing(model);
  return model;
}

BlockTime time_of_packed(const model::Model& model, double samples, const Degrees& degrees = {}) {
  return block_time(model.block(0), model.job, degrees, samples, shape_of(a100(), 1, degrees.gpus()));
}

}  // namespace

TEST_CASE("packing: sixteen sequences in a sample take what sixteen samples take") {
  const BlockTime packed = time_of_packed(packed_llama(16'384, 1'024), 1);
  const BlockTime alone = time_of_packed(packed_llama(1'024), 16);
  CHECK(packed.compute.forward == Approx(alone.compute.forward).epsilon(0.01));
  CHECK(packed.compute.backward == Approx(alone.compute.backward).epsilon(0.01));
  CHECK(packed.compute.forward < 0.9 * time_of_packed(packed_llama(16'384), 1).compute.forward);
}

TEST_CASE("packing: keys and values go around the ring of context parallelism as before, and hide under less") {
  const Degrees ring{.cp = 4};
  const BlockTime packed = time_of_packed(packed_llama(16'384, 512), 1, ring);
  const BlockTime whole = time_of_packed(packed_llama(16'384), 1, ring);
  CHECK(packed.communication.forward > whole.communication.forward);
  CHECK(packed.compute.forward < whole.compute.forward);
}

TEST_CASE("packing: it changes nothing that is kept") {
  const auto kept = [](const model::Model& model) { return block_activation(model.block(0), model.job, {}, 1).none; };
  CHECK(kept(packed_llama(16'384, 512)) == kept(packed_llama(16'384)));
}

TEST_CASE("packing: windows see no farther than their sequence") {
  model::Attention attention;
  attention.sliding_window = 4'096;
  attention.packed_length = 1'000;
  CHECK(visible_keys(attention, 8'192) == Approx(500.5));
  attention.causal = false;
  CHECK(visible_keys(attention, 8'192) == 1'000);
  attention.packed_length = 0;
  CHECK(visible_keys(attention, 8'192) == 4'096);
}
