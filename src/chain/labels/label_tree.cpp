#include "label_tree.hpp"

#include "tangram/base/at.hpp"

namespace tangram::chain {

Chain LabelTree::chain_of(const LabelNode& last) const {
  Chain chain;
  int first = 0;
  for (const LabelNode* node = &last; node->parent >= 0; node = &at(nodes_, node->parent)) {
    chain.stages.push_back({node->option, first, first + node->blocks, *node->candidate});
    first += node->blocks;
  }
  return chain;
}

void CompleteLabels::add(const LabelNode& node) {
  if (node.label.a + node.label.o > cutoff_) return;
  if (query_.all) return all_.push_back(node);
  best_ = node;
  best_value_ = node.label.a + node.label.o;
  cutoff_ = best_value_ - 1;
}

void CompleteLabels::report(const LabelTree& tree, LabelAnswer& answer) const {
  answer.found = best_.has_value();
  if (best_ && !query_.relaxed) answer.chain = tree.chain_of(*best_);
  for (const LabelNode& node : all_) answer.chains.push_back(tree.chain_of(node));
  answer.value = best_value_;
}

}  // namespace tangram::chain
