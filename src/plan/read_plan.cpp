#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "embedded_text.hpp"
#include "records.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/io/schema.hpp"
#include "tangram/model/split.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

namespace {

std::int64_t length_of(const io::Node& root, std::string_view key) {
  const io::Node* node = root.find(key);
  return node == nullptr ? 0 : static_cast<std::int64_t>(node->items.size());
}

void read_model_into(LaunchPlan& plan, io::ObjectReader& reader) {
  auto member = reader.object("model");
  if (!member) return;
  auto model = model::read_model(embedded_text(reader.document(), member->node()), reader.document().file);
  if (model) {
    plan.model = std::move(*model);
  } else {
    for (auto& diagnostic : model.error()) reader.sink().push_back(std::move(diagnostic));
  }
}

/// The stages' blocks are then counted in the language model.
void read_colocated(FieldReader& io, LaunchPlan& plan) {
  if (!io.reader().has("colocated")) return;
  plan.colocated.emplace();
  io.object("colocated", [&](FieldReader& inner) { fields(inner, *plan.colocated); });
  const std::string why = plan.model.blocks.empty() ? "it has no blocks" : model::why_not_split(plan.model);
  io.check(why.empty(), "colocated", "inconsistent", "the model's encoders cannot be colocated: " + why);
  plan.colocated->language = why.empty() ? model::language_of(plan.model) : plan.model;
}

void read_profile(FieldReader& io, cost::ProfileSet& profiles, const References& known) {
  cluster::GpuType device;
  io.element("gpu_type_record", device, known.devices);
  auto profile = io.reader().object("profile");
  if (!profile || known.devices.empty()) return;
  const std::size_t before = io.reader().sink().size();
  cost::Profile read = cost::read_profile(*profile, std::span(&device, 1));
  if (io.reader().sink().size() == before) profiles.add(std::move(read));
}

/// Lists that may be empty, but must be there: where one is missing the file was cut.
void need(io::ObjectReader& reader, std::string_view key) {
  if (!reader.valid() || reader.has(key)) return;
  reader.error_at(key, "missing-list", "missing key \"" + std::string(key) + '"',
                  "plans always have it, if only empty");
}

template <class T>
void read_list(FieldReader& io, std::string_view key, std::vector<T>& records, const References& known,
               Presence presence = Presence::kSome) {
  io.records(key, records, presence,
             [&](FieldReader& entry, T& record, std::size_t position) { fields(entry, record, known, position); });
}

void read_document(FieldReader& io, LaunchPlan& plan, References known) {
  io.text("plan_id", plan.plan_id);
  io.object("provenance", [&](FieldReader& inner) { fields(inner, plan.provenance); });
  io.object("fleet", [&](FieldReader& inner) {
    inner.text_or("name", plan.fleet_name);
    inner.integer("gpus", plan.fleet_gpus, {1, kMostDegree * 16});
  });
  read_model_into(plan, io.reader());
  if (io.reader().has("execution")) io.object("execution", [&](FieldReader& inner) { execution_fields(inner, plan); });
  read_colocated(io, plan);
  known.blocks = plan.pipelined().block_count();
  known.zero_bubble = plan.zero_bubble;
  io.records("gpu_types", known.devices, Presence::kSome,
             [](FieldReader& entry, cluster::GpuType& device, std::size_t) { fields(entry, device); });
  read_list(io, "islands", plan.islands, known);
  read_list(io, "pipelines", plan.pipelines, known);
  read_list(io, "stages", plan.stages, known);
  for (const Stage& stage : plan.stages) known.parts.push_back(static_cast<std::int64_t>(stage.parts.size()));
  for (const char* list : {"boundaries", "idle", "targets"}) need(io.reader(), list);
  read_list(io, "boundaries", plan.boundaries, known, Presence::kAny);
  read_list(io, "ranks", plan.ranks, known);
  read_list(io, "idle", plan.idle, known, Presence::kAny);
  for (io::ObjectReader& entry : io.reader().objects_if("profiles")) {
    FieldReader::read(entry, [&](FieldReader& inner) { read_profile(inner, plan.profiles, known); });
  }
  io.object("predicted", [&](FieldReader& inner) { fields(inner, plan.predicted, known); });
  io.map("targets", plan.targets, &TargetVerdict::target,
         [&](FieldReader& inner, TargetVerdict& verdict) { fields(inner, verdict, known); });
  io.object("batch", [&](FieldReader& inner) { batch_fields(inner, plan); });
}

}  // namespace

Expected<LaunchPlan> read_plan(std::string text, std::string file) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));
  References known;
  known.islands = length_of(document->root, "islands");
  known.pipelines = length_of(document->root, "pipelines");
  known.stages = length_of(document->root, "stages");
  known.ranks = length_of(document->root, "ranks");
  Diagnostics sink;
  io::ObjectReader reader(*document, document->root, "", sink);
  LaunchPlan plan;
  if (reader.valid() && io::has_schema(reader, kSchema)) {
    FieldReader::read(reader, [&](FieldReader& io) { read_document(io, plan, std::move(known)); });
  }
  if (!sink.empty()) return fail(std::move(sink));
  return plan;
}

}  // namespace tangram::plan
