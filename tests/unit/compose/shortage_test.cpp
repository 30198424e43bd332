// Why there is no plan, word for word.
#include "shortage.hpp"

#include "fixtures.hpp"
#include "support/catch.hpp"
#include "tangram/relax/state_memory.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::compose::fixtures;

namespace {

// hidden 1,024, four square projections and a plain feed-forward of 4,096: 4 + 8 Mi parameters a block, 21 blocks and
// a tied embedding of 4,096 x 1,024: 21 * 12 + 4 = 256 Mi. At 2 + 4 + 10 bytes each: 4 GiB.
model::Model four_gib() {
  model::Model model = model_of(21);
  model.types[0].hidden = 1024;
  model.types[0].attention.heads = model.types[0].attention.kv_heads = 8;
  model.types[0].attention.head_dim = 128;
  model.types[0].feed_forward.hidden = 4096;
  model.hidden = 1024;
  model.vocabulary = 4096;
  model.tied_embeddings = true;
  model.job.optimizer.state_bytes_per_parameter = 10;
  return model;
}

// GPUs with 1 GiB, of which `usable_mib` are left to plans.
cluster::IslandLevel fleet(int gpus, std::int64_t usable_mib) {
  cluster::IslandClass c = class_of(gpus, 1, 1);
  c.device.reserved = Bytes((1024 - usable_mib) << 20);
  return level_of({c});
}

}  // namespace

TEST_CASE("state alone may be too much") {
  CHECK(relax::least_state(four_gib()) == 4_GiB);
  // 3 * 0.75 = 2.25 GiB: 1.75 short, which is 2.3 GPUs.
  const Diagnostics why = explain_shortage(four_gib(), fleet(3, 768), {});
  REQUIRE(why.size() == 1);
  CHECK(why[0].kind == ErrorKind::kInfeasible);
  CHECK(why[0].code == "out-of-memory");
  CHECK(why[0].message ==
        "no feasible plan: parameters, gradients and optimizer state of fixture need 4.0 GiB, the fleet has 2.2 GiB of "
        "usable GPU memory: 1.8 GiB short");
  CHECK(why[0].hint == "add at least 3 gpu (1 GiB usable each) for the state alone, or train a smaller model");
}

TEST_CASE("parameters that are kept in 8 bits may take a byte each") {
  model::Model model = four_gib();
  model.job.precision = DType::kFp8;
  CHECK(relax::least_state(model) == 4_GiB);
  model.job.narrow_parameters = true;
  CHECK(relax::least_state(model).as_double() == 4_GiB .as_double() * 15 / 16);
}

TEST_CASE("of several GPU types those count that stages may use") {
  cluster::IslandClass other = class_of(4, 1, 1);
  other.device.name = "other";
  const cluster::IslandLevel level = level_of({class_of(3, 1, 1), other});
  Attempts attempts;
  attempts.gpu_types = {"gpu"};
  const Diagnostics why = explain_shortage(four_gib(), level, attempts);
  CHECK(
      why[0].message ==
      "no feasible plan: parameters, gradients and optimizer state of fixture need 4.0 GiB, gpu of the fleet have 3.0 "
      "GiB of usable GPU memory: 1.0 GiB short");
  CHECK(why[0].hint == "add at least 2 gpu (1 GiB usable each) for the state alone, or train a smaller model");
}

TEST_CASE("a block may be too much for every shape") {
  // State fits 6 * 1 GiB, but how many GPUs more would help depends on the plan: no number is promised.
  const Diagnostics why = explain_shortage(four_gib(), fleet(6, 1024), Attempts{false, 256_MiB, false});
  CHECK(why[0].code == "out-of-memory");
  CHECK(why[0].message ==
        "no feasible plan: not even one block of fixture fits; the leanest strategy is 0.25 GiB per GPU short");
  CHECK(why[0].hint == "add GPUs, or GPUs with more memory, or train a smaller model");
}

TEST_CASE("techniques may be missing rather than memory") {
  model::Model model = four_gib();
  model.job.allow.tp = false;
  const Diagnostics why = explain_shortage(model, fleet(6, 1024), {});
  CHECK(why[0].code == "no-strategy");
  CHECK(why[0].message == "no feasible plan: no allowed combination of techniques can run a block of fixture");
  CHECK(
      why[0].hint ==
      "the model's dimensions divide by no degree that the fleet's shapes offer: allow more techniques, add shapes or "
      "change dimensions");
}

TEST_CASE("slices may fit while no pipeline does") {
  // 6 GiB usable, 4 of state: 2 beside it.
  const Diagnostics why = explain_shortage(four_gib(), fleet(6, 1024), Attempts{true, 0_B, false});
  CHECK(why[0].code == "out-of-memory");
  CHECK(why[0].message ==
        "no feasible plan: state of 4.0 GiB fits 6.0 GiB of usable GPU memory, but not together with the activations "
        "and buffers of any pipeline; 2.0 GiB are left beside the state");
}

TEST_CASE("a microbatch must divide the batch") {
  model::Model model = four_gib();
  model.job.global_batch = 8;
  model.job.microbatch = 3;
  const Diagnostics why = explain_shortage(model, fleet(6, 1024), Attempts{false, 0_B, true});
  CHECK(why[0].code == "no-microbatch");
  CHECK(why[0].message == "no feasible plan: microbatch 3 does not divide the global batch of 8 samples");
  CHECK(why[0].hint == "choose a microbatch that divides the global batch");
}
