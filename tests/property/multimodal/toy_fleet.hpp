// Toy fleets of two classes with prices in plain numbers: what the choices of each module are, in each mode.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "tangram/multimodal/join.hpp"
#include "tangram/multimodal/share.hpp"
#include "tangram/multimodal/work_bound.hpp"

namespace tangram::tests {

/// Blocks of one module; a sample takes `work` ns forward on a block at speed 1, and twice that backward, if not
/// frozen.
struct ToyModule {
  int blocks = 1;
  int most_stages = 1;
  double work = 0;
  double parameters = 0;   ///< of a block, in any unit of memory
  double activations = 0;  ///< of a block and sample
  std::array<double, 2> speed{1, 1};
  bool frozen = false;

  [[nodiscard]] int passes() const { return frozen ? 1 : 3; }  ///< in forward passes
};

struct ToyFleet {
  std::vector<int> gpus;
  std::array<double, 2> memory{};
  std::vector<ToyModule> encoders;
  ToyModule language;
  double sync = 0;           ///< of a block, as a part of its forward work
  std::int64_t step = 0;     ///< ns
  std::int64_t latency = 0;  ///< of any boundary, ns
  bool graph_warmup = false;
};

[[nodiscard]] ToyFleet random_fleet(std::mt19937_64& random, int encoders);

/// R replicas of the language model, b samples of each in a microbatch.
struct ToyBatch {
  int replicas = 1;
  int samples = 1;
  std::int64_t microbatches = 1;
};
inline constexpr int kToyBatch = 16;
[[nodiscard]] std::vector<ToyBatch> toy_batches();

/// The ways to run each module on GPUs of its own.
[[nodiscard]] multimodal::JoinProblem disjoint_problem(const ToyFleet& fleet, const ToyBatch& batch);
/// Of the encoders on all GPUs of the language model, all microbatches in one round.
[[nodiscard]] multimodal::ShareProblem colocated_problem(const ToyFleet& fleet, const ToyBatch& batch);
[[nodiscard]] multimodal::FleetWork work_of(const ToyFleet& fleet);

/// Encoders are the first blocks of the language model, all of them on its first stage.
[[nodiscard]] std::optional<std::int64_t> fastest_homogeneous(const ToyFleet& fleet, const ToyBatch& batch);

}  // namespace tangram::tests
