// What planners for mixed fleets read before they plan: profiles by GPU type, tensor parallelism and samples, and a few
// facts of the fleet. Goes in: a fleet, a model and measured profiles, or numbers written out by a test. Comes out:
// values. All planners see the same ones, and they are those of Tangram's own cost model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/cost/strategy.hpp"
#include "tangram/model/model.hpp"

namespace tangram::baseline {

/// GPUs of one type in one region, whatever their nodes.
struct GpuKind {
  std::string name;    ///< of the GPU type
  std::string region;  ///< label "region", else "zone"; empty: the fleet has neither
  cluster::GpuType device;
  std::vector<std::pair<std::size_t, int>> nodes;  ///< (node of the fleet, GPUs there)
  int gpus = 0;
  int per_node = 0;             ///< fewest of its nodes
  double memory = 0;            ///< bytes a plan may use on each
  double inside = 0;            ///< bytes/s between GPUs of a node
  Nanoseconds latency;          ///< of that link
  double outside = 0;           ///< bytes/s of a node's network
  double price_per_second = 0;  ///< dollars of one GPU
};

/// A unit is what these planners cut at: the embedding, each block, the head. Of one GPU, for one microbatch.
struct UnitProfile {
  double forward = 0;  ///< seconds
  double backward = 0;
  double state = 0;       ///< bytes of parameters, gradients and optimizer, nothing sharded
  double activation = 0;  ///< bytes kept for backward
  double working = 0;     ///< bytes of its largest short-lived buffer
  double parameters = 0;  ///< on this GPU
  [[nodiscard]] double seconds() const { return forward + backward; }
};

/// All units of the model at one point of the grid.
struct GridPoint {
  std::vector<UnitProfile> units;
  double fixed = 0;      ///< seconds of a microbatch that were measured but belong to no unit
  double optimizer = 0;  ///< seconds of the optimizer's step over all units
};

struct PlannerInput {
  std::vector<GpuKind> kinds;                                    ///< as the fleet lists them
  std::map<std::tuple<int, int, std::int64_t>, GridPoint> grid;  ///< by kind, tp, samples of one replica
  int blocks = 0;
  std::int64_t batch = 0;      ///< samples of an iteration
  double activation = 0;       ///< bytes that one sample hands to the next unit
  double activation_last = 0;  ///< the same behind the head
  double parameter_bytes = 2;  ///< of one parameter
  double gradient_bytes = 4;
  double per_microbatch = 0;  ///< seconds that loading one takes
  /// Seconds of a message from `from_gpus` GPUs of a node of one kind to `to_gpus` of a node of another.
  std::function<double(double bytes, int from, int from_gpus, int to, int to_gpus)> message;
  model::Model model;

  [[nodiscard]] int units() const { return blocks + 2; }
  [[nodiscard]] int gpus() const;
  /// Null: not profiled.
  [[nodiscard]] const GridPoint* at(int kind, int tp, std::int64_t samples) const;
  /// Degrees of tensor parallelism and samples that any kind was profiled at, ascending.
  [[nodiscard]] std::vector<int> tensor_degrees() const;
  [[nodiscard]] std::vector<std::int64_t> sample_counts() const;
  /// Sum over units [first, last); infinite where nothing was profiled.
  [[nodiscard]] double seconds(int kind, int tp, std::int64_t samples, int first, int last) const;
};

/// Of one replica with `tp` GPUs. These planners do not know experts: those are sharded like everything else.
[[nodiscard]] cost::Degrees replica_degrees(const model::Model& model, int tp);

/// Profiles at powers of two: tp up to the GPUs of a node, samples up to `most_samples`.
[[nodiscard]] PlannerInput read_input(const cluster::Fleet& fleet, const model::Model& model,
                                      const cost::ProfileSet* profiles, std::int64_t most_samples = 32);

}  // namespace tangram::baseline
