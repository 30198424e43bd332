// Where a search may cut a model. Goes in: a model. Comes out: cuts, ascending, both ends of the model among them. What
// lies between two of them in a row is a segment: the chain program counts in segments, all others count in blocks.
//
// Labels and questions grow with the number of segments, tables of bounds with its square. A model that is too deep to
// be cut between any two blocks is cut at every k-th one. Where blocks repeat, k is a multiple of the period, so that
// segments are alike; where what repeats ends, and at the ends of modules, there is a cut.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/compose/search_options.hpp"
#include "tangram/model/model.hpp"

namespace tangram::compose {

class CutPoints {
 public:
  /// Between any two blocks.
  explicit CutPoints(const model::Model& model) : CutPoints(model, 1) {}
  /// At every `spacing`-th block or, where blocks repeat after p, the next multiple of p.
  CutPoints(const model::Model& model, int spacing);
  /// The ends of the model, and every cut that is no further than `reach` blocks from one of these.
  [[nodiscard]] static CutPoints near(const model::Model& model, std::span<const int> cuts, int reach);

  [[nodiscard]] int segments() const { return static_cast<int>(blocks_.size()) - 1; }
  /// Blocks in front of a cut, 0 .. segments().
  [[nodiscard]] int block(int cut) const { return at(blocks_, cut); }
  /// The first cut with so many blocks in front of it, or more.
  [[nodiscard]] int cut_at(int block) const;
  [[nodiscard]] int longest_segment() const;  ///< in blocks
  /// Whether there is one between any two blocks.
  [[nodiscard]] bool are_everywhere() const { return segments() == blocks_.back(); }

  bool operator==(const CutPoints&) const = default;

 private:
  explicit CutPoints(std::vector<int> blocks) : blocks_(std::move(blocks)) {}

  std::vector<int> blocks_;  // [cut]
};

/// 1: between any two blocks. Else the least spacing with no more segments than wanted, or with one for each module
/// where these are more.
[[nodiscard]] int cut_spacing(const model::Model& model, const CutLimits& limits);

/// As a space of these cuts names it.
[[nodiscard]] std::string cut_rule(const CutPoints& cuts);

}  // namespace tangram::compose
