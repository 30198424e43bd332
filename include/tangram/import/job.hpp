// A job in the terms of all formats. Goes in: nothing (values only). Comes out of every reader, and is placed on GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tangram/cost/strategy.hpp"
#include "tangram/import/import.hpp"

namespace tangram::importing {

/// Where something was said: a diagnostic without a message.
using Place = Diagnostic;

/// The diagnostic at a place.
[[nodiscard]] Diagnostic at(Place place, std::string code, std::string message, std::string hint = {});

/// Which GPU a rank asks for; what is not said is left to the order of the GPUs.
struct Wish {
  std::string device;  ///< name of the GPU type, whole or the beginning of the catalogue's; empty: any
  int node = -1;       ///< position in the host file or among the fleet's nodes; -1: any
};

/// One replica of a stage: tp x cp GPUs.
struct Replica {
  int tp = 1;
  std::int64_t samples = 1;  ///< of each microbatch
  std::vector<Wish> gpus;
};

struct JobStage {
  std::int64_t first = 0;  ///< blocks [first, last)
  std::int64_t last = 0;
  cost::Degrees common;  ///< cp, ep, etp and sequence parallelism; a stage without experts has no ep
  cost::MemoryPolicy policy;
  std::vector<Replica> replicas;
  Place place;
};

struct JobPipeline {
  std::int64_t microbatch = 1;
  std::int64_t microbatches = 1;
  std::vector<JobStage> stages;
};

/// A GPU in the order of ranks, as a host file or a rank map names it.
struct Seat {
  std::string host;
  int gpu = 0;
  int island = -1;  ///< of a rank map's column; -1: not said
  Place place;
};

/// An argument of Megatron-LM that describes the model; the names are those of the command line.
struct ModelArgument {
  std::string name;
  std::string value;  ///< empty: a switch
  Place place;
};

/// What a job's data parallelism is where the files do not say how many GPUs there are: they take all.
enum class Fill : std::uint8_t {
  kNone,          ///< the files say it
  kSamples,       ///< samples of a replica are given; microbatches follow from the batch
  kMicrobatches,  ///< microbatches are given; samples of a replica follow
};

struct Job {
  model::JobOverrides overrides;
  /// With a fill, each stage has one replica that stands for all of its pipeline.
  std::vector<JobPipeline> pipelines;
  Fill fill = Fill::kNone;
  Place batch;              ///< where the batch is said
  std::vector<Seat> seats;  ///< empty: the fleet's GPUs, node by node
  std::vector<ModelArgument> model;
  std::vector<std::string> notes;
};

}  // namespace tangram::importing
