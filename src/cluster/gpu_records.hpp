// GPU records as text. Goes in: the "gpus" object of a catalogue file or of cluster.json. Comes out: GPU types; and
// back.
//
//   "gpus": {
//     "A100-80GB-SXM": {
//       "vendor": "nvidia", "architecture": "ampere",
//       "multiprocessors": 108,                     // left out: unknown, products fill the device evenly
//       "memory_gib": 80, "reserved_gib": 5.9,      // reserved: never given to a plan; default 1 + 5 % of the memory
//       "memory_bandwidth_gb_s": 2039,
//       "peak_tflops": { "fp32": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "fp8": 0 },  // dense; left out: 0, none
//       "peer_link": { "bandwidth_gb_s": 300, "latency_us": 0.5, "reach": 2 },  // one direction; left out: none
//                    // "ramp_us", how long it takes for the bytes that bring collectives to half their bandwidth; or 0
//                    // a mesh, no switch: "pair_gb_s", the part of bandwidth_gb_s that leads to one other GPU
//       "pcie": { "bandwidth_gb_s": 32, "latency_us": 5 },                    // one direction
//       "calibration": { "gemm_efficiency": 0.82, "attention_forward": 0.51, "attention_backward": 0.26,
//                        "memory_efficiency": 0.71, "kernel_launch_us": 1, "host_issue_us": 70, "source": "...",
//                        "unvectorized_gvalues_s": 185,                          // left out: not known
//                        "fused_kernels": { "gemm_efficiency": 0.7, "fp8_efficiency": 0.64,
//                                           "memory_efficiency": 0.85 },            // left out: not known
//                        "native_attention": { "forward": 0.722, "backward": 0.627,   // left out: not known
//                                              "forward_extra_keys": 470, "backward_extra_keys": 670,
//                                              "head_dim_multiple": 64,             // left out: heads are not padded
//                                              "forward_extra_head_dim": 56, "backward_extra_head_dim": 44,  // or 0
//                                              "forward_least_head_dim": 128, "backward_least_head_dim": 90,  // or 0
//                                              "widest_value_dim": 128,             // or 0: of all widths
//                                              "early_forward_extra_keys": 1340, "early_backward_extra_keys": 1590,
//                                              "source": "..." } },
//       "price_per_hour_usd": 3.43, "source": "NVIDIA A100 datasheet"
//     },
//     "A100-cut": { "like": "A100-80GB-SXM", "memory_gib": 40 }   // everything else as there
//   }
//
// "name" (default: the key) is what plans call the type. "like" names the catalogue or a record above.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tangram/cluster/gpu.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::cluster {

using GpuTable = std::map<std::string, GpuType, std::less<>>;

/// Adds the records of `reader`'s "gpus" to `table`; a record replaces an earlier one with its key.
void read_gpu_records(io::ObjectReader& reader, GpuTable& table);

/// The type called `key`; nullptr when there is none (reported at `at`, naming similar types) or its own record is
/// already reported.
const GpuType* find_gpu(io::ObjectReader& reader, std::string_view at, const std::string& key, const GpuTable& table);

/// The full record, "like" resolved; "name" is written only where it differs from `key`.
[[nodiscard]] nlohmann::ordered_json gpu_to_json(const GpuType& type, const std::string& key);

}  // namespace tangram::cluster
