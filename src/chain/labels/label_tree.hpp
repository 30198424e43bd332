// How labels came to be, and the complete ones. A node knows the label behind its own and the stage in front of that.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "label.hpp"
#include "label_query.hpp"
#include "tangram/base/at.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

struct LabelNode {
  Label label;
  int parent = -1;
  int option = -1;
  int blocks = 0;  ///< of the stage that `option` runs
  const Candidate* candidate = nullptr;
};

/// With a root, which stands for no stage at all.
class LabelTree {
 public:
  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()); }
  /// The root is there from the start.
  [[nodiscard]] std::int64_t created() const { return static_cast<std::int64_t>(nodes_.size()) - 1; }
  [[nodiscard]] const Label& label(std::int32_t node) const { return at(nodes_, node).label; }
  void add(const LabelNode& node) { nodes_.push_back(node); }
  /// The stages from `last` back to the root.
  [[nodiscard]] Chain chain_of(const LabelNode& last) const;

 private:
  std::vector<LabelNode> nodes_{LabelNode{}};
};

/// Labels that hold all blocks: the best of them, which lowers the cutoff, or all.
class CompleteLabels {
 public:
  explicit CompleteLabels(const LabelQuery& query) : query_(query), cutoff_(query.cutoff) {}

  void add(const LabelNode& node);
  [[nodiscard]] bool has_best() const { return best_.has_value(); }
  [[nodiscard]] std::int64_t cutoff() const { return cutoff_; }
  /// Bounds are compared with the cutoff in doubles; one nanosecond of slack absorbs their rounding.
  [[nodiscard]] double limit() const { return static_cast<double>(cutoff_) + 1.0; }
  void report(const LabelTree& tree, LabelAnswer& answer) const;

 private:
  const LabelQuery& query_;
  std::int64_t cutoff_;
  std::optional<LabelNode> best_;
  std::int64_t best_value_ = 0;
  std::vector<LabelNode> all_;
};

}  // namespace tangram::chain
