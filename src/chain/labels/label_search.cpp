#include "label_search.hpp"

#include <algorithm>
#include <utility>

#include "beam.hpp"
#include "label.hpp"
#include "label_bounds.hpp"
#include "label_store.hpp"
#include "label_tree.hpp"
#include "open_groups.hpp"
#include "state_keys.hpp"
#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

class LabelSearch {
 public:
  LabelSearch(const LabelGround& ground, const CompletionBound& bound, const LabelQuery& query)
      : program_(ground.program),
        deadline_(ground.deadline),
        query_(query),
        hops_(ground.program, query.period,
              query.beam > 0 ? BoundaryPrices::Fronts::kAny : BoundaryPrices::Fronts::kAllowed),
        algebra_(ground.program, hops_, query.period, query.feasibility_only),
        bounds_(ground, bound, query),
        keys_(ground.program),
        groups_(ground, bound, query, keys_, bounds_),
        store_(ground.program, hops_, algebra_, bound.tuning().cuts.dominance),
        complete_(query) {}

  LabelAnswer run() {
    store_.position(program_.blocks).states.push_back({StateKey{}, {HeldLabel{}}, 0});
    for (int left = program_.blocks; left > 0 && answer_.finished && !is_answered(); --left) expand_position(left);
    answer_.labels = tree_.created();
    groups_.report(answer_.cuts);
    bounds_.report(answer_.cuts);
    answer_.cuts.labels_by_dominance = store_.dominated();
    complete_.report(tree_, answer_);
    return std::move(answer_);
  }

 private:
  // Any chain answers a search that knows no time.
  [[nodiscard]] bool is_answered() const { return query_.feasibility_only && complete_.has_best(); }

  void expand_position(int left) {
    LabelPosition& position = store_.position(left);
    answer_.states += static_cast<std::int64_t>(position.states.size());
    position.index.clear();
    if (query_.beam > 0) keep_beam(position, left);
    Budget budget;
    for (const LabelState& state : position.states) {
      if (!answer_.finished) break;
      keys_.find_left(state.key, budget.left);
      bounds_.assess(budget);
      groups_.forget();
      for (const HeldLabel& held : state.labels) {
        if (deadline_.has_passed()) answer_.finished = false;
        if (answer_.finished) expand(held, {state.key, left, budget});
      }
    }
    position = LabelPosition{};
  }

  void keep_beam(LabelPosition& position, int left) {
    std::vector<RankedNode> order;
    std::vector<std::int64_t> units_left;
    for (const LabelState& state : position.states) {
      keys_.find_left(state.key, units_left);
      const double refund = bounds_.refund(units_left);
      for (const HeldLabel& held : state.labels) {
        order.emplace_back(bounds_.completion(tree_.label(held.node), left, refund), held.node);
      }
    }
    const std::vector<std::uint8_t> kept =
        within_beam(std::move(order), static_cast<std::size_t>(query_.beam), static_cast<std::size_t>(tree_.size()));
    if (kept.empty()) return;
    for (LabelState& state : position.states) {
      std::erase_if(state.labels, [&](const HeldLabel& held) { return at(kept, held.node) == 0; });
    }
  }

  void expand(const HeldLabel& held, const OpenState& state) {
    const Label label = tree_.label(held.node);
    const double lower = bounds_.completion(label, state.left, state.budget.refund);
    const int depth = bounds_.listed(bounds_.depth_before(label, state.left));
    std::vector<ExtensionGroup>& groups = groups_.of(state, depth);
    const std::span<const Extension> all = groups_.extensions(state.left, depth);
    for (ExtensionGroup& group : groups) {
      if (lower + group.growth > complete_.limit()) break;
      const Option& option = at(program_.options, group.option);
      for (std::uint32_t i = group.begin; i < group.end; ++i) {
        if (lower + all[i].growth > complete_.limit()) break;
        if (static_cast<double>(label.latency + all[i].plan.passage()) + group.ahead > complete_.limit()) {
          ++answer_.cuts.groups_by_packing;
          break;
        }
        LabelNode next{{}, held.node, group.option, group.blocks, all[i].candidate};
        if (!algebra_.prepend(label, held.dominance_key.head, all[i].plan, option.key, state.left, next.label)) {
          continue;
        }
        if (group.blocks == state.left) {
          if (!program_.is_interleaved() || algebra_.close(option.key, next.label)) complete_.add(next);
        } else {
          insert(next, state, group);
        }
        if (!answer_.finished) return;
      }
    }
  }

  [[nodiscard]] std::size_t most_inserted() const {
    return static_cast<std::size_t>(bounds_.tuning().inserted_per_beam) * static_cast<std::size_t>(query_.beam);
  }

  void insert(const LabelNode& node, const OpenState& parent, ExtensionGroup& group) {
    const int left = parent.left - group.blocks;
    const ExtendedLabel extended{node.label, node.option, left, parent.budget};
    const double lower = bounds_.completion(extended);
    if (bounds_.rules_out(extended, lower, complete_.cutoff(), complete_.limit())) return;
    LabelPosition& position = store_.position(left);
    if (query_.beam > 0 && position.bounds.excludes(lower, most_inserted())) return;
    if (!store_.add(held_of(extended), left, target_of(node, parent, group, position))) return;
    tree_.add(node);
    if (tree_.created() >= query_.label_budget) answer_.finished = false;
  }

  // The state that a group leads to: the same for all labels of a state, but with classic warm-ups.
  LabelState& target_of(const LabelNode& node, const OpenState& parent, ExtensionGroup& group,
                        LabelPosition& position) {
    if (program_.classic_warmup || group.target == ExtensionGroup::kNone) {
      StateKey key = keys_.after(parent.key, group.option);
      if (program_.classic_warmup) key.depth = node.label.n;
      if (program_.is_interleaved()) key.tail = node.label.tail;
      group.target = position.state_of(key);
    }
    return at(position.states, group.target);
  }

  // As dominance compares a label that would be the tree's next one.
  [[nodiscard]] HeldLabel held_of(const ExtendedLabel& extended) const {
    const int head = at(program_.options, extended.option).key;
    HeldLabel held{algebra_.dominance_key(extended.label, head), tree_.size()};
    // Interleaved, latency decides on what fits.
    if (query_.feasibility_only && !program_.is_interleaved())
      held.dominance_key.latency = 0;  // none is too late in the order to beat another
    held.dominance_key.a = std::max(held.dominance_key.a, bounds_.hidden_until(extended, held.dominance_key.latency));
    return held;
  }

  const Program& program_;
  const Deadline& deadline_;
  const LabelQuery& query_;
  const BoundaryPrices hops_;
  const LabelAlgebra algebra_;
  LabelBounds bounds_;
  StateKeys keys_;
  OpenGroups groups_;
  LabelStore store_;
  LabelTree tree_;
  CompleteLabels complete_;
  LabelAnswer answer_;
};

}  // namespace

LabelAnswer search_labels(const LabelGround& ground, const CompletionBound& bound, const LabelQuery& query) {
  return LabelSearch(ground, bound, query).run();
}

}  // namespace tangram::chain
