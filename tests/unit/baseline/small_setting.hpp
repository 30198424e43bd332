// A small mixed fleet and model, and all that planners and judges read of them.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tangram/baseline/baseline.hpp"

namespace tangram::baseline {

/// A100-40 and V100-16, four on a node, over Ethernet; eight layers of width 1,024.
struct SmallSetting {
  std::string a100_nodes = "a";
  std::string v100_nodes = "v";
  int layers = 8;
  cluster::Fleet fleet = *cluster::read_fleet(fleet_text(), "fleet.json");
  model::Model model = *model::read_model(model_text(), "model.yaml");
  cluster::IslandHierarchy hierarchy = cluster::find_islands(fleet, 0.1);
  PlannerInput input = read_input(fleet, model, nullptr);
  Judge judge{fleet, hierarchy, model, nullptr, FlopsPerSecond(1e15)};

 private:
  [[nodiscard]] std::string fleet_text() const {
    constexpr const char* kText = R"({{"schema": "tangram.cluster/1", "name": "small", "nodes": [
  {{"name": "{}", "gpus": [{{"type": "A100-40GB-SXM", "count": 4}}], "network": {{"bandwidth_gbit_s": 50, "kind": "ethernet"}}}},
  {{"name": "{}", "gpus": [{{"type": "V100-16GB-SXM", "count": 4}}], "network": {{"bandwidth_gbit_s": 25, "kind": "ethernet"}}}}]}})";
    return fmt::format(kText, a100_nodes, v100_nodes);
  }
  [[nodiscard]] std::string model_text() const {
    constexpr const char* kText = R"(schema: tangram.model/1
name: small
architecture: {{vocabulary: 32000, hidden: 1024, layers: {}, heads: 16, ffn_hidden: 4096, gated: false, norm: layernorm}}
training: {{sequence_length: 1024, global_batch_samples: 64, precision: fp16}}
)";
    return fmt::format(kText, layers);
  }
};

}  // namespace tangram::baseline
