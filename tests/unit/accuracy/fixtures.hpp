// Measurements that the accuracy tests start from.
#pragma once

#include <string>

#include "support/catch.hpp"
#include "tangram/accuracy/experiment.hpp"
#include "tangram/cluster/fleet.hpp"

namespace tangram::accuracy::fixtures {

/// 16 GPUs of two A100 nodes, GPT of 8 layers and hidden 1024, one stage, no tp: complete in every respect.
inline Measurement complete() {
  Measurement m;
  m.id = "made-up";
  m.gpus = {{"A100-80GB-SXM", 16, 8}};
  m.model.name = "GPT";
  m.model.hidden = 1024;
  m.model.layers = 8;
  m.model.heads = 16;
  m.model.vocabulary = 50304;
  m.sequence = 1024;
  m.global_batch = 64;
  m.microbatch = 1;
  m.tp = 1;
  m.pp = 1;
  return m;
}

inline Experiment expressed(const Measurement& m) {
  auto experiment = express(m, cluster::catalogue());
  if (!experiment) FAIL(experiment.error().front().message);
  return std::move(*experiment);
}

/// Why it cannot be expressed.
inline std::string refusal(const Measurement& m) {
  const auto experiment = express(m, cluster::catalogue());
  REQUIRE_FALSE(experiment);
  REQUIRE(experiment.error().size() == 1);
  CHECK(experiment.error().front().code == "not-expressible");
  return experiment.error().front().message;
}

}  // namespace tangram::accuracy::fixtures
