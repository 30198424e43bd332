// Small random jobs for the driver: a fleet of island classes made by hand, a model of few blocks, and a parallelizer
// whose answers are random but always the same for the same question.
//
// Everything is scaled so that one block of one sample takes tens of nanoseconds, about as long as the links need for
// it: computing, crossing, synchronising and memory all decide sometimes.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/model/model.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::tests {

struct SearchFlavour {
  int most_classes = 3;
  int most_gpus = 5;  ///< of the fleet
  int most_blocks = 4;
  int least_blocks = 1;
  int most_batch = 8;
  bool tight_memory = true;
  bool slow_links = true;
  /// A slice costs at least what its parts cost, in time and memory. Off: every slice has figures of its own.
  bool additive = false;
};

/// Never faster than cost::least_gpu_seconds, sometimes exactly as fast. Offers dominated plans too.
class RandomParallelizer : public parallelizer::Parallelizer {
 public:
  RandomParallelizer(const model::Model& model, const SearchFlavour& flavour, std::uint64_t seed)
      : model_(&model), flavour_(flavour), seed_(seed) {}

  [[nodiscard]] const parallelizer::ParallelizerInfo& info() const override { return info_; }
  [[nodiscard]] std::vector<parallelizer::Outcome> solve(std::span<const parallelizer::Query> queries) const override;

  [[nodiscard]] std::vector<parallelizer::PartialPlan> plans(const model::SliceSignature& slice,
                                                             const cluster::DeviceShape& shape, int samples) const;
  /// Microbatches that every plan can hold beyond what the seed says.
  void add_memory(std::int64_t in_flight) { extra_in_flight_ = in_flight; }

 private:
  [[nodiscard]] double least_nanoseconds(const model::SliceSignature& slice, const cluster::DeviceShape& shape,
                                         int samples) const;
  [[nodiscard]] std::int64_t in_flight(const model::SliceSignature& slice, const cluster::DeviceShape& shape,
                                       int samples, std::uint64_t hash) const;

  const model::Model* model_;
  SearchFlavour flavour_;
  std::uint64_t seed_;
  std::int64_t extra_in_flight_ = 0;
  parallelizer::ParallelizerInfo info_{"random", "1", true};
};

struct SearchCase {
  std::unique_ptr<model::Model> model;  // where the parallelizer points
  cluster::IslandHierarchy hierarchy;
  RandomParallelizer parallelizer;
};

[[nodiscard]] SearchCase random_search_case(std::mt19937_64& random, const SearchFlavour& flavour);

}  // namespace tangram::tests
