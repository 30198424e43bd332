// Ways to share GPUs as somebody measured them. Goes in: a file of measurements (tangram.serving_measurements/1), and
// of each of its cases the fleet and the kernel graph. Comes out: what is predicted of each way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/disaggregate/bind.hpp"
#include "tangram/disaggregate/compare.hpp"

namespace tangram::disaggregate {

/// One row. Tokens that are generated count, those of prompts do not.
struct MeasuredArm {
  ArmKind kind = ArmKind::kOneGpu;
  std::string gpu;       ///< of one GPU: its type
  int in_flight = 1;     ///< micro-batches under way
  double measured = 0;   ///< tokens a second
  double published = 0;  ///< tokens a second that the publication has for it; 0: it says nothing
};

/// One model, served with prompts and answers of one length.
struct ServingCase {
  std::string name;
  std::string cluster;         ///< a file
  std::string model;           ///< a file, of which the graph is made; empty: there is `graph`
  std::string graph;           ///< a file: kernels that were recorded
  std::int64_t prompt = 1;     ///< tokens
  std::int64_t generated = 1;  ///< tokens
  std::int64_t requests = 1;   ///< of a micro-batch
  Deployment deployment;
  std::vector<MeasuredArm> arms;
};

struct ServingMeasurements {
  std::string source;
  std::vector<ServingCase> cases;
};

/// Reads tangram.serving_measurements/1. Every mistake becomes a diagnostic with its place.
[[nodiscard]] Expected<ServingMeasurements> read_serving_measurements(std::string text, std::string file);

/// Tokens a second of one way to share the GPUs. Of replicas and of phases on GPUs of their own it is what resources
/// allow, as engines take requests one by one and no GPU waits for a round of the other. Where a pass is split, it is
/// simulated. 0: memory suffices for no such way. Fails on a type of GPU that the problem does not have.
[[nodiscard]] Expected<double> predicted_tokens(const Batch& batch, const MeasuredArm& arm);

}  // namespace tangram::disaggregate
