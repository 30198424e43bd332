// Which slices of which weights a rank holds. Goes in: its place and the small model. Comes out: blocks and ends with
// pointers into the rank's list of parameters. Slices come from the coordinates that the plan wrote.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "block.hpp"
#include "job.hpp"

namespace tangram::execute {

struct WeightLayout {
  const Place& place;
  const SmallModel& model;
  Copies copies;                      ///< of dense weights
  Copies expert_copies;               ///< of experts
  std::deque<Parameter>& parameters;  ///< where all of them live
  bool puts_off = false;              ///< weight gradients of blocks
  int encoder = -1;                   ///< of the job, whose weights these are; -1: the language model's

  // Of what is made next.
  std::vector<Parameter*>* list = nullptr;  ///< of the block or the end
  int order = 0;                            ///< Parameter::order
  int zero = 0;
  bool trained = true;

  [[nodiscard]] Block block(const std::string& name, const SmallBlock& shape, const cost::BlockPolicy& policy);
  /// Rows are split over tp.
  Parameter* table(const std::string& name);
  Parameter* norm(const std::string& name);
  /// A row a position, the same on every tp rank.
  Parameter* positions(const std::string& name);
  /// As wide as the model on both sides, split over tp inside.
  FeedForwardWeights wide_feed_forward(const std::string& name, int hidden, bool gated);

 private:
  Parameter* add(const std::string& name, const Slice& slice, Copies group);
  Parameter* make(const std::string& name, int rows, int columns, Range row_range, Range column_range);
  Parameter* replicated(const std::string& name, int rows, int columns, bool partial);
  FeedForwardWeights feed_forward(const std::string& name, int width, int hidden, bool gated, Range own,
                                  const Copies& group);
  AttentionWeights attention(const std::string& name, const SmallBlock& shape);
  void share_key_values(const AttentionWeights& weights, int ranks);
  /// A low-rank adapter beside a matrix that tp splits at its output, or at its input; it is trained.
  void add_adapter(Parameter* beside, bool splits_input);
  void add_adapters(const AttentionWeights& weights, const model::AdapterTargets& adapted);
  void add_adapters(const FeedForwardWeights& weights, const model::AdapterTargets& adapted);
  RecurrenceWeights recurrence(const std::string& name, const SmallRecurrence& shape);
  ExpertsWeights experts(const std::string& name, const SmallBlock& shape);
  static void put_products_off(const Block& block);
};

}  // namespace tangram::execute
