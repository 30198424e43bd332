// The inner steps of Metis (Um et al., ATC 2024), each by itself so that tests can hold them against published numbers.
// Goes in: profiles and a layout of GPUs. Comes out: layers of each stage and the time Metis claims for them.
//
// Symbols: t_s time of a microbatch in stage s, B microbatches, P_s parameters of the stage.
//   T = (B-1) max t_s + sum t_s + B fixed(last stage) + max step_s + max sync_s + sum boundary_s
//   step_s = 2 optimizer / tp_s  layers_s / layers
//   sync_s = 2 (dp-1)/dp  P_s / tp_s / bandwidth_s
//   boundary_s = tensor / bandwidth, once
#pragma once

#include <cstdint>
#include <vector>

#include "metis_groups.hpp"
#include "tangram/baseline/baseline.hpp"

namespace tangram::baseline {

/// Metis counts its GPUs type by type in an order of types, and fills stages from that row.
struct MetisLayout {
  std::vector<int> kinds;  ///< order of types
  std::vector<int> row;    ///< kind of each GPU, first to last
  DeviceGroups groups;     ///< GPUs of each stage
  std::int64_t batches = 1;
  int costed_stages = 0;  ///< that the formula looks at; fewer than there are: the original's slip
};

struct MetisStrategy {
  int dp = 1;
  int tp = 1;
  bool operator==(const MetisStrategy&) const = default;
};

/// What a stage is in the formula.
struct MetisStage {
  MetisStrategy strategy;
  std::vector<Replica> replicas;
  bool one_kind = true;
  bool straddles = false;  ///< a replica has GPUs of two kinds; the first one's profile counts
};

class Metis {
 public:
  Metis(const PlannerInput& input, Mode mode) : input_(input), mode_(mode) {}

  /// Stages with the samples of each replica; empty: something was not profiled.
  [[nodiscard]] std::vector<MetisStage> stages(const MetisLayout& layout,
                                               const std::vector<MetisStrategy>& strategies) const;
  /// First unit of each stage, and the end; empty: nothing fits. `attempts`: how often shares were corrected.
  /// `headroom`: bytes left in each stage by the last attempt.
  [[nodiscard]] std::vector<int> partition(const MetisLayout& layout, const std::vector<MetisStage>& stages,
                                           int& attempts, std::vector<double>& headroom) const;
  /// Seconds; negative: not profiled.
  [[nodiscard]] double cost(const MetisLayout& layout, const std::vector<MetisStage>& stages,
                            const std::vector<int>& cuts) const;
  /// Speeds of the stages, summing to one.
  [[nodiscard]] std::vector<double> speeds(const std::vector<MetisStage>& stages) const;

 private:
  [[nodiscard]] double stage_seconds(const MetisStage& stage, int first, int last) const;
  [[nodiscard]] double memory_needed(const MetisLayout& layout, const MetisStage& stage, int first, int last) const;
  [[nodiscard]] double memory_there(const MetisStage& stage) const;
  [[nodiscard]] double bandwidth(const MetisStage& stage) const;
  [[nodiscard]] double sync_seconds(const MetisStage& stage, int first, int last) const;
  [[nodiscard]] double boundary_seconds(const MetisStage& from, const MetisStage& to, std::int64_t microbatch,
                                        int unit) const;
  [[nodiscard]] std::vector<int> exact_partition(const MetisLayout& layout,
                                                 const std::vector<MetisStage>& stages) const;

  const PlannerInput& input_;
  Mode mode_;
};

/// Units of each stage by shares of speed: sevenths of layers are handed out greedily from both ends, and a layer goes
/// where most of its sevenths went. A layer of which no stage has most is lost: that is how the original loses layers.
[[nodiscard]] std::vector<int> balance_by_sevenths(const std::vector<double>& weights,
                                                   const std::vector<double>& shares);

/// Samples of each of `times.size()` replicas, in proportion to speed (times: of one sample), largest remainders first.
[[nodiscard]] std::vector<std::int64_t> split_samples(std::int64_t samples, const std::vector<double>& times);

}  // namespace tangram::baseline
