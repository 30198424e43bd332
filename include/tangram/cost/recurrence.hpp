// Time and bytes of a recurrence (model/recurrence.hpp) on one GPU. Goes in: its local sizes. Comes out: seconds of the
// kernels between its two projections, and what they keep.
//
// Training computes it by chunks of c tokens: inside a chunk tokens meet as in attention, between chunks only states
// travel. T tokens, H heads of width P in G groups, keys of width N; products are of each of the T/c chunks, bytes of
// all: K = e T G N of keys, V = e T H P of values, L = e T H N of a key for each head, A = T c G and B = T c H scores,
// S = T/c H N P values of states; states and scores of Mamba-2 and recalls of the delta rule are fp32.
//
//   Mamba-2 (arXiv 2405.21060, section 6 and listing 1)
//     scores of a group     C B^T                     G (c x c x N)                                2 K + 4 A
//     states of chunks      B^T X                     H (N x P x c)                                K + V + 4 S
//     states in front       each from the one before                                               8 S
//     outputs               (L o scores) X + C S      H (c x P x c), H (c x P x N)                 K + 2 V + 4 A + 4 S
//
//   gated delta rule (arXiv 2412.06464, section 3.3; the form of Yang et al., arXiv 2406.06484)
//     recalls               K K^T, decayed            H (c x c x N)                                K + 4 B
//     their inverse         of a unit triangle        H (c x c x c)                                (4 + e) B
//     corrected keys, values  inverse times K, V      H (c x N x c), H (c x P x c)                 K + L + 2 V + e B
//     states                V - W S, K^T of it        H (c x P x N), H (N x P x c)                 K + L + 2 V + e S
//     outputs               Q K^T V + Q S             H (c x c x N), H (c x P x c), H (c x P x N)  2 K + 2 V + e S
//
// A kernel takes the longer of its products, in 16 bits with tiles and waves as compute.hpp has them, and its bytes, at
// the shares of the rates of large products and copies that Triton's kernels reach; that states of the delta rule come
// one after the other is not charged. Backward works states out again and has two products for each of forward, with
// twice the bytes. Around them stream the convolution (with Mamba-2 it runs again in backward), the scalars of a head,
// the norms of keys and queries of the delta rule, and the gated norm. The FLOPs that MFU counts do not depend on
// chunks: model/recurrence.hpp has them.
//
// tp shards heads and groups (2405.21060, section 8.1); cp exchanges tokens for heads in front of the convolution and
// back in front of the projection back (an all-to-all each, as DeepSpeed-Ulysses has for attention, arXiv 2309.14509),
// so that a GPU sees all tokens of H / (tp cp) heads. Neither exchange hides under compute, as each is waited for at
// once.
//
// Kept for backward, u tokens of the GPU, columns on a tp rank: Mamba-2 what the input's projection gives, the outputs
// of the heads, and these normalised, e u (projected + 2 inner): the rest is worked out again (state-spaces/mamba,
// ssd_combined.py). The delta rule also what the convolution gives and the inverses, e u (convolved + H c)
// (fla-org/flash-linear-attention, gated_delta_rule/chunk.py).
#pragma once

#include "tangram/cost/compute.hpp"
#include "tangram/cost/strategy.hpp"

namespace tangram::cost {

struct LocalRecurrence {
  model::RecurrenceKind kind = model::RecurrenceKind::kMamba2;
  double tokens = 0;  ///< that the projections see: samples * s / cp
  // Columns of the projections on a tp rank.
  double projected = 0;
  double convolved = 0;
  double inner = 0;
  // Between the exchanges of cp.
  double scanned = 0;  ///< tokens of all samples, whole: samples * s
  double heads = 0;
  double groups = 0;
  double head_dim = 0;
  double key_dim = 0;
  double chunk = 0;  ///< no more than a sample
};

/// Of a block that has one.
[[nodiscard]] LocalRecurrence local_recurrence(const model::BlockType& block, const Degrees& degrees,
                                               double samples_per_replica);

/// The kernels of the chunks alone: neither the convolution and norms in front of them nor the norm behind.
[[nodiscard]] Passes scan_seconds(const LocalRecurrence& local, double element, const DeviceRates& device);

/// Everything between the two projections, exchanges aside. `element`: bytes of an activation.
[[nodiscard]] Passes recurrence_seconds(const LocalRecurrence& local, double element, const DeviceRates& device);

struct RecurrenceBytes {
  double kept = 0;     ///< beside the input of the block's first linear layer
  double working = 0;  ///< of backward: gradients of the projections' columns, what is worked out again, fp32 states
};
[[nodiscard]] RecurrenceBytes recurrence_bytes(const LocalRecurrence& local, double element);

/// What a rank hands to the others of its cp group in one direction, and gets: bytes.
[[nodiscard]] double recurrence_exchange(const LocalRecurrence& local, double element);

}  // namespace tangram::cost
