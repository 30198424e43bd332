// Every dimension is written out, block type by block type, so that no default of the reader is part of the meaning.
#include <nlohmann/json.hpp>

#include "canonical.hpp"
#include "tangram/base/at.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/model/block_record.hpp"
#include "tangram/model/techniques.hpp"

namespace tangram::model {

namespace {

using nlohmann::ordered_json;

const char* norm_name(bool bias) { return bias ? "layernorm" : "rmsnorm"; }

void put_attention(const Attention& a, ordered_json& out) {
  out["heads"] = a.heads;
  if (a.kind == AttentionKind::kLatent) {
    out["mla"] = {{"q_lora_rank", a.q_lora_rank},
                  {"kv_lora_rank", a.kv_lora_rank},
                  {"qk_nope_head_dim", a.qk_nope_head_dim},
                  {"qk_rope_head_dim", a.qk_rope_head_dim},
                  {"v_head_dim", a.v_head_dim}};
  } else {
    out["kv_heads"] = a.kv_heads;
    out["head_dim"] = a.head_dim;
    out["qk_norm"] = a.qk_norm;
    if (a.output_gate) out["output_gate"] = true;
  }
  out["sliding_window"] = a.sliding_window;
  out["causal"] = a.causal;
  out["qkv_bias"] = a.qkv_bias;
  out["output_bias"] = a.output_bias;
}

void put_recurrence(const Recurrence& r, ordered_json& out) {
  ordered_json& own = out[std::string(to_string(r.kind))];
  const bool mamba = r.kind == RecurrenceKind::kMamba2;
  own[mamba ? "heads" : "value_heads"] = r.heads;
  own[mamba ? "head_dim" : "value_head_dim"] = r.head_dim;
  own[mamba ? "groups" : "key_heads"] = r.groups;
  own[mamba ? "state" : "key_head_dim"] = r.key_dim;
  own["convolution"] = r.convolution;
  own["chunk"] = r.chunk;
  own["convolution_bias"] = r.convolution_bias;
  own["projection_bias"] = r.projection_bias;
}

void put_feed_forward(const FeedForward& f, ordered_json& out) {
  if (f.hidden > 0) out["ffn_hidden"] = f.hidden;
  out["gated"] = f.gated;
  out["ffn_bias"] = f.bias;
  if (!f.is_moe()) return;
  out["moe"] = {{"experts", f.experts},
                {"experts_per_token", f.experts_per_token},
                {"expert_hidden", f.expert_hidden},
                {"shared_hidden", f.shared_hidden},
                {"shared_gate", f.shared_gate},
                {"router_bias", f.router_bias}};
  if (f.latent_hidden > 0) out["moe"]["latent_hidden"] = f.latent_hidden;
  if (f.expert_groups == 1) return;
  out["moe"]["expert_groups"] = f.expert_groups;
  out["moe"]["groups_per_token"] = f.groups_per_token;
}

void put_inner(const BlockType& block, ordered_json& out) {
  if (!block.feeds_forward()) out["only"] = "mixer";
  if (!block.mixes()) out["only"] = "feed_forward";
  if (block.recurrence) put_recurrence(*block.recurrence, out);
  if (block.attends()) put_attention(block.attention, out);
  if (block.feeds_forward()) put_feed_forward(block.feed_forward, out);
  out["norm"] = norm_name(block.norm_bias);
  out["norms_per_block"] = block.norms;
  if (!out.contains("only")) out["parallel_attention"] = block.parallel_attention;
}

ordered_json block_json(const BlockType& block, std::int64_t sequence_length) {
  ordered_json out;
  out["name"] = block.name;
  out["hidden"] = block.hidden;
  if (block.tokens != sequence_length) out["tokens"] = block.tokens;
  put_inner(block, out);
  return out;
}

ordered_json runs_json(const Model& model) {
  ordered_json runs = ordered_json::array();
  for (int i = 0; i < model.block_count();) {
    int end = i + 1;
    while (end < model.block_count() && model.block(end).name == model.block(i).name) ++end;
    runs.push_back({{"type", model.block(i).name}, {"count", end - i}});
    i = end;
  }
  return runs;
}

ordered_json connector_json(const Connector& connector) {
  ordered_json out;
  out["kind"] = to_string(connector.kind);
  out["widths"] = connector.widths;
  out["bias"] = connector.bias;
  out["norm"] = connector.norm > 0 ? norm_name(connector.norm_bias) : "none";
  if (connector.norm > 0) out["norm_width"] = connector.norm;
  if (connector.kind == ConnectorKind::kResampler) out["queries"] = connector.queries;
  out["extra_parameters"] = connector.extra_parameters;
  out["trainable"] = connector.trainable;
  return out;
}

ordered_json constraint_json(const ModuleConstraint& constraint) {
  ordered_json out;
  for (const auto& [name, value] : kFixedDegrees) {
    if (constraint.*value > 0) out[std::string(name)] = constraint.*value;
  }
  if (!constraint.gpus.empty()) out["gpus"] = constraint.gpus;
  return out;
}

ordered_json adapters_json(const Adapters& adapters) {
  ordered_json out{
      {"r", adapters.rank}, {"lora_alpha", adapters.alpha}, {"target_modules", names_of(adapters.targets)}};
  if (adapters.base != BaseQuantization::kNone) out["base_quantization"] = to_string(adapters.base);
  return out;
}

/// One name stands alone.
ordered_json names_json(const std::vector<std::string_view>& names) {
  return names.size() == 1 ? ordered_json(names.front()) : ordered_json(names);
}

ordered_json packing_json(const Packing& packing) {
  ordered_json out;
  if (packing.mean > 0) out["mean_length"] = packing.mean;
  if (packing.p95 > 0) out["p95_length"] = packing.p95;
  for (const LengthCount& length : packing.lengths) {
    out["lengths"].push_back({{"tokens", length.tokens}, {"sequences", length.sequences}});
  }
  return out;
}

ordered_json module_json(const Module& module) {
  ordered_json out;
  out["name"] = module.name;
  out["kind"] = to_string(module.kind);
  out["blocks"] = module.blocks.count();
  if (module.kind == ModuleKind::kEncoder) {
    out["tokens_in"] = module.tokens_in;
    out["tokens_out"] = module.tokens_out;
    out["patch_parameters"] = module.patch_parameters;
  }
  if (module.connector) out["connector"] = connector_json(*module.connector);
  out["trainable"] = module.trainable;
  if (module.constraint != ModuleConstraint{}) out["constraint"] = constraint_json(module.constraint);
  if (module.adapters.any()) out["lora"] = adapters_json(module.adapters);
  return out;
}

ordered_json edges_json(const ModuleGraph& graph) {
  ordered_json out = ordered_json::array();
  for (const Edge& edge : graph.edges) {
    ordered_json one{{"from", at(graph.modules, edge.from).name}, {"to", at(graph.modules, edge.to).name}};
    if (!edge.from_layers.empty()) one["from_layers"] = edge.from_layers;
    if (!edge.into_layers.empty()) one["into_layers"] = edge.into_layers;
    out.push_back(std::move(one));
  }
  return out;
}

ordered_json items_json(const Items& items) {
  ordered_json out{{"items", items.of}, {"mean", items.mean}};
  if (items.p95 > 0) out["p95"] = items.p95;
  if (items.max > 0) out["max"] = items.max;
  if (items.none > 0) out["none"] = items.none;
  return out;
}

/// Of the encoders that say more than one item a sample; null: none does.
ordered_json data_json(const ModuleGraph& graph) {
  ordered_json out;
  for (const Module& module : graph.modules) {
    if (module.items != Items{}) out[module.name] = items_json(module.items);
  }
  return out;
}

ordered_json architecture_json(const Model& model) {
  ordered_json out;
  out["vocabulary"] = model.vocabulary;
  out["hidden"] = model.hidden;
  out["tied_embeddings"] = model.tied_embeddings;
  out["learned_positions"] = model.learned_positions;
  if (model.embedding_projection > 0) out["embedding_projection"] = model.embedding_projection;
  out["norm"] = norm_name(model.final_norm_bias);
  out["final_norm"] = model.final_norm;
  out["extra_embedding_parameters"] = model.extra_embedding_parameters;
  out["types"] = ordered_json::array();
  for (const BlockType& type : model.types) out["types"].push_back(block_json(type, model.job.sequence_length));
  out["blocks"] = runs_json(model);
  if (model.graph.empty()) return out;
  out["modules"] = ordered_json::array();
  for (const Module& module : model.graph.modules) out["modules"].push_back(module_json(module));
  if (!model.graph.edges.empty()) out["edges"] = edges_json(model.graph);
  return out;
}

ordered_json forbidden_json(const Techniques& allow) {
  ordered_json out = ordered_json::array();
  for (const TechniqueName& name : technique_names()) {
    const bool single = name.flags[1] == nullptr;
    if (single && !(allow.*name.flags[0])) out.push_back(name.name);
  }
  return out;
}

void put_sharding_group(const ShardingGroup& group, ordered_json& out) {
  switch (group.kind) {
    case ShardingGroup::Kind::kAny: return;
    case ShardingGroup::Kind::kAll: out["sharding_group"] = "all"; return;
    case ShardingGroup::Kind::kNode: out["sharding_group"] = "node"; return;
    case ShardingGroup::Kind::kRanks: out["sharding_group"] = group.ranks; return;
  }
}

void put_free_options(const OptionSet& free, ordered_json& out) {
  for (const OptionName& option : option_names()) {
    if (free.has(option.option)) out["execution_options"].push_back(option.name);
  }
}

ordered_json training_json(const Job& job) {
  ordered_json out;
  out["sequence_length"] = job.sequence_length;
  out["global_batch_samples"] = job.global_batch;
  out["precision"] = to_string(job.precision);
  if (job.fp8_recipe != Fp8Recipe::kDelayed) out["fp8_recipe"] = to_string(job.fp8_recipe);
  if (job.narrow_parameters) out["narrow_parameters"] = true;
  if (!job.transpose_cache) out["transpose_cache"] = false;
  if (!job.narrow_inputs) out["narrow_inputs"] = false;
  if (job.narrow_gates) out["narrow_gates"] = true;
  if (job.wide_experts) out["wide_experts"] = true;
  if (job.wide_layers != WideLayers{}) {
    out["wide_layers"] = {{"first", job.wide_layers.first}, {"last", job.wide_layers.last}};
  }
  out["gradient_bytes_per_parameter"] = job.gradient_bytes;
  out["optimizer"] = {{"name", job.optimizer.name},
                      {"state_bytes_per_parameter", job.optimizer.state_bytes_per_parameter}};
  if (job.optimizer.precision_aware) out["optimizer"]["precision_aware"] = true;
  if (job.optimizer.offload_fraction > 0) out["optimizer"]["offload_fraction"] = job.optimizer.offload_fraction;
  out["flash_attention"] = job.flash_attention;
  if (job.attention_kernel != AttentionKernel::kDefault) out["attention_kernel"] = to_string(job.attention_kernel);
  if (job.fused_kernels) out["fused_kernels"] = true;
  if (!job.eager_operators.empty()) out["eager_operators"] = names_json(names_of(job.eager_operators));
  if (job.in_place_loss) out["in_place_loss"] = true;
  if (job.fused_loss != FusedLoss::kNone) out["fused_loss"] = to_string(job.fused_loss);
  if (!job.cuda_graphs.empty()) out["cuda_graphs"] = names_json(names_of(job.cuda_graphs));
  if (job.grouped_gemm) out["grouped_gemm"] = true;
  if (job.expert_dispatch != ExpertDispatch::kAllToAll) out["expert_dispatch"] = to_string(job.expert_dispatch);
  if (job.context_exchange != ContextExchange::kRing) out["context_exchange"] = to_string(job.context_exchange);
  if (job.overlap_experts) out["overlap_expert_communication"] = true;
  if (job.routing_imbalance != Job{}.routing_imbalance) out["routing_imbalance"] = job.routing_imbalance;
  if (job.packing.any()) out["packing"] = packing_json(job.packing);
  if (!job.offload_modules.empty()) out["offload_modules"] = names_of(job.offload_modules);
  if (!job.recompute_modules.empty()) out["recompute_modules"] = names_of(job.recompute_modules);
  out["dropout"] = job.dropout;
  if (job.overlap_gather) out["overlap_parameter_gather"] = true;
  if (job.gradient_bucket > 0) out["gradient_bucket"] = job.gradient_bucket;
  if (!job.free_options.has(ExecutionOption::kTensorOverlap)) out["overlap_tp_communication"] = job.overlap_tp;
  put_free_options(job.free_options, out);
  if (!job.fused_accumulation) out["fused_gradient_accumulation"] = false;
  if (job.blocking_launches) out["blocking_launches"] = true;
  out["loss_normalization"] = job.loss_normalization;
  if (job.microbatch > 0) out["microbatch"] = job.microbatch;
  put_sharding_group(job.sharding_group, out);
  out["forbid"] = forbidden_json(job.allow);
  return out;
}

}  // namespace

ordered_json block_dimensions(const BlockType& block) {
  ordered_json out;
  out["hidden"] = block.hidden;
  put_inner(block, out);
  return out;
}

ordered_json canonical(const Model& model) {
  ordered_json out;
  out["schema"] = "tangram.model/1";
  out["name"] = model.name;
  out["architecture"] = architecture_json(model);
  if (ordered_json data = data_json(model.graph); !data.is_null()) out["data"] = std::move(data);
  out["training"] = training_json(model.job);
  return out;
}

std::string write_model(const Model& model) { return io::write_canonical(canonical(model)); }

}  // namespace tangram::model
