// The file of a schedule (tangram.disaggregation/1). Goes in: text. Comes out: a schedule whose references are whole,
// or every mistake with its place; and the members of the document that a schedule is.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/dispatch/schedule.hpp"

namespace tangram::dispatch {

struct ScheduleFile {
  std::string cluster;  ///< its name
  std::string cluster_digest;
  std::vector<std::string> graphs;  ///< digests of their texts
  int requests = 1;                 ///< of a micro-batch
  Schedule schedule;
};

/// Segments stand behind those that they wait for and behind the senders of what they take, each copy is sent once and
/// taken once in the pass. What the planner says of it ("predicted", "patterns", what GPUs are busy with) is for
/// people, and not read.
[[nodiscard]] Expected<ScheduleFile> read_schedule(std::string text, std::string file);

[[nodiscard]] nlohmann::ordered_json links_json(const Schedule& schedule);
[[nodiscard]] nlohmann::ordered_json segments_json(const Schedule& schedule);
[[nodiscard]] nlohmann::ordered_json copies_json(const Schedule& schedule);

}  // namespace tangram::dispatch
