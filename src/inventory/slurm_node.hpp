// A node of Slurm, whichever of its two forms told of it.
#pragma once

#include <string>
#include <vector>

#include "collector.hpp"
#include "places.hpp"

namespace tangram::inventory {

struct SlurmNode {
  Text name;
  std::vector<Text> states;  ///< base state and flags: IDLE, DRAIN
  Text gres;                 ///< generic resources: "gpu:a100:8(S:0-1),nvme:1"
  std::string reason;        ///< why an administrator or Slurm took it out; may be empty
  std::vector<std::string> partitions;
};

void take_slurm_node(const io::Document& document, const SlurmNode& slurm, Collector& collector);

void read_slurm_json(const io::Document& document, Collector& collector);
void read_slurm_text(const io::Document& document, Collector& collector);

}  // namespace tangram::inventory
