// Random trees of stages: encoders that feed a language model, generators behind it.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::tests {

struct TreeFlavour {
  int most_encoders = 3;
  int most_encoder_stages = 3;
  int most_language_stages = 6;
  int most_generators = 2;
  double scale = 1e6;           ///< T of a stage of the language model in the mean, ns
  double spread = 0.3;          ///< of T, as a part of the mean, to both sides
  double latency = 0;           ///< of a boundary at most, as a part of the scale
  bool frozen = false;          ///< encoders have no backward pass
  bool uneven_ratio = false;    ///< B / F is 1, 2 or 3 by stage, not 2
  bool occupied_links = false;  ///< a transfer keeps its link for some of the latency
};

struct RandomTree {
  multimodal::StageGraph graph;
  std::vector<std::vector<int>> encoders;  ///< stages of each, first to last
  std::vector<int> language;
  std::vector<std::vector<int>> generators;
};

/// One microbatch, and memory for all there could be.
[[nodiscard]] RandomTree random_tree(std::mt19937_64& random, const TreeFlavour& flavour);

/// Memory for what the period asks for, and for up to `more` besides.
void limit_memory(multimodal::StageGraph& graph, std::int64_t period, std::mt19937_64& random, int more);

/// T of the slowest stage.
[[nodiscard]] std::int64_t slowest_stage(const multimodal::StageGraph& graph);

}  // namespace tangram::tests
