#include <nlohmann/json.hpp>

#include "tangram/cost/profile_file.hpp"
#include "tangram/model/block_record.hpp"

namespace tangram::cost {
namespace {

using nlohmann::ordered_json;

const char* kind_name(ProfileKind kind) {
  switch (kind) {
    case ProfileKind::kBlock: return "block";
    case ProfileKind::kEmbedding: return "embedding";
    case ProfileKind::kHead: return "head";
  }
  return "block";
}

ordered_json row_json(const ProfileRow& row) {
  ordered_json out;
  const Degrees& d = row.degrees;
  out["tp"] = d.tp;
  if (d.cp > 1) out["cp"] = d.cp;
  if (d.ep > 1) out["ep"] = d.ep;
  if (d.etp > 1) out["etp"] = d.etp;
  if (d.sequence_parallel) out["sequence_parallel"] = true;
  out["samples"] = row.samples;
  out["forward_ms"] = row.forward.as_double() / 1e6;
  out["backward_ms"] = row.backward.as_double() / 1e6;
  if (row.activation > Bytes(0)) out["activation_bytes"] = row.activation.value();
  if (row.scaled) out["scaled"] = true;
  return out;
}

ordered_json unit_json(const ProfileUnit& unit) {
  ordered_json out;
  out["kind"] = kind_name(unit.kind);
  if (unit.kind == ProfileKind::kBlock) {
    out["block"] = model::block_dimensions(unit.block);
    out["flash_attention"] = unit.flash_attention;
  } else {
    out["vocabulary"] = unit.vocabulary;
    out["hidden"] = unit.hidden;
  }
  out["dtype"] = to_string(unit.dtype);
  out["sequence_length"] = unit.sequence_length;
  out["rows"] = ordered_json::array();
  for (const ProfileRow& row : unit.rows) out["rows"].push_back(row_json(row));
  return out;
}

ordered_json curve_json(const CollectiveCurve& curve) {
  ordered_json out;
  out["operation"] = to_string(curve.operation);
  out["ranks_per_node"] = curve.group.ranks_per_node;
  out["nodes"] = curve.group.nodes;
  if (curve.group.sharing > 1) out["sharing"] = curve.group.sharing;
  out["points"] = ordered_json::array();
  for (const CurvePoint& point : curve.points) {
    out["points"].push_back({{"bytes", point.bytes.value()}, {"time_us", point.time.as_double() / 1e3}});
  }
  return out;
}

}  // namespace

ordered_json profile_json(const Profile& profile) {
  ordered_json out;
  out["schema"] = "tangram.profile/1";
  out["gpu"] = profile.device.name;
  out["source"] = profile.source;
  if (!profile.date.empty()) out["date"] = profile.date;
  out["includes_tp_communication"] = profile.includes_tp_communication;
  const bool curves = !profile.collectives.empty();
  if (!profile.units.empty() || !curves) out["units"] = ordered_json::array();
  for (const ProfileUnit& unit : profile.units) out["units"].push_back(unit_json(unit));
  if (!curves) return out;
  out["collectives"] = ordered_json::array();
  for (const CollectiveCurve& curve : profile.collectives) out["collectives"].push_back(curve_json(curve));
  return out;
}

}  // namespace tangram::cost
