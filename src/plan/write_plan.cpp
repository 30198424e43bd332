#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "records.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

namespace {

/// Each distinct capability record once; islands name it and its position.
std::vector<cluster::GpuType> distinct_devices(const LaunchPlan& plan) {
  std::vector<cluster::GpuType> devices;
  for (const auto& island : plan.islands) {
    if (std::ranges::find(devices, island.device) == devices.end()) devices.push_back(island.device);
  }
  return devices;
}

template <class T, class... Context>
Json record_json(const T& record, const Context&... context) {
  Json out;
  FieldWriter writer(out);
  fields(writer, record, context...);
  return out;
}

template <class T>
Json list_json(const std::vector<T>& records, const References& known) {
  Json out = Json::array();
  for (std::size_t i = 0; i < records.size(); ++i) out.push_back(record_json(records[i], known, i));
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

/// Without the figures of kernels that the job does not run.
cluster::GpuType needed_of(cluster::GpuType device, const model::Job& job) {
  if (cost::attention_kernel_on(device, job) != model::AttentionKernel::kNative) {
    device.compute.native_attention.reset();
  }
  if (!job.fused_kernels && job.precision != DType::kFp4) device.compute.fused_kernels.reset();
  return device;
}

/// Everything but plan_id and provenance.
Json body_json(const LaunchPlan& plan) {
  References known;
  known.devices = distinct_devices(plan);
  known.zero_bubble = plan.zero_bubble;
  Json body;
  FieldWriter writer(body);
  body["fleet"] = {{"name", plan.fleet_name}, {"gpus", plan.fleet_gpus}};
  body["model"] = Json::parse(model::write_model(plan.model));
  writer.object("execution", [&](FieldWriter& io) { execution_fields(io, plan); });
  if (plan.colocated) writer.object("colocated", [&](FieldWriter& io) { fields(io, *plan.colocated); });
  writer.object("batch", [&](FieldWriter& io) { batch_fields(io, plan); });
  body["gpu_types"] = Json::array();
  for (const cluster::GpuType& device : known.devices) {
    body["gpu_types"].push_back(record_json(needed_of(device, plan.model.job)));
  }
  body["islands"] = list_json(plan.islands, known);
  body["pipelines"] = list_json(plan.pipelines, known);
  body["stages"] = list_json(plan.stages, known);
  body["boundaries"] = list_json(plan.boundaries, known);
  body["ranks"] = list_json(plan.ranks, known);
  body["idle"] = list_json(plan.idle, known);
  for (const cost::Profile& profile : plan.profiles.profiles()) {
    body["profiles"].push_back(profile_entry(profile, known.devices));
  }
  body["predicted"] = record_json(plan.predicted, known);
  writer.map("targets", plan.targets, &TargetVerdict::target,
             [&](FieldWriter& io, const TargetVerdict& verdict) { fields(io, verdict, known); });
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
  document["provenance"] = record_json(plan.provenance);
  for (auto& [key, value] : body.items()) document[key] = std::move(value);
  return rows.fill(io::write_canonical(document));
}

}  // namespace tangram::plan
