// Values that the configuration classes of huggingface/transformers have where a file is silent
// (src/transformers/models/<type>/configuration_<type>.py). Sections of multimodal models leave out many of them. Those
// of InternViT and MoonViT are in the files beside the weights (configuration_intern_vit.py, configuration_kimi_vl.py).
#include <algorithm>
#include <array>

#include "hf_config.hpp"

namespace tangram::model {

namespace {

constexpr HfDefault kLlama[] = {
    {"vocab_size", 32000},     {"hidden_size", 4096},       {"intermediate_size", 11008},
    {"num_hidden_layers", 32}, {"num_attention_heads", 32}, {"max_position_embeddings", 2048},
};
constexpr HfDefault kMistral[] = {
    {"vocab_size", 32000},
    {"hidden_size", 4096},
    {"intermediate_size", 14336},
    {"num_hidden_layers", 32},
    {"num_attention_heads", 32},
    {"num_key_value_heads", 8},
    {"max_position_embeddings", 131072},
};
constexpr HfDefault kQwen2[] = {
    {"vocab_size", 151936},
    {"hidden_size", 4096},
    {"intermediate_size", 22016},
    {"num_hidden_layers", 32},
    {"num_attention_heads", 32},
    {"num_key_value_heads", 32},
    {"max_position_embeddings", 32768},
};
constexpr HfDefault kQwen25VlText[] = {
    {"vocab_size", 152064},
    {"hidden_size", 8192},
    {"intermediate_size", 29568},
    {"num_hidden_layers", 80},
    {"num_attention_heads", 64},
    {"num_key_value_heads", 8},
    {"max_position_embeddings", 32768},
};
constexpr HfDefault kQwen25OmniText[] = {
    {"vocab_size", 152064},
    {"hidden_size", 3584},
    {"intermediate_size", 18944},
    {"num_hidden_layers", 28},
    {"num_attention_heads", 28},
    {"num_key_value_heads", 4},
    {"max_position_embeddings", 32768},
};
constexpr HfDefault kQwen3VlText[] = {
    {"vocab_size", 151936},
    {"hidden_size", 4096},
    {"intermediate_size", 22016},
    {"num_hidden_layers", 32},
    {"num_attention_heads", 32},
    {"num_key_value_heads", 32},
    {"head_dim", 128},
    {"max_position_embeddings", 128000},
};
constexpr HfDefault kGemma3Text[] = {
    {"vocab_size", 262208},    {"hidden_size", 2304},      {"intermediate_size", 9216},
    {"num_hidden_layers", 26}, {"num_attention_heads", 8}, {"num_key_value_heads", 4},
    {"head_dim", 256},         {"sliding_window", 4096},   {"max_position_embeddings", 131072},
};
constexpr HfDefault kLlama4Text[] = {
    {"vocab_size", 202048},         {"hidden_size", 5120},
    {"intermediate_size", 8192},    {"intermediate_size_mlp", 16384},
    {"num_hidden_layers", 48},      {"num_attention_heads", 40},
    {"num_key_value_heads", 8},     {"head_dim", 128},
    {"num_local_experts", 16},      {"num_experts_per_tok", 1},
    {"attention_chunk_size", 8192}, {"max_position_embeddings", 131072},
};
constexpr HfDefault kClipVision[] = {
    {"hidden_size", 768},        {"intermediate_size", 3072}, {"num_hidden_layers", 12},
    {"num_attention_heads", 12}, {"image_size", 224},         {"patch_size", 32},
};
constexpr HfDefault kSiglipVision[] = {
    {"hidden_size", 768},        {"intermediate_size", 3072}, {"num_hidden_layers", 12},
    {"num_attention_heads", 12}, {"image_size", 224},         {"patch_size", 16},
};
constexpr HfDefault kQwen25Vision[] = {
    {"depth", 32},
    {"hidden_size", 3584},
    {"intermediate_size", 3420},
    {"num_heads", 16},
    {"patch_size", 14},
    {"spatial_merge_size", 2},
    {"temporal_patch_size", 2},
    {"window_size", 112},
    {"out_hidden_size", 3584},
};
constexpr HfDefault kQwen3Vision[] = {
    {"depth", 27},
    {"hidden_size", 1152},
    {"intermediate_size", 4304},
    {"num_heads", 16},
    {"patch_size", 16},
    {"spatial_merge_size", 2},
    {"temporal_patch_size", 2},
    {"num_position_embeddings", 2304},
    {"out_hidden_size", 3584},
};
constexpr HfDefault kInternVit[] = {
    {"hidden_size", 3200},       {"intermediate_size", 12800}, {"num_hidden_layers", 48},
    {"num_attention_heads", 25}, {"image_size", 224},          {"patch_size", 14},
};
constexpr HfDefault kInternVlVision[] = {
    {"hidden_size", 1024},       {"intermediate_size", 4096}, {"num_hidden_layers", 24},
    {"num_attention_heads", 16}, {"image_size", 448},         {"patch_size", 14},
};
constexpr HfDefault kLlama4Vision[] = {
    {"hidden_size", 768}, {"intermediate_size", 5632}, {"num_hidden_layers", 34},     {"num_attention_heads", 16},
    {"image_size", 448},  {"patch_size", 14},          {"projector_input_dim", 4096}, {"projector_output_dim", 4096},
};
constexpr HfDefault kMoonVit[] = {
    {"hidden_size", 1152},       {"intermediate_size", 4304}, {"num_hidden_layers", 27}, {"num_attention_heads", 16},
    {"init_pos_emb_height", 64}, {"init_pos_emb_width", 64},  {"patch_size", 14},
};
constexpr HfDefault kQwen25Audio[] = {
    {"d_model", 1280},     {"encoder_ffn_dim", 5120},      {"encoder_layers", 32}, {"encoder_attention_heads", 20},
    {"num_mel_bins", 128}, {"max_source_positions", 1500}, {"n_window", 100},      {"output_dim", 3584},
};
constexpr HfDefault kGemma3[] = {{"mm_tokens_per_image", 256}};

struct ClassDefaults {
  std::string_view model_type;
  std::span<const HfDefault> values;
};

constexpr std::array kClasses{
    ClassDefaults{"llama", kLlama},
    ClassDefaults{"mistral", kMistral},
    ClassDefaults{"qwen2", kQwen2},
    ClassDefaults{"qwen2_5_vl_text", kQwen25VlText},
    ClassDefaults{"qwen2_5_omni_text", kQwen25OmniText},
    ClassDefaults{"qwen3_vl_text", kQwen3VlText},
    ClassDefaults{"gemma3_text", kGemma3Text},
    ClassDefaults{"llama4_text", kLlama4Text},
    ClassDefaults{"clip_vision_model", kClipVision},
    ClassDefaults{"siglip_vision_model", kSiglipVision},
    ClassDefaults{"qwen2_5_vl", kQwen25Vision},
    ClassDefaults{"qwen2_5_omni_vision_encoder", kQwen25Vision},
    ClassDefaults{"qwen3_vl", kQwen3Vision},
    ClassDefaults{"qwen3_vl_moe", kQwen3Vision},
    ClassDefaults{"intern_vit_6b", kInternVit},
    ClassDefaults{"internvl_vision", kInternVlVision},
    ClassDefaults{"llama4_vision_model", kLlama4Vision},
    ClassDefaults{"moonvit", kMoonVit},
    ClassDefaults{"qwen2_5_omni_audio_encoder", kQwen25Audio},
    ClassDefaults{"gemma3", kGemma3},
};

}  // namespace

std::span<const HfDefault> hf_class_defaults(std::string_view model_type) {
  const auto found = std::ranges::find(kClasses, model_type, &ClassDefaults::model_type);
  return found == kClasses.end() ? std::span<const HfDefault>{} : found->values;
}

}  // namespace tangram::model
