// What the program would have predicted. Goes in: an experiment. Comes out: iteration time and memory, by the same
// cost, memory and simulation code that plans are made with.
#pragma once

#include "tangram/accuracy/experiment.hpp"
#include "tangram/cost/profile.hpp"

namespace tangram::accuracy {

/// What a process holds beside its tensors: the runtime's context, libraries and collective buffers, and what the
/// allocator cannot use of what it holds. The same figures stand behind the reserve of the GPU types (configs/gpus).
inline constexpr double kContextBytes = 1024.0 * 1024.0 * 1024.0;
inline constexpr double kFragmentation = 0.05;
/// Buffers of one communicator beyond two ranks on GPUs joined by NVLink, as measured on four A100
/// (github.com/NVIDIA/nccl/issues/964): 688 MiB.
inline constexpr double kCommunicatorBytes = 688.0 * 1024.0 * 1024.0;

struct Prediction {
  double iteration_s = 0;
  double peak_memory = 0;     ///< bytes of the fullest GPU, context and fragmentation included
  double peak_allocated = 0;  ///< of its tensors alone
  double usable_share = 0;    ///< largest peak over usable memory; above 1: would be refused
  double bubble = 0;          ///< share of the iteration in which the busiest stage waits
  double sync_s = 0;          ///< exposed gradient synchronisation of the slowest stage
  double step_s = 0;          ///< optimizer
  cost::Provenance provenance = cost::Provenance::kModelled;
};

/// Blocks cut inside are priced by the line between the whole numbers on both sides. Errors carry the reason (degrees
/// that the cost model refuses).
[[nodiscard]] Expected<Prediction> predict(const Experiment& experiment, const cost::ProfileSet& profiles);

}  // namespace tangram::accuracy
