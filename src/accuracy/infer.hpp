// What a publication says in its own words, in ours. Each function states one rule of experiment.hpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/accuracy/experiment.hpp"
#include "tangram/accuracy/measurement.hpp"
#include "tangram/cluster/gpu.hpp"
#include "tangram/model/model.hpp"

namespace tangram::accuracy {

/// Megatron-LM's model in DeepSpeed's engine.
inline constexpr std::string_view kMegatronDeepSpeed = "Megatron-DeepSpeed";

/// "h100_80gb", "V100-16GB-SXM (p3.8xlarge)", "4xGH-96" to the catalogue's type: the published name must have every
/// word of the product and no other memory size; the more words in common the better, and server modules come before
/// cards. nullptr: none.
[[nodiscard]] const cluster::GpuType* find_device(std::string_view published,
                                                  std::span<const cluster::GpuType> devices);

/// GPUs that share the fast fabric: a rack of Grace Blackwell, else the node as printed, else the vendor's.
[[nodiscard]] int gpus_per_node(const GpuGroup& group, const cluster::GpuType& device);

/// All network cards of a node together, one direction.
[[nodiscard]] cluster::Link node_network(const Measurement& measurement, const GpuGroup& group,
                                         const cluster::GpuType& device, int per_node);

/// Between GPUs of a node: its fabric, of as many links as are printed ("NVLink4-way": four of 25 GB/s in one
/// direction, 20 on Pascal), else all; the host bus without one.
[[nodiscard]] cluster::Link node_fabric(const Measurement& measurement, const cluster::GpuType& device);

/// The framework and the source: what names the software that ran.
[[nodiscard]] std::string software_of(const Measurement& measurement);
[[nodiscard]] bool names_megatron_bridge(std::string_view software);
/// Trainers whose whole step XLA compiles.
[[nodiscard]] bool is_compiled(const Measurement& measurement);
/// Trainers made of PyTorch's own parts: its FSDP, its recompute.
[[nodiscard]] bool is_on_pytorch(const Measurement& measurement);
/// NeMo, Megatron-Bridge and DGX Cloud's recipes; not NeMo AutoModel, which is on PyTorch.
[[nodiscard]] bool runs_nvidia_trainer(const Measurement& measurement);

[[nodiscard]] DType find_precision(const Measurement& measurement, const cluster::GpuType& device);
[[nodiscard]] bool uses_fused_attention(const Measurement& measurement, const cluster::GpuType& device,
                                        const model::Model& model);
[[nodiscard]] bool uses_sequence_parallelism(const Measurement& measurement, const cluster::GpuType& device);
[[nodiscard]] model::RecomputeMode find_recompute(const Measurement& measurement);
/// As printed; else that of tp where software is Megatron-LM (arguments.py), 1 elsewhere.
[[nodiscard]] int expert_tensor_parallelism(const Measurement& measurement);
/// As printed; fully sharded without a stage is 3, Megatron-Bridge's is 1.
[[nodiscard]] int zero_stage(const Measurement& measurement);
/// DeepSpeed's ZeRO-3 of 2021.
[[nodiscard]] bool shards_eagerly(const Measurement& measurement, const cluster::GpuType& device);
/// DeepSpeed's bf16 optimizer.
[[nodiscard]] bool keeps_both_gradients(const Measurement& measurement, const model::Job& job);
/// Communicators whose buffers the printed peak of memory holds: none but in the driver's count.
[[nodiscard]] int communicators_counted(const Measurement& measurement, const Experiment& experiment);

/// Gradients beside backward passes, as printed.
[[nodiscard]] bool overlaps_reduction(const Measurement& measurement);

/// Attention kernel, fused kernels and CUDA graphs of the software that ran.
void set_kernels(model::Job& job, const Measurement& measurement, const cluster::GpuType& device);

/// The GPU types with the attention kernels of the time of the software that ran.
[[nodiscard]] std::vector<cluster::GpuType> devices_of_the_time(const Measurement& measurement,
                                                                std::span<const cluster::GpuType> devices);

/// What a configuration says instead.
void set_printed(model::Job& job, const KernelFacts& printed);

/// What the encoder of a measurement is called in its model.
inline constexpr std::string_view kEncoderName = "encoder";

/// The model with its job: sequence, batch, precision, attention. An encoder with degrees of its own has one item,
/// a homogeneous one all items of a sample.
[[nodiscard]] Expected<model::Model> find_model(const Measurement& measurement, const cluster::GpuType& device);

/// As the sequence and the batch are printed.
[[nodiscard]] model::JobOverrides job_of(const Measurement& measurement);

/// The model of that name in configs/models, which has the sizes that are printed beside it; nothing where there is
/// none.
[[nodiscard]] std::optional<Expected<model::Model>> known_model(const Measurement& measurement);

/// Of the dimensions that are printed, and of the language model alone: GPT as GPT-2 has it, or Llama.
[[nodiscard]] Expected<model::Model> described_dense(const Measurement& measurement);

/// The same with experts in place of the feed-forward. All sizes have to be printed, and to make as many parameters as
/// are printed beside them.
[[nodiscard]] Expected<model::Model> described_experts(const Measurement& measurement);

/// A model that was found by its name must have the sizes that are printed beside it.
[[nodiscard]] Expected<void> check_printed_dims(const ModelFacts& facts, const model::Model& model);

/// Hopper, Blackwell, CDNA3 and later: machines of 2023 and after, and software of their time.
[[nodiscard]] bool is_recent(const cluster::GpuType& device);

}  // namespace tangram::accuracy
