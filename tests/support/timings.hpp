// Timings as a runtime writes them, for tests that know what was measured.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tangram/cost/profile.hpp"
#include "tangram/model/block_record.hpp"

namespace tangram::testing {

using TimingJson = nlohmann::ordered_json;

/// `types`: with names; tokens of 0 are the sequence length.
inline TimingJson timings_header(const model::Model& model, bool includes_tp_communication,
                                 const std::string& plan = "made-up") {
  TimingJson header;
  header["schema"] = "tangram.timings/1";
  header["plan"] = plan;
  header["runtime"] = "test 1";
  header["precision"] = to_string(model.job.precision);
  header["flash_attention"] = model.job.flash_attention;
  header["sequence_length"] = model.job.sequence_length;
  header["vocabulary"] = model.vocabulary;
  header["hidden"] = model.hidden;
  header["types"] = TimingJson::array();
  for (const model::BlockType& type : model.types) {
    TimingJson entry = model::block_dimensions(type);
    entry["name"] = type.name;
    if (type.tokens > 0) entry["tokens"] = type.tokens;
    header["types"].push_back(std::move(entry));
  }
  header["includes_tp_communication"] = includes_tp_communication;
  return header;
}

/// What one rank timed of one unit in one step; seconds. `type`: of a block.
struct TimingLine {
  std::int64_t step = 0;
  int rank = 0;
  std::string gpu;
  cost::ProfileKind kind = cost::ProfileKind::kBlock;
  std::string type;
  cost::Degrees degrees;
  std::int64_t samples = 1;
  double forward = 0;
  double backward = 0;
  std::string recompute = "none";
};

inline TimingJson timings_row(const TimingLine& line) {
  TimingJson row;
  row["step"] = line.step;
  row["rank"] = line.rank;
  row["gpu"] = line.gpu;
  row["unit"] = line.kind == cost::ProfileKind::kBlock  ? "block"
                : line.kind == cost::ProfileKind::kHead ? "head"
                                                        : "embedding";
  if (line.kind == cost::ProfileKind::kBlock) row["type"] = line.type;
  row["samples"] = line.samples;
  row["tp"] = line.degrees.tp;
  row["cp"] = line.degrees.cp;
  row["ep"] = line.degrees.ep;
  row["etp"] = line.degrees.etp;
  row["sequence_parallel"] = line.degrees.sequence_parallel;
  row["recompute"] = line.recompute;
  row["forward_ms"] = 1e3 * line.forward;
  row["backward_ms"] = 1e3 * line.backward;
  return row;
}

}  // namespace tangram::testing
