// Sequences that samples are packed of (sequence packing): a token attends to those of its own sequence alone. Goes in:
// how long sequences are. Comes out: what attention has to do for a sample, and how that varies between samples.
// Sequences longer than a sample are cut to its length, as packers of fine-tuning data do.
#pragma once

#include <cstdint>
#include <vector>

namespace tangram::model {

struct Model;

/// So many sequences have so many tokens.
struct LengthCount {
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;

  bool operator==(const LengthCount&) const = default;
};

/// Either a mean, with or without a 95th percentile, of lengths that are lognormal then, or the lengths themselves.
struct Packing {
  double mean = 0;                   ///< tokens; 0: not said
  double p95 = 0;                    ///< 0: not said, all sequences have the mean length
  std::vector<LengthCount> lengths;  ///< of the training data

  [[nodiscard]] bool any() const { return mean > 0 || !lengths.empty(); }
  bool operator==(const Packing&) const = default;
};

/// Mean of the `power`-th power of lengths, cut to `longest` tokens. Requires any().
[[nodiscard]] double length_moment(const Packing& packing, int power, double longest);

/// Tokens of the sequence that a token is in, in the mean over the tokens of samples: E[l^2] / E[l] of lengths l. At
/// least 1.
[[nodiscard]] double attended_length(const Packing& packing, std::int64_t sample);

/// Standard deviation over mean of the pairs of tokens that attention works out for a sample: the squares of the
/// lengths of about n = sample / E[l] sequences, whose lengths add up to the sample (Wald's identities for a renewal
/// reward, Feller, An Introduction to Probability Theory, volume 2, XI): variance n E[(l^2 - c l)^2], mean n c E[l],
/// c = E[l^2] / E[l].
[[nodiscard]] double packing_variation(const Packing& packing, std::int64_t sample);

/// Gives attention of the language model the length that the job's packing makes of its samples; types are split for
/// it.
void set_packing(Model& model);

}  // namespace tangram::model
