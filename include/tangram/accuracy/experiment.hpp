// The plan that a measurement ran. Goes in: a measurement. Comes out: model, stages, degrees, shapes and links, ready
// for the cost model; or why the program cannot express it.
//
// What a publication leaves out is inferred by rules that hold for all of them (infer.hpp, cut.hpp and placement.hpp in
// src/accuracy, a function each), never by a row's or a paper's name:
//   model       the printed dimensions, with ffn 4 h (gated: 8/3 h) and heads of 64 or 128; gated or not by what the
//               name says, else by which comes nearer the printed parameter count; where hidden size or layers are not
//               printed, the model of that name in configs/models; else one of experts that its printed sizes describe
//               in full and whose parameters they make (`dims`). Layers for multi-token prediction are left out of
//               models of a known name
//   precision   as printed; else bf16 where the GPU's matrix units have it, fp16 elsewhere
//   attention   fused as printed; else on Hopper and later, and under FSDP (ZeRO-3) and ZeRO-2, which are younger;
//               never with 4-byte activations, which fused kernels do not take, nor under eager ZeRO-3
//   kernels     of fused attention as printed; else made for the GPU's generation, and others fused, on Hopper and
//               later under NVIDIA's and AMD's trainers (NeMo, Megatron, MaxText, Primus, submissions to MLPerf), whose
//               blocks are Transformer Engine's or a compiler's, and whose loss works in place; before Hopper
//               FlashAttention-2 under trainers that are younger than it; the first of the generation in NVIDIA's
//               containers of 2025. Exchanges of tp run beside products as printed (tp_comm), and under NeMo and
//               Megatron-Bridge, whose recipes say so. Dropout, fused kernels and loss, and how gradients are added up:
//               first of all as printed
//   graphs      as printed: those of Transformer Engine that hold attention capture blocks, and those of layers do,
//               others the step; submissions to MLPerf on NVIDIA's GPUs capture the step
//   experts     dispatcher and overlap as printed; forced balance and dropped tokens: no rank has more than others; the
//               busiest rank of natural routing has 1.4 times the mean (Qwen3-30B-A3B on 16 H100 takes 1.5 times as
//               long as with forced balance). Each is divided as printed (etp), else over tp in what is made of
//               Megatron-LM (initialize_model_parallel in megatron/core/parallel_state.py), but not under
//               Megatron-Bridge, whose recipes keep experts whole
//   adapters    LoRA: beside matrices of the language model as printed, else of rank 16 beside all that can have them;
//               all other weights are frozen, and under QLoRA held in 4 bits with scales in 8. They compute in the
//               precision of the run
//   packing     samples are packed as printed (packing), and of SQuAD in NVIDIA's recipes for fine-tuning
//   eager       ZeRO-3 in fp16 on a GPU before Hopper whose matrix units take bf16 is DeepSpeed's of 2021, which was
//               without it (github.com/deepspeedai/DeepSpeed/pull/1453): it waits for the device before each gather, so
//               that nothing runs beside, and lets parameters go after each pass, a recomputed one included
//               (deepspeed/runtime/zero/partition_parameters.py and stage3.py of its time)
//   operators   where a trainer is made of PyTorch's own parts (FSDP, torchtitan, AutoModel) or the model is Hugging
//               Face's: RMSNorm, rotary positions and gates a kernel each, unless compiled (variant) or said to be
//               fused; copies around exchanges of sequence parallelism; and exchanges of tp that hide, where they
//               do, beside forward passes alone
//   gathers     of ZeRO-1 come twice where experts are parallel, unless beside the next pass: each of Megatron-Core's
//               two optimizers gathers all (distrib_optimizer.py)
//   sync        reduced beside backward on Hopper and later, under FSDP and where that is printed; after it in the
//               software of earlier machines; by FSDP with the last microbatch alone as printed (no_sync)
//   gradients   of microbatches are added up by the weight-gradient products on Hopper and later, under FSDP and with
//               sequence parallelism (Megatron-LM got both in 2022), by kernels of their own in the software of earlier
//               machines; DeepSpeed's bf16 optimizer (runtime/bf16_optimizer.py), which adds up in fp32, keeps the
//               16-bit gradients as well. Main gradients are of the type that is printed, and of 16 bits in NeMo's
//               and Megatron-Bridge's recipes for performance and in MLPerf
//   optimizer   Adam, with moments as printed (optimizer_moments), in bf16 in Megatron-Bridge's recipes of DeepSeek-V3
//               and Moonlight, else in fp32
//   groups      of microbatches that pass a virtual stage in a row as printed, else as many as stages
//   transfers   between stages block both on machines before Hopper, unless virtual stages are interleaved
//   mixed       replicas of a stage on several GPU types, equal in tp and cp, reduce their gradients in one group
//   network     of the cloud instance that the GPU group names; else as printed, as "8x200 Gb/s", "100 Gb/s per node",
//               "400 Gb/s RDMA per GPU", "measured ... GB/s inter-node"; else of the vendor's reference system of the
//               GPU
//   dropout     not on Hopper and later: large models train without by then
//   recompute   as printed: "selective-op", which keeps every second product, is half of the blocks in full and the
//               others' norms; "full 24/52 layers" that part of the blocks; modules as Megatron-Core calls them, with
//               no names the core of attention; "out_proj", which only a compiler's policies recompute, attention's
//               output projection; of operators the four of the attention core first, then whole blocks.
//               Under XLA and PyTorch's FSDP what backward does not read is left out (torch.utils.checkpoint without
//               re-entrance stops early)
//   prefetch    ZeRO-3 gathers beside compute, but in MosaicML's trainer, which asks for BACKWARD_POST: between passes
//   offload     inputs of modules as printed (Megatron-Core's offload_modules), or activations of so many layers, of
//               one stage (its cpu_offloading_num_layers has no pipelines): they travel beside passes, and those of one
//               layer are on their way
//   sharding    as printed (a group of one says that all of dp shards), else ZeRO-1 under Megatron-Bridge, as in all
//               of its recipes. FSDP (ZeRO-3) inside a pipeline keeps parameters gathered and gradients whole until
//               the last microbatch (torchtitan's default), as ZeRO-1 does; over as many data-parallel ranks as
//               printed, neighbours, and the shards of gradients are all-reduced among such groups. Parameters of
//               ZeRO-1 and 2 are gathered beside the next forward pass as printed (param_gather), and under NeMo and
//               Megatron-Bridge, whose recipes say so, but not with MXFP8 in those of 2025
//   precision   the first that is printed. How values fit 8 bits as printed (delayed, current or tensorwise, block,
//               rowwise, MX), tensorwise where Megatron-Bridge says fp8 alone, else delayed, Megatron-Core's default.
//               Parameters are kept and gathered narrow in NeMo's and Megatron-Bridge's recipes and in MLPerf, but
//               for scales of blocks; inputs of linear layers where Transformer Engine or NVFP4 is; "bf16 experts" and
//               layers in 16 bits (wide_layers) as printed
//   ranks       numbered tp, cp, dp, pp from the inside out, nodes in the order of the GPU groups
//   memory      with the buffers of collectives where the driver's count is printed (nvidia-smi): of a communicator for
//               all ranks, of one for each kind of group (tp, cp, dp, ep, pp), which Megatron-LM's code
//               (mpu/initialize.py) and DeepSpeed's (runtime/pipe/topology.py) both make where they run together, and
//               of one for each neighbour in the pipeline (PyTorch makes it for each pair that sends). What a sharded
//               optimizer converts while it steps stays with the allocator, in large blocks apart, and counts there
//   layers      equal numbers; where they do not divide, embedding and head count as one layer each
//   encoders    layers as GPT-2's, every item by itself, a connector of two products; homogeneous ones are in the first
//               stage, whose other layers are as if they were not there; colocated ones exchange gradients and share
//               optimizer state over all of their lanes. Without pipelines and with the language model's degrees
//               colocated is homogeneous. Weights on the host travel there and back once an iteration, beside nothing.
//               Working buffers of the encoder and the language model are not there at the same time
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tangram/accuracy/measurement.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/cost/colocated.hpp"
#include "tangram/cost/strategy.hpp"
#include "tangram/model/model.hpp"

namespace tangram::accuracy {

/// Replicas of one stage on GPUs of one type.
struct Part {
  cluster::DeviceShape shape;
  cost::Degrees degrees;
  int samples = 1;  ///< of a microbatch, all replicas of the part
};

/// Blocks [first, last) that one rank runs one after the other. A cut inside a block is a fraction.
struct Chunk {
  double first = 0;
  double last = 0;
  bool embedding = false;
  bool head = false;
  double recomputed = 0;  ///< blocks recomputed in full
  double selective = 0;   ///< other blocks of which the job's modules alone are recomputed
};

struct Stage {
  std::vector<Part> parts;
  std::vector<Chunk> chunks;  ///< one, or one for each virtual stage
  cluster::Link to_next;      ///< to the next stage, per member; from the last stage: to the first
  bool next_inside = false;   ///< the next stage is in the same node
};

/// An encoder on all GPUs of the language model, in turn with it.
struct SharedEncoder {
  model::Model model;  ///< a sample of it is one item
  cost::EncoderLayout layout;
  cost::EncoderTurns turns = cost::EncoderTurns::kThreePhases;
  std::int64_t lanes = 1;
  std::int64_t items = 1;         ///< of a lane in one round
  std::int64_t output_bytes = 0;  ///< of an item
  int kept_every = 1;             ///< layers from one kept input to the next, under full recompute
  Bytes embeddings;               ///< that each GPU of the first stage holds of its output, with gradients
  cluster::Link sync_link;        ///< between its lanes, of a whole node
  cost::EncoderHandover handover;
  bool offloaded = false;  ///< weights and gradients are on the host while the language model runs
};

struct Experiment {
  model::Model model;  ///< of the language model alone where there is a shared encoder
  std::vector<Stage> stages;
  int zero = 0;
  cost::RecomputeMode recompute = cost::RecomputeMode::kNone;
  bool overlaps_sync = true;          ///< gradients are reduced while backward runs
  bool blocking_transfers = false;    ///< stages wait for what they send to each other
  bool keeps_both_gradients = false;  ///< 16-bit ones beside main ones of fp32
  double kept_on_gpu = 1;             ///< share of the activations; the others wait on the host
  int communicators = 0;              ///< whose buffers the published peak of memory holds
  std::int64_t microbatch = 1;        ///< samples of a stage
  std::int64_t items = 1;             ///< of a sample, of which each is one for an encoder's own stage
  std::int64_t microbatches = 1;
  int microbatch_group = 0;  ///< microbatches that pass a chunk in a row; 0: as many as stages
  int gpus = 0;
  std::optional<SharedEncoder> encoder;
};

/// The same run by software without some of its ways to make exchanges short.
void restrict_methods(Experiment& experiment, const cluster::ExecutionMethods& methods);

/// Expected errors carry the reason in `message`. `devices`: GPU types by catalogue name.
[[nodiscard]] Expected<Experiment> express(const Measurement& measurement, std::span<const cluster::GpuType> devices);

}  // namespace tangram::accuracy
