#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "names.hpp"
#include "record_json.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

namespace {

// The search space is JSON text of the composer: embedded as it is when it is canonical, as a string otherwise, so
// that reading gives the same text back.
/// A text that is a JSON object of our own writing stands as one.
Json embedded_json(const std::string& text) {
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_object() && io::write_compact(parsed) == text) return parsed;
  return text;
}

Json reasons_json(const std::vector<parallelizer::CountedReason>& reasons) {
  Json out = Json::array();
  for (const auto& reason : reasons) {
    out.push_back(Json{{"code", reason.code}, {"count", reason.count}, {"example", reason.example}});
  }
  return out;
}

Json outsiders_json(const std::vector<parallelizer::Tally>& outsiders) {
  Json out = Json::array();
  for (const parallelizer::Tally& tally : outsiders) {
    Json entry;
    entry["name"] = tally.info.name;
    entry["version"] = tally.info.version;
    entry["deterministic"] = tally.info.deterministic;
    entry["queries"] = tally.queries;
    entry["plans"] = tally.plans;
    entry["infeasible"] = tally.infeasible;
    entry["unsupported"] = tally.unsupported;
    if (tally.claimed) {
      entry["claimed_time_over_recomputed"] = Json{{"least", tally.claimed->least}, {"most", tally.claimed->most}};
    }
    entry["rejected"] = reasons_json(tally.rejected);
    entry["failed"] = reasons_json(tally.failed);
    out.push_back(entry);
  }
  return out;
}

Json provenance_json(const PlanProvenance& provenance) {
  Json out;
  out["version"] = provenance.version;
  Json inputs = Json::object();
  for (const auto& input : provenance.inputs) inputs[input.name] = input.digest;
  out["inputs"] = inputs;
  out["parallelizers"] = provenance.parallelizers;
  if (!provenance.outsiders.empty()) out["outside_parallelizers"] = outsiders_json(provenance.outsiders);
  out["level"] = provenance.level;
  out["space"] = embedded_json(provenance.space);
  if (!provenance.search.empty()) out["search"] = embedded_json(provenance.search);
  out["states"] = provenance.states;
  out["labels"] = provenance.labels;
  out["objective"] = provenance.objective;
  out["optimal"] = provenance.optimal;
  out["search_bound_s"] = seconds(provenance.search_bound);
  out["relaxed_bound_s"] = seconds(provenance.relaxed_bound);
  out["search_gap"] = provenance.search_gap;
  out["relaxed_gap"] = provenance.relaxed_gap;
  out["note"] = provenance.note;
  return out;
}

/// Transfers and warm-up follow from the runtime; they are written for those who do not know it.
Json execution_json(const LaunchPlan& plan) {
  return {{"runtime", to_string(plan.runtime)},
          {"transfers", to_string(plan.semantics().transfers)},
          {"warmup", to_string(plan.semantics().warmup)}};
}

Json batch_json(const LaunchPlan& plan) {
  Json out;
  out["global"] = plan.model.job.global_batch;
  out["microbatch"] = plan.pipelines.empty() ? 0 : plan.pipelines.front().microbatch;
  out["num_microbatches"] = plan.pipelines.empty() ? 0 : plan.pipelines.front().microbatches;
  out["loss_normalization"] = plan.model.job.loss_normalization;
  return out;
}

/// Each distinct capability record once; islands name it and its position.
std::vector<cluster::GpuType> distinct_devices(const LaunchPlan& plan) {
  std::vector<cluster::GpuType> devices;
  for (const auto& island : plan.islands) {
    if (std::ranges::find(devices, island.device) == devices.end()) devices.push_back(island.device);
  }
  return devices;
}

Json island_json(const PlanIsland& island, const std::vector<cluster::GpuType>& devices) {
  Json out;
  out["id"] = island.id;
  out["class"] = island.island_class;
  out["gpu_type"] = island.device.name;
  out["gpu_type_record"] = std::ranges::find(devices, island.device) - devices.begin();
  out["gpus_per_member"] = island.gpus_per_member;
  out["members_per_island"] = island.members_per_island;
  out["inside_member"] = link_json(island.inside_member);
  out["between_members"] = link_json(island.between_members);
  out["between_islands"] = link_json(island.between_islands);
  out["price_per_gpu_hour"] = island.price_per_gpu_hour.value();
  out["nodes"] = Json::array();
  for (const auto& node : island.nodes) {
    Json entry;
    entry["host"] = node.host;
    entry["gpus"] = node.gpus;
    out["nodes"].push_back(std::move(entry));
  }
  return out;
}

Json pipeline_json(const Pipeline& pipeline) {
  Json out;
  out["id"] = pipeline.id;
  out["samples"] = pipeline.samples;
  out["microbatch"] = pipeline.microbatch;
  out["num_microbatches"] = pipeline.microbatches;
  if (pipeline.has_smaller_last()) out["last_microbatch"] = pipeline.last_microbatch();
  out["stages"] = pipeline.stages;
  return out;
}

Json prediction_json(const PartPrediction& predicted) {
  Json out;
  out["forward_ms"] = milliseconds(predicted.forward);
  out["backward_ms"] = milliseconds(predicted.backward);
  out["gradient_sync_ms"] = milliseconds(predicted.gradient_sync);
  out["gradient_sync_exposed_ms"] = milliseconds(predicted.gradient_sync_exposed);
  out["optimizer_step_ms"] = milliseconds(predicted.optimizer_step);
  out["static_bytes"] = predicted.static_memory.value();
  out["transient_bytes"] = predicted.transient.value();
  out["activation_bytes"] = predicted.activation.value();
  out["peak_memory_bytes"] = predicted.peak_memory.value();
  out["usable_bytes"] = predicted.usable_memory.value();
  out["in_flight"] = predicted.in_flight;
  out["provenance"] = std::string(cost::to_string(predicted.provenance));
  return out;
}

Json part_json(const Part& part) {
  const auto& degrees = part.strategy.degrees;
  const auto& policy = part.strategy.policy;
  Json out;
  out["island"] = part.island;
  out["samples"] = part.samples;
  out["samples_per_replica"] = part.samples_per_replica();
  out["parallel"] = {{"tp", degrees.tp},
                     {"cp", degrees.cp},
                     {"dp", degrees.dp},
                     {"ep", degrees.ep},
                     {"etp", degrees.etp},
                     {"sequence_parallel", degrees.sequence_parallel},
                     {"order", std::string(kRankOrder)}};
  out["ranks"] = {{"first", part.first_rank}, {"count", degrees.gpus()}};
  out["members"] = part.members;
  out["zero"] = policy.zero;
  out["recompute"] = {{"granularity", std::string(policy.is_mixed() ? kMixed : to_string(policy.recompute))},
                      {"method", std::string(recompute_method(policy.recompute))},
                      {"layers", policy.recompute_layers}};
  for (const cost::BlockRun& run : policy.runs) {
    out["block_runs"].push_back({{"blocks", run.blocks},
                                 {"zero", run.policy.zero},
                                 {"recompute", std::string(to_string(run.policy.recompute))}});
  }
  out["parallelizer"] = part.parallelizer;
  if (!part.opaque.empty()) out["opaque"] = part.opaque;
  out["predicted"] = prediction_json(part.predicted);
  return out;
}

Json stage_json(const Stage& stage) {
  Json out;
  out["id"] = stage.id;
  out["pipeline"] = stage.pipeline;
  out["blocks"] = {stage.first, stage.last};
  out["embedding"] = stage.embedding;
  out["head"] = stage.head;
  out["schedule"] = {{"warmup", stage.warmup}};
  out["parts"] = Json::array();
  for (const auto& part : stage.parts) out["parts"].push_back(part_json(part));
  return out;
}

Json boundary_json(const Boundary& boundary) {
  Json out;
  out["from"] = boundary.from;
  out["to"] = boundary.to;
  out["mode"] = std::string(to_string(boundary.mode));
  out["link"] = link_json(boundary.link);
  out["source_part"] = boundary.source_part;
  out["target_part"] = boundary.target_part;
  out["latency_ms"] = milliseconds(boundary.latency);
  out["occupancy_ms"] = milliseconds(boundary.occupancy);
  out["transfers"] = Json::array();
  for (const auto& t : boundary.transfers) {
    Json entry;
    entry["src"] = t.src;
    entry["dst"] = t.dst;
    entry["samples"] = {t.sample_first, t.sample_last};
    entry["seq"] = {t.seq_first, t.seq_last};
    entry["bytes"] = t.bytes.value();
    out["transfers"].push_back(std::move(entry));
  }
  return out;
}

Json rank_json(const Rank& rank) {
  Json out;
  out["rank"] = rank.rank;
  out["host"] = rank.host;
  out["local_rank"] = rank.local_rank;
  out["gpu"] = rank.gpu;
  out["island"] = rank.island;
  out["stage"] = rank.stage;
  out["part"] = rank.part;
  out["replica"] = rank.replica;
  out["tp"] = rank.tp;
  out["cp"] = rank.cp;
  out["dp"] = rank.dp;
  out["ep"] = rank.ep;
  out["etp"] = rank.etp;
  out["edp"] = rank.edp;
  return out;
}

Json predicted_json(const Predicted& predicted) {
  Json out;
  out["iteration_s"] = seconds(predicted.iteration);
  out["closed_form_s"] = seconds(predicted.closed_form);
  out["tokens_per_s"] = predicted.tokens_per_s;
  out["mfu"] = predicted.mfu;
  out["mfu_fleet"] = predicted.mfu_fleet;
  out["cost_per_mtoken"] = predicted.cost_per_mtoken;
  out["bottleneck_stage"] = predicted.bottleneck_stage;
  out["bubble_fraction"] = predicted.bubble_fraction;
  out["breakdown"] = {{"compute_s", predicted.breakdown.compute},
                      {"bubble_s", predicted.breakdown.bubble},
                      {"exposed_sync_s", predicted.breakdown.exposed_sync},
                      {"optimizer_s", predicted.breakdown.optimizer}};
  return out;
}

Json targets_json(const std::vector<TargetVerdict>& targets) {
  Json out = Json::object();
  for (const auto& verdict : targets) {
    Json entry;
    entry["ok"] = verdict.ok;
    entry["reasons"] = Json::array();
    for (const auto& reason : verdict.reasons) {
      entry["reasons"].push_back({{"code", reason.code}, {"stages", reason.stages}, {"text", reason.text}});
    }
    out[verdict.target] = std::move(entry);
  }
  return out;
}

template <class T, class Function>
Json list_json(const std::vector<T>& values, Function one) {
  Json out = Json::array();
  for (const auto& value : values) out.push_back(one(value));
  return out;
}

/// A profile and the capability record it was measured on; a throttled GPU has the same name and another record.
Json profile_entry(const cost::Profile& profile, const std::vector<cluster::GpuType>& devices) {
  const auto find = [&](const auto& alike) {
    return std::ranges::find_if(devices, [&](const auto& d) { return alike(d, profile.device); });
  };
  auto record = find(cost::communicates_alike);  // curves need it, for rows the other is enough
  if (record == devices.end()) record = find(cost::computes_alike);
  TANGRAM_ASSERT(record != devices.end());
  return Json{{"gpu_type_record", record - devices.begin()}, {"profile", cost::profile_json(profile)}};
}

/// Everything but plan_id and provenance.
Json body_json(const LaunchPlan& plan) {
  const auto devices = distinct_devices(plan);
  Json body;
  body["fleet"] = {{"name", plan.fleet_name}, {"gpus", plan.fleet_gpus}};
  body["model"] = Json::parse(model::write_model(plan.model));
  body["execution"] = execution_json(plan);
  body["batch"] = batch_json(plan);
  body["gpu_types"] = list_json(devices, gpu_type_json);
  body["islands"] = list_json(plan.islands, [&](const PlanIsland& island) { return island_json(island, devices); });
  body["pipelines"] = list_json(plan.pipelines, pipeline_json);
  body["stages"] = list_json(plan.stages, stage_json);
  body["boundaries"] = list_json(plan.boundaries, boundary_json);
  body["ranks"] = list_json(plan.ranks, rank_json);
  body["idle"] = list_json(plan.idle, [](const IdleGpus& idle) {
    return Json{{"class", idle.island_class}, {"gpus", idle.gpus}, {"reason", idle.reason}};
  });
  if (!plan.profiles.empty()) {
    body["profiles"] =
        list_json(plan.profiles.profiles(), [&](const cost::Profile& p) { return profile_entry(p, devices); });
  }
  body["predicted"] = predicted_json(plan.predicted);
  body["targets"] = targets_json(plan.targets);
  return body;
}

std::string one_line(const Json& value) {
  if (!value.is_structured()) return value.dump();
  std::string text(1, value.is_array() ? '[' : '{');
  const char* separator = "";
  for (const auto& [key, item] : value.items()) {
    text += separator;
    if (value.is_object()) text += Json(key).dump() + ": ";
    text += one_line(item);
    separator = ", ";
  }
  return text + (value.is_array() ? ']' : '}');
}

/// Long lists of small records read best one record a line, also where a record is wider than the canonical writer's
/// line. They are cut out, the rest is written, and they are put back in.
class Rows {
 public:
  // The mark holds the digest of the whole body, which nothing inside the body can contain.
  explicit Rows(const std::string& digest) : mark_("rows of " + digest) {}

  void cut(Json& list, std::size_t indent) {
    if (list.empty()) return;
    std::string text = "[\n";
    for (std::size_t i = 0; i < list.size(); ++i) {
      text += std::string(indent + 2, ' ') + one_line(list[i]) + (i + 1 < list.size() ? ",\n" : "\n");
    }
    texts_.push_back(text + std::string(indent, ' ') + "]");
    list = mark_;
  }

  [[nodiscard]] std::string fill(const std::string& skeleton) const {
    const std::string quoted = '"' + mark_ + '"';
    std::string out;
    std::size_t from = 0;
    for (const auto& text : texts_) {
      const std::size_t at = skeleton.find(quoted, from);
      out.append(skeleton, from, at - from);
      out += text;
      from = at + quoted.size();
    }
    return out.append(skeleton, from);
  }

 private:
  std::string mark_;
  std::vector<std::string> texts_;
};

}  // namespace

std::string plan_digest(const LaunchPlan& plan) { return digest(io::write_compact(body_json(plan))); }

std::string write_plan(LaunchPlan& plan) {
  Json body = body_json(plan);
  plan.plan_id = digest(io::write_compact(body));
  Rows rows(plan.plan_id);
  for (auto& island : body["islands"]) rows.cut(island["nodes"], 6);
  for (auto& boundary : body["boundaries"]) rows.cut(boundary["transfers"], 6);
  rows.cut(body["ranks"], 2);

  Json document;
  document["schema"] = std::string(kSchema);
  document["plan_id"] = plan.plan_id;
  document["provenance"] = provenance_json(plan.provenance);
  for (auto& [key, value] : body.items()) document[key] = std::move(value);
  return rows.fill(io::write_canonical(document));
}

}  // namespace tangram::plan
