// Reads tangram.profile/1, JSON. Times are of one GPU and one microbatch of one replica.
//
//   {
//     "schema": "tangram.profile/1",
//     "gpu": "A100-40GB-SXM",               the GPU type, as catalogue and fleet name it
//     "source": "...", "date": "2025-10-10",   the date is left out where it is not known
//     "includes_tp_communication": true,    whether the exchanges of tensor (and expert-tensor) parallelism are in the
//                                           times; where not, the communication model adds them. Those of context and
//                                           expert parallelism never are
//     "units": [
//       { "kind": "block",                  keys of a block type in tangram.model/1, without name and tokens:
//         "block": { "hidden": 1024, "heads": 16, "ffn_hidden": 4096, "gated": false, ... },
//         "dtype": "bf16",                  what the matrix products computed in: fp32, tf32, fp16, bf16, fp8, fp4
//         "flash_attention": true,
//         "sequence_length": 2048,
//         "rows": [ { "tp": 1, "cp": 1, "ep": 1, "etp": 1, "sequence_parallel": false,    these five have defaults
//                     "samples": 1, "forward_ms": 2.314, "backward_ms": 5.909, "activation_bytes": 90181632 } ] },
//       { "kind": "head",                   final norm, logits, loss; "embedding" has the same keys
//         "vocabulary": 50272, "hidden": 1024, "dtype": "bf16", "sequence_length": 2048, "rows": [ ... ] } ],
//     "collectives": [                      optional; with them "units" may be left out
//       { "operation": "all_reduce",        all_reduce, all_gather, reduce_scatter, all_to_all, send_recv
//         "ranks_per_node": 8, "nodes": 1, "sharing": 1,    groups that used a node's cards at a time; default 1
//         "points": [ { "bytes": 1048576, "time_us": 78.95 } ] } ]
//   }
//
// forward_ms is one forward pass, backward_ms one backward pass with the gradients of inputs and weights, without
// recompute; activation_bytes (optional) is what a microbatch leaves for backward without recompute. A row with
// "scaled": true was not measured: `tangram calibrate` made it of the model's time.
// What the bytes of a collective count: see collective_curves.hpp. Numbers that cannot be true of the GPU are errors:
// see profile_anomaly.cpp and collective_curves.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tangram/cluster/gpu_names.hpp"
#include "tangram/cost/profile_anomaly.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/io/schema.hpp"
#include "tangram/model/block_record.hpp"

namespace tangram::cost {
namespace {

constexpr io::IntegerRange kDegree = io::integer_limit("tp");
constexpr io::IntegerRange kSamples = io::integer_limit("samples");
constexpr io::IntegerRange kWidth = io::integer_limit("hidden");
constexpr io::IntegerRange kTokens = io::integer_limit("sequence_length");
constexpr io::NumberRange kMilliseconds = io::number_limit("forward_ms");
constexpr io::NumberRange kMicroseconds = io::number_limit("time_us");

bool is_date(std::string_view text) {
  if (text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash ? text[i] != '-' : text[i] < '0' || text[i] > '9') return false;
  }
  return true;
}

void read_date(io::ObjectReader& reader, Profile& profile) {
  profile.date = reader.string_or("date", "");
  if (profile.date.empty() || is_date(profile.date)) return;
  reader.error_at("date", "unknown-value", fmt::format("\"{}\" is not a date", profile.date), "write YYYY-MM-DD");
}

void read_device(io::ObjectReader& reader, std::span<const cluster::GpuType> devices, Profile& profile) {
  const std::string name = reader.string("gpu");
  if (name.empty()) return;
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return d.name == name; });
  if (found != devices.end()) {
    profile.device = *found;
    return;
  }
  reader.error_at("gpu", "unknown-name", fmt::format("there is no GPU type \"{}\"", name),
                  cluster::suggested_gpu(name, devices, "types are those of the catalogue and the fleet"));
}

Nanoseconds read_time(io::ObjectReader& reader, std::string_view key) {
  return Nanoseconds(std::llround(reader.number(key, kMilliseconds) * 1e6));
}

ProfileRow read_row(io::ObjectReader& reader) {
  const auto degree = [&](std::string_view key) { return static_cast<int>(reader.integer_or(key, 1, kDegree)); };
  ProfileRow row;
  row.degrees.tp = degree("tp");
  row.degrees.cp = degree("cp");
  row.degrees.ep = degree("ep");
  row.degrees.etp = degree("etp");
  row.degrees.sequence_parallel = reader.boolean_or("sequence_parallel", false);
  row.samples = reader.integer("samples", kSamples);
  row.forward = read_time(reader, "forward_ms");
  row.backward = read_time(reader, "backward_ms");
  row.activation = Bytes(reader.integer_or("activation_bytes", 0, io::integer_limit("activation_bytes")));
  row.scaled = reader.boolean_or("scaled", false);
  reader.finish();
  if (row.degrees.sequence_parallel && row.degrees.tp == 1) {
    reader.error_at("sequence_parallel", "inconsistent-value", "sequence parallelism shards over tp, which is 1",
                    "remove it, or give \"tp\"");
  }
  return row;
}

auto order_of(const ProfileRow& row) { return std::tie(row.degrees, row.samples); }

void read_rows(io::ObjectReader& reader, const Profile& profile, ProfileUnit& unit) {
  const bool dimensions_known = reader.sink().empty();
  for (io::ObjectReader& item : reader.objects("rows")) {
    const std::size_t before = reader.sink().size();
    const ProfileRow row = read_row(item);
    if (reader.sink().size() != before) continue;
    const bool twice = std::any_of(unit.rows.begin(), unit.rows.end(),
                                   [&](const ProfileRow& r) { return order_of(r) == order_of(row); });
    if (twice) {
      item.error_at("samples", "duplicate-row",
                    fmt::format("a second row for {} samples at these degrees", row.samples), "keep one of them");
    } else if (dimensions_known) {
      if (auto anomaly = find_anomaly(profile, unit, row)) {
        item.error_at(anomaly->key, std::move(anomaly->code), std::move(anomaly->message), std::move(anomaly->hint));
      }
    }
    unit.rows.push_back(row);
  }
  std::sort(unit.rows.begin(), unit.rows.end(),
            [](const ProfileRow& a, const ProfileRow& b) { return order_of(a) < order_of(b); });
}

ProfileUnit read_unit(io::ObjectReader& reader, const Profile& profile) {
  ProfileUnit unit;
  const std::size_t before = reader.sink().size();
  unit.kind = reader.choice<ProfileKind>(
      "kind", {{"block", ProfileKind::kBlock}, {"embedding", ProfileKind::kEmbedding}, {"head", ProfileKind::kHead}});
  if (reader.sink().size() != before) return unit;  // which keys it should have is not known
  unit.dtype = reader.choice<DType>("dtype", kPrecisions);
  unit.sequence_length = reader.integer("sequence_length", kTokens);
  if (unit.kind == ProfileKind::kBlock) {
    if (auto block = reader.object("block")) unit.block = model::read_block_dimensions(*block);
    unit.block.tokens = unit.sequence_length;
    unit.flash_attention = reader.boolean("flash_attention");
  } else {
    unit.vocabulary = reader.integer("vocabulary", io::integer_limit("vocabulary"));
    unit.hidden = reader.integer("hidden", kWidth);
  }
  read_rows(reader, profile, unit);
  reader.finish();
  return unit;
}

CurvePoint read_point(io::ObjectReader& reader) {
  CurvePoint point;
  point.bytes = Bytes(reader.integer("bytes", io::integer_limit("bytes")));
  point.time = Nanoseconds(std::llround(reader.number("time_us", kMicroseconds) * 1e3));
  reader.finish();
  return point;
}

void read_points(io::ObjectReader& reader, const Profile& profile, CollectiveCurve& curve) {
  std::vector<io::ObjectReader> items = reader.objects("points");
  const std::size_t before = reader.sink().size();
  for (io::ObjectReader& item : items) {
    curve.points.push_back(read_point(item));
    const bool falls = curve.points.size() > 1 && curve.points.back().bytes <= curve.points.rbegin()[1].bytes;
    if (falls && reader.sink().size() == before) {
      item.error_at("bytes", "not-ascending", "bytes do not grow from the point before", "sort the points by bytes");
    }
  }
  if (reader.sink().size() != before) return;
  if (auto mistake = find_mistake(curve, profile.device)) {
    items[mistake->point].error_at("time_us", std::move(mistake->code), std::move(mistake->message),
                                   std::move(mistake->hint));
  }
}

CollectiveCurve read_curve(io::ObjectReader& reader, const Profile& profile) {
  const auto count = [&](std::int64_t value) { return static_cast<int>(value); };
  CollectiveCurve curve;
  curve.operation = reader.choice<Exchange>("operation", {{"all_reduce", Exchange::kAllReduce},
                                                          {"all_gather", Exchange::kAllGather},
                                                          {"reduce_scatter", Exchange::kReduceScatter},
                                                          {"all_to_all", Exchange::kAllToAll},
                                                          {"send_recv", Exchange::kSendRecv}});
  curve.group.ranks_per_node = count(reader.integer("ranks_per_node", kDegree));
  curve.group.nodes = count(reader.integer("nodes", kDegree));
  curve.group.sharing = count(reader.integer_or("sharing", 1, kDegree));
  if (curve.group.ranks() < 2) {
    reader.error_at("ranks_per_node", "inconsistent-value", "a group of one rank exchanges nothing",
                    "give at least two ranks");
  }
  read_points(reader, profile, curve);
  reader.finish();
  return curve;
}

}  // namespace

Profile read_profile(io::ObjectReader& reader, std::span<const cluster::GpuType> devices) {
  Profile profile;
  if (!io::has_schema(reader, "tangram.profile/1")) return profile;
  read_device(reader, devices, profile);
  profile.source = reader.string("source");
  read_date(reader, profile);
  profile.includes_tp_communication = reader.boolean("includes_tp_communication");
  for (io::ObjectReader& item : reader.objects_if("collectives")) {
    profile.collectives.push_back(read_curve(item, profile));
  }
  for (io::ObjectReader& item : profile.collectives.empty() ? reader.objects("units") : reader.objects_if("units")) {
    profile.units.push_back(read_unit(item, profile));
  }
  reader.finish();
  return profile;
}

Expected<Profile> read_profile(std::string text, std::string file, std::span<const cluster::GpuType> devices) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));
  Diagnostics mistakes;
  io::ObjectReader reader(*document, document->root, "", mistakes);
  Profile profile;
  if (reader.valid()) profile = read_profile(reader, devices);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return profile;
}

}  // namespace tangram::cost
