// Placements of kernels and what they are compared with: for people, and as documents.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tangram/disaggregate/compare.hpp"
#include "tangram/disaggregate/timeline.hpp"
#include "tangram/dispatch/schedule.hpp"
#include "terminal.hpp"

namespace tangram::app {

/// A placement with what it was made for.
struct PlacedKernels {
  std::string fleet;  ///< its name
  std::string fleet_digest;
  std::vector<std::string> graphs;  ///< digests of their texts
  disaggregate::Objective objective = disaggregate::Objective::kThroughput;
  int requests = 1;  ///< of a micro-batch
  disaggregate::Problem problem;
  disaggregate::SimulatedSolution found;
  dispatch::Schedule schedule;
};

[[nodiscard]] std::string placement_for_people(const PlacedKernels& placed, const Terminal& terminal);
[[nodiscard]] nlohmann::ordered_json placement_document(const PlacedKernels& placed);

[[nodiscard]] std::string comparison_for_people(const disaggregate::Comparison& comparison, const Terminal& terminal);
[[nodiscard]] nlohmann::ordered_json comparison_document(const disaggregate::Comparison& comparison);

/// A placement with some number of micro-batches in flight.
struct InFlight {
  int in_flight = 1;
  double period = 0;     ///< as resources allow, seconds
  double simulated = 0;  ///< seconds
};

[[nodiscard]] std::string in_flight_for_people(const std::vector<InFlight>& rows, int requests,
                                               const Terminal& terminal);
[[nodiscard]] nlohmann::ordered_json in_flight_document(const std::vector<InFlight>& rows, int requests);

}  // namespace tangram::app
