// Which blocks the positions of a measured pipeline hold. Goes in: a measurement and its model's number of layers.
// Comes out: blocks of each position; or why the printed numbers are no cut of the model.
#pragma once

#include <vector>

#include "tangram/accuracy/measurement.hpp"

namespace tangram::accuracy {

/// Of each pipeline position (stage, or virtual stage), with fractions where a publication cuts inside a layer.
struct Cut {
  std::vector<double> blocks;
  std::vector<double> recomputed;  ///< of them in full; empty: what the recompute mode says
  std::vector<double> selective;   ///< of them the attention core alone; empty likewise
};

/// By the operators, layers or units that are printed; evenly where nothing is.
[[nodiscard]] Expected<Cut> find_cut(const Measurement& measurement, int layers, std::int64_t positions);

}  // namespace tangram::accuracy
