// What is tried where a job does not fit, and that what is named helps while what is not does not.
#include "tangram/objective/remedies.hpp"

#include <algorithm>

#include "fixtures.hpp"
#include "support/catch.hpp"
#include "support/topology.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/relax/state_memory.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::objective;
using runtime::Target;
using namespace tangram::compose::fixtures;

namespace {

// 21 blocks of hidden 1,024 with 256 Mi parameters: 4.5 GiB of state at 18 bytes each.
model::Model quarter_billion() {
  model::Model model = model_of(21);
  model.types[0].hidden = 1024;
  model.types[0].attention.heads = model.types[0].attention.kv_heads = 8;
  model.types[0].attention.head_dim = 128;
  model.types[0].feed_forward.hidden = 4096;
  model.hidden = 1024;
  model.vocabulary = 4096;
  model.tied_embeddings = true;
  return model;
}

cluster::IslandHierarchy islands_of(const std::string& topology, double gib) {
  cluster::Fleet fleet = tangram::testing::topology(topology);
  for (cluster::Node& node : fleet.nodes) {
    for (cluster::DeviceGroup& group : node.groups) {
      group.device.memory = Bytes(static_cast<std::int64_t>(gib * 1024 * 1024 * 1024)) + group.device.reserved;
    }
  }
  return cluster::find_islands(fleet, 0.1);
}

std::vector<std::string> remedies(Target target, const model::Model& model, const cluster::IslandHierarchy& islands) {
  return find_remedies(target, model, islands, SearchOptions{});
}

bool names(const std::vector<std::string>& found, const std::string& remedy) {
  return std::ranges::find(found, remedy) != found.end();
}

}  // namespace

TEST_CASE("remedies: leaner gradients where the state alone is too much") {
  // 256 Mi parameters: 18 bytes each are 4.5 GiB, 16 are 4 GiB.
  const auto islands = islands_of("[A100-80x1 a]", 4.4);
  const model::Model model = quarter_billion();
  CHECK(relax::least_state(model) > relax::usable_memory(islands.levels.front()));
  const auto found = remedies(Target::kGeneric, model, islands);
  CHECK(names(found, "gradient_bytes_per_parameter: 2 in the model file"));
  // A shorter sample does not shrink the state.
  CHECK(std::ranges::none_of(found, [](const std::string& text) { return text.starts_with("--seq-len"); }));
}

TEST_CASE("remedies: a technique is named where it helps and the target has it") {
  const auto islands = islands_of("[A100-80x4 a]", 2.2);
  model::Model model = quarter_billion();
  model.job.allow.pipeline = model.job.allow.tp = model.job.allow.zero3 = false;
  const auto generic = remedies(Target::kGeneric, model, islands);
  CHECK(names(generic, "allow zero3"));
  CHECK(names(generic, "allow tp"));
  const auto megatron = remedies(Target::kMegatron, model, islands);
  CHECK_FALSE(names(megatron, "allow zero3"));
  CHECK(names(megatron, "allow tp"));
}

TEST_CASE("remedies: none where nothing helps") {
  CHECK(remedies(Target::kGeneric, quarter_billion(), islands_of("[A100-80x1 a]", 0.1)).empty());
}
