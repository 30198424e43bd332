// Which degrees layers can run at: the one place that says what divides what. Goes in: a model, of it a slice, degrees,
// samples. Comes out: nothing, or the reason why not. The search, the checker and the targets ask why_unsupported, in
// the terms of Megatron-LM's own argument checks (megatron/training/arguments.py), which every target inherits;
// `verify`, which runs more than any runtime takes, asks why_indivisible, so that it refuses nothing that the others
// let pass. A stage is asked for the layers that it holds: an encoder of 25 heads leaves the language model behind it
// its tp 8.
//
// Indivisible by any runtime:
//   tp   divides the heads; kv heads divide by tp, or tp by kv heads (then they are replicated)
//        tp x cp divides the heads and the groups of a recurrence, which cp shards like tp between two exchanges, and
//        in the place of tp the heads of attention that exchanges positions for heads (ContextExchange::kAllToAll)
//   s    has a position for each of tp x cp ranks, which hand a sample over in as many pieces; that of every layer of
//        the model, as a stage takes in what the layer before it handed over
//   ep   divides the experts; ep * expert-tp divides the GPUs
//   dp   no more than the samples of a microbatch, of which replicas get equally many or one more than others
// Beside that:
//   tp   divides the feed-forward widths, expert-tp the width of an expert; the vocabulary is padded, so it never
//        stands in the way
//   sp   needs tp > 1 and tp | s / cp (Megatron-LM pads nothing); experts with tp > 1 need it
//   cp   2 cp | s (each rank takes an early and a late chunk, which balances the causal mask); needs fused attention
// Embedding and head have the tokens of the job.
// And what a job fixes of a module: degrees and GPU types of its blocks (model::ModuleConstraint).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/cost/strategy.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::cost {

/// What degrees cannot run of a model, with reasons; empty strings: they can.
struct Unsupported {
  std::string any;                 ///< no slice at all
  std::vector<std::string> types;  ///< by block type; empty: all of them can be run
  std::string ends;                ///< embedding and head

  [[nodiscard]] const std::string& of_type(std::size_t type) const;
  /// The first reason that concerns the slice, or one of a stage's chunks.
  [[nodiscard]] const std::string& of(const model::SliceSignature& slice) const;
  [[nodiscard]] const std::string& of(std::span<const model::SliceSignature> chunks) const;
  /// The first reason that concerns any part of the model.
  [[nodiscard]] const std::string& of_model() const;
  /// The first reason for a type, where there is one for each of them.
  [[nodiscard]] std::string of_all_types() const;
};

/// O(block types); allocates reasons only when there is something to say.
[[nodiscard]] Unsupported unsupported(const model::Model& model, const Degrees& degrees, int samples);
/// The same on GPUs of a type, which a module may not be for.
[[nodiscard]] Unsupported unsupported(const model::Model& model, const Degrees& degrees, int samples,
                                      std::string_view gpu_type);

/// Whether an all-to-all of context parallelism has to repeat key-value heads, of which there are fewer than ranks.
[[nodiscard]] bool repeats_heads(const model::Model& model, const Degrees& degrees);

/// Empty: ranks can share the work of the slice, whatever a runtime asks beside.
[[nodiscard]] std::string why_indivisible(const model::Model& model, const model::SliceSignature& slice,
                                          const Degrees& degrees, int samples);

/// Empty: supported, and then not indivisible either.
[[nodiscard]] std::string why_unsupported(const model::Model& model, const model::SliceSignature& slice,
                                          const Degrees& degrees, int samples);

/// Of the whole model: every layer at these degrees.
[[nodiscard]] std::string why_unsupported(const model::Model& model, const Degrees& degrees, int samples);

}  // namespace tangram::cost
