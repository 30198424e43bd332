#include "question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "tangram/base/at.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/cost/communication.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/model/techniques.hpp"

namespace tangram::parallelizer {
namespace {

using OrderedJson = nlohmann::ordered_json;
using namespace tangram::literals;

// Enough for planners that fit a line through them (Galvatron wants eight).
constexpr Bytes kMessages[] = {1_MiB, 2_MiB, 4_MiB, 8_MiB, 16_MiB, 32_MiB, 64_MiB, 128_MiB, 256_MiB, 512_MiB, 1024_MiB};
constexpr std::pair<cost::Collective, const char*> kCollectives[] = {
    {cost::Collective::kAllReduce, "all_reduce"},
    {cost::Collective::kAllGather, "all_gather"},
    {cost::Collective::kReduceScatter, "reduce_scatter"},
    {cost::Collective::kAllToAll, "all_to_all"},
};

std::shared_ptr<const Material> material(const char* name, const OrderedJson& content) {
  const std::string text = io::write_compact(content);
  return std::make_shared<const Material>(Material{digest(text), fmt::format("\"{}\":{}", name, text)});
}

OrderedJson block_json(const model::BlockType& block) {
  const model::BlockParameters parameters = model::parameters(block);
  return {{"name", block.name},
          {"parameters", parameters.total()},
          {"expert_parameters", parameters.expert},
          {"forward_flops_per_sample", model::forward_flops(block).value()}};
}

/// The model file's own form, and what every planner would otherwise have to work out from it.
OrderedJson model_json(const model::Model& model) {
  OrderedJson counted = OrderedJson::object();
  counted["blocks"] = OrderedJson::array();
  for (const model::BlockType& block : model.types) counted["blocks"].push_back(block_json(block));
  counted["embedding_parameters"] = model.embedding_parameters();
  counted["head_parameters"] = model.head_parameters();
  counted["head_forward_flops_per_sample"] = model::head_forward_flops(model).value();
  return {{"file", OrderedJson::parse(model::write_model(model))}, {"counted", counted}};
}

OrderedJson link_json(const cluster::Link& link) {
  return {{"bandwidth_bytes_per_s", link.bandwidth.value()},
          {"latency_ns", link.latency.value()},
          {"ramp_ns", link.ramp.value()}};
}

OrderedJson gpu_json(const cluster::GpuType& gpu) {
  OrderedJson peak = OrderedJson::object();
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    if (gpu.peak_of(type).value() > 0) peak[std::string(to_string(type))] = gpu.peak_of(type).value();
  }
  return {{"name", gpu.name},
          {"vendor", gpu.vendor},
          {"architecture", gpu.architecture},
          {"memory_bytes", gpu.memory.value()},
          {"usable_bytes", gpu.usable().value()},
          {"memory_bandwidth_bytes_per_s", gpu.memory_bandwidth.value()},
          {"peak_flops", peak},
          {"gemm_efficiency", gpu.compute.gemm_efficiency}};
}

/// One row for each operation, group and message: groups of neighbours, and of ranks as far apart as possible.
OrderedJson collectives_json(const cluster::DeviceShape& shape) {
  OrderedJson rows = OrderedJson::array();
  const int gpus = shape.gpus();
  for (int ranks = 2; ranks <= gpus; ++ranks) {
    if (gpus % ranks != 0) continue;
    const int farthest = gpus / ranks;
    for (int stride = 1; stride <= farthest; stride += std::max(1, farthest - 1)) {
      const cost::Group group = cost::place_group(ranks, stride, shape);
      for (const auto& [kind, name] : kCollectives) {
        for (const Bytes bytes : kMessages) {
          rows.push_back(OrderedJson{{"operation", name},
                                     {"ranks", ranks},
                                     {"stride", stride},
                                     {"bytes", bytes.value()},
                                     {"seconds", cost::collective_seconds(kind, bytes.as_double(), group, shape)}});
        }
      }
    }
  }
  return rows;
}

OrderedJson shape_json(const cluster::DeviceShape& shape) {
  return {{"gpu", gpu_json(shape.device)},   {"nodes", shape.nodes},
          {"per_node", shape.per_node},      {"intra", link_json(shape.intra)},
          {"inter", link_json(shape.inter)}, {"collectives", collectives_json(shape)}};
}

OrderedJson profiles_json(const cost::ProfileSet& profiles) {
  OrderedJson all = OrderedJson::array();
  for (const cost::Profile& profile : profiles.profiles()) all.push_back(cost::profile_json(profile));
  return all;
}

OrderedJson slice_json(const model::Model& model, const model::SliceSignature& slice) {
  OrderedJson blocks = OrderedJson::array();
  for (const auto& [type, count] : slice.runs) {
    blocks.push_back(OrderedJson{{"type", at(model.types, type).name}, {"count", count}});
  }
  return {{"blocks", blocks},
          {"embedding", slice.embedding},
          {"head", slice.head},
          {"tied_elsewhere", slice.tied_elsewhere},
          {"entry_bytes_per_sample", slice.entry_bytes},
          {"exit_bytes_per_sample", slice.exit_bytes}};
}

/// Techniques of a pipeline, of which a stage knows nothing.
constexpr std::array<std::string_view, 4> kOfPipelines{"mixed_stages", "replicas", "pipeline", "interleaving"};

/// Names of single techniques that matter inside a stage.
OrderedJson allowed_json(const model::Techniques& allow) {
  OrderedJson names = OrderedJson::array();
  for (const model::TechniqueName& name : model::technique_names()) {
    const bool single = name.flags[1] == nullptr;
    const bool inside = std::ranges::find(kOfPipelines, name.name) == kOfPipelines.end();
    if (single && inside && allow.*name.flags[0]) names.push_back(std::string(name.name));
  }
  return names;
}

/// What the target's runtime demands; only what differs from nothing.
OrderedJson demands_json(const Demands& demands) {
  OrderedJson out = OrderedJson::object();
  if (demands.degrees) {
    const cost::Degrees& d = *demands.degrees;
    out["degrees"] = OrderedJson{{"tp", d.tp}, {"cp", d.cp},   {"dp", d.dp},
                                 {"ep", d.ep}, {"etp", d.etp}, {"sequence_parallel", d.sequence_parallel}};
    if (d.dp_replicate > 1) out["degrees"]["dp_replicate"] = d.dp_replicate;
  }
  constexpr const char* kModes[] = {"none", "selective", "full"};
  if (demands.recompute) out["recompute"] = kModes[static_cast<int>(*demands.recompute)];
  if (demands.sequence_parallel) out["sequence_parallel"] = true;
  if (demands.zero1) out["zero1"] = true;
  if (demands.whole_stage_experts) out["whole_stage_experts"] = true;
  if (demands.whole_recompute) out["whole_recompute"] = true;
  if (demands.tp_at_ends > 0) out["tp_at_ends"] = demands.tp_at_ends;
  if (demands.equal_samples) out["equal_samples"] = true;
  return out;
}

}  // namespace

QuestionWriter::QuestionWriter(const model::Model& model, const cost::ProfileSet* profiles) : model_(model) {
  common_.push_back(material("model", model_json(model)));
  if (profiles != nullptr && !profiles->empty()) common_.push_back(material("profiles", profiles_json(*profiles)));
}

std::shared_ptr<const Material> QuestionWriter::shape_material(const cluster::DeviceShape& shape) {
  for (const auto& [known, text] : shapes_) {
    if (known == shape) return text;
  }
  shapes_.emplace_back(shape, material("shape", shape_json(shape)));
  return shapes_.back().second;
}

Question QuestionWriter::write(const Query& query) {
  Question question{{}, common_};
  question.materials.push_back(shape_material(query.shape));
  OrderedJson body;
  body["model"] = common_.front()->digest;
  if (common_.size() > 1) body["profiles"] = common_.back()->digest;
  body["shape"] = question.materials.back()->digest;
  body["slice"] = slice_json(model_, query.slice);
  body["microbatch"] = query.samples;
  body["in_flight"] = OrderedJson{{"max", query.max_in_flight}};
  body["allow"] = allowed_json(query.allow);
  if (!(query.demands == Demands{})) body["demands"] = demands_json(query.demands);
  if (query.upper_bound < Nanoseconds::max()) body["upper_bound_ns"] = query.upper_bound.value();
  body["seed"] = 0;  // for planners that draw: the same question is to have the same answer
  question.body = io::write_compact(body);
  question.body = question.body.substr(1, question.body.size() - 2);
  return question;
}

}  // namespace tangram::parallelizer
