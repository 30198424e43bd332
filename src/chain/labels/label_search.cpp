#include "label_search.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "../bounds/relaxed_frontier.hpp"
#include "cuts.hpp"
#include "label.hpp"
#include "loads.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/chain/radices.hpp"

namespace tangram::chain {

namespace {

// How a label came to be.
struct Node {
  Label label;
  int parent = -1;
  int option = -1;
  int blocks = 0;  // of the stage that `option` runs
  const Candidate* candidate = nullptr;
};

// Units used, mixed radix over the classes, in two words.
struct StateKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::int32_t load = Loads::kNothing;
  // Of classic warm-ups: a smaller Q can then come with fewer microbatches in flight, and allow less.
  std::int64_t depth = 0;
  bool operator==(const StateKey&) const = default;
};

struct StateKeyHash {
  std::size_t operator()(const StateKey& key) const {
    std::uint64_t h = key.low * std::uint64_t{0x9E3779B97F4A7C15};
    h ^= (key.high + 0x7F4A7C15U) * std::uint64_t{0xC2B2AE3D27D4EB4F} + (h << 6) + (h >> 2);
    h ^= static_cast<std::uint64_t>(key.load) * std::uint64_t{0x27D4EB2F165667C5} + (h << 6) + (h >> 2);
    h ^= static_cast<std::uint64_t>(key.depth) * std::uint64_t{0x165667B19E3779F9} + (h << 6) + (h >> 2);
    return static_cast<std::size_t>(h ^ (h >> 29));
  }
};

// A label where it stands: what dominance compares lies together.
struct Held {
  DominanceKey dominance_key;
  std::int32_t node = 0;
};

struct State {
  StateKey key;
  std::vector<Held> labels;  // by latency
  std::size_t last_winner = 0;
};

// The smallest of many numbers, so many of them.
class Smallest {
 public:
  // Whether `value` is none of the `count` smallest so far; takes note of it otherwise.
  bool excludes(double value, std::size_t count) {
    if (heap_.size() == count && value >= heap_.front()) return true;
    if (heap_.size() == count) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    heap_.push_back(value);
    std::push_heap(heap_.begin(), heap_.end());
    return false;
  }

 private:
  std::vector<double> heap_;  // the largest in front
};

struct Position {
  std::vector<State> states;  // in order of creation, so that results never depend on hashing
  std::unordered_map<StateKey, int, StateKeyHash> index;
  Smallest bounds;  // of its labels, in a beam search
};

struct Extension {
  double growth = 0;                     // of a label's bound, at least
  Candidate plan;                        // copied: it is looked at for every label
  const Candidate* candidate = nullptr;  // where it came from; none of relaxed frontiers
};

// Extensions by the same slice on the same option: one look at a state may rule out all of them.
struct ExtensionGroup {
  double growth = 0;  // of the first one, the smallest
  int option = 0;
  int blocks = 0;
  std::uint32_t begin = 0;  // of its extensions, by growth
  std::uint32_t end = 0;
  double ahead = 0;  // in a state: what the hop in front of its labels and the stages before the slice add at least
  std::int32_t target = kNone;  // in a state: the one that it leads to, once a label went there

  static constexpr std::int32_t kNone = -1;
};

bool smaller_growth(const ExtensionGroup& a, const ExtensionGroup& b) {
  return std::tie(a.growth, a.option, a.blocks) < std::tie(b.growth, b.option, b.blocks);
}

// All extensions of a position at a depth.
struct ExtensionLists {
  bool built = false;
  std::vector<Extension> extensions;
  std::vector<ExtensionGroup> groups;  // by growth
};

// What is left of the inventory in a state, and its worth.
struct Budget {
  std::vector<std::int64_t> left;  // as in Program::resources
  double refund = 0;
  double supply = 0;
  double forward = 0;   // refund of the floor
  double backward = 0;  // likewise
};

class Search {
 public:
  Search(const LabelGround& ground, const CompletionBound& bound, const LabelQuery& query)
      : program_(ground.program),
        frontiers_(ground.frontiers),
        bound_(bound),
        tuning_(bound.tuning()),
        query_(query),
        hops_(ground.program, query.period,
              query.beam > 0 ? BoundaryPrices::Fronts::kAny : BoundaryPrices::Fronts::kAllowed),
        algebra_(ground.program, hops_, query.period, query.feasibility_only),
        forward_(ground.ends.forward_at(query.period, ascent_of(query, bound.tuning()))),
        backward_(ground.ends.backward_at(query.period, ascent_of(query, bound.tuning()))),
        cutoff_(query.cutoff),
        resources_(ground.program.resources()),
        loads_(ground.program),
        radices_(radices_within(ground.program.inventory)) {
    extensions_.resize(static_cast<std::size_t>(program_.blocks + 1) * static_cast<std::size_t>(bound.depths() + 1));
    open_groups_.resize(static_cast<std::size_t>(bound.depths()) + 1);
    positions_.resize(static_cast<std::size_t>(program_.blocks) + 1);
  }

  LabelAnswer run() {
    nodes_.push_back(Node{});
    positions_[static_cast<std::size_t>(program_.blocks)].states.push_back({StateKey{}, {Held{}}, 0});
    for (int left = program_.blocks; left > 0 && answer_.finished && !is_answered(); --left) expand_position(left);
    answer_.labels = created();
    note_cuts();
    answer_.found = best_.has_value();
    if (best_ && !query_.relaxed) answer_.chain = trace_back(*best_);
    for (const Node& node : complete_) answer_.chains.push_back(trace_back(node));
    answer_.value = best_value_;
    return std::move(answer_);
  }

 private:
  // Programs have no more units than have their place, see share_classes.
  static std::vector<Radix> radices_within(const std::vector<int>& inventory) {
    std::optional<std::vector<Radix>> radices = radices_of(inventory);
    TANGRAM_ASSERT(radices.has_value());
    return *std::move(radices);
  }

  // Relaxed frontiers have nothing to synchronise, and a beam search is not worth the prices.
  static int ascent_of(const LabelQuery& query, const SolverTuning& tuning) {
    return query.relaxed || query.beam > 0 ? 0 : tuning.floor_ascent;
  }

  // Any chain answers a search that knows no time.
  [[nodiscard]] bool is_answered() const { return query_.feasibility_only && best_.has_value(); }

  // The root is there from the start.
  [[nodiscard]] std::int64_t created() const { return static_cast<std::int64_t>(nodes_.size()) - 1; }

  void note_cuts() {
    answer_.cuts.groups_by_units = group_cuts_.removed(kByUnits) + group_cuts_.removed(kByPlacement);
    answer_.cuts.groups_by_spending = group_cuts_.removed(kBySpending);
    answer_.cuts.groups_by_remainder = group_cuts_.removed(kByRemainderOfGroup);
    answer_.cuts.labels_by_time = label_cuts_.removed(kByTime);
    answer_.cuts.labels_by_bound = label_cuts_.removed(kByBound);
    answer_.cuts.labels_by_remainder = label_cuts_.removed(kByRemainder);
  }

  // As in Program::resources.
  void find_left(const StateKey& key, std::vector<std::int64_t>& left) const {
    left = resources_;
    for (std::size_t k = 0; k < radices_.size(); ++k) {
      const Radix& r = radices_[k];
      const std::uint64_t word = r.high ? key.high : key.low;
      const auto used = static_cast<std::int64_t>(word / r.scale % r.radix);
      left[k] -= used;
      if (!program_.unit_spend.empty()) left.back() -= used * program_.unit_spend[k];
    }
  }

  void find_budget(const StateKey& key, Budget& budget) const {
    find_left(key, budget.left);
    budget.refund = bound_.refund(budget.left);
    budget.supply = bound_.supply(budget.left);
    budget.forward = forward_.refund(budget.left);
    budget.backward = backward_.refund(budget.left);
  }

  StateKey after(const StateKey& key, int option) {
    StateKey next = key;
    next.load = loads_.after(key.load, option);
    for (const Use& use : program_.options[static_cast<std::size_t>(option)].uses) {
      const Radix& r = radices_[static_cast<std::size_t>(use.island_class)];
      (r.high ? next.high : next.low) += r.scale * static_cast<std::uint64_t>(use.units);
    }
    return next;
  }

  // Extensions of a position at a depth, by growth of the bound. Those that cannot stay below the cutoff even from the
  // root are left out: along any chain the bound never shrinks.
  const ExtensionLists& extensions(int left, int depth) {
    ExtensionLists& lists = extensions_[static_cast<std::size_t>(left) * static_cast<std::size_t>(bound_.depths() + 1) +
                                        static_cast<std::size_t>(depth)];
    if (lists.built) return lists;
    lists.built = true;
    const double here = bound_.phi(left, depth);
    if (here == kNoCompletion) return lists;
    const double slack = static_cast<double>(query_.cutoff) - bound_.root() + 1.0;
    const double hop = left == program_.blocks ? 0 : bound_.round_trip(left);
    for (int n = 1; n <= left; ++n) {
      const double beyond = bound_.phi(left - n, depth + 1);
      if (beyond == kNoCompletion) continue;
      const int signature = program_.signature_of(left - n, left);
      for (int option = 0; option < static_cast<int>(program_.options.size()); ++option) {
        if (!query_.mixed && program_.options[static_cast<std::size_t>(option)].uses.size() > 1) continue;
        const double fixed = hop + bound_.unit_price(option) + beyond - here;
        if (!can_extend(option, signature, depth, slack - fixed)) continue;
        const GroupTerms terms{depth, n == left, fixed, slack};
        if (query_.relaxed) {
          relax(option, n, left, depth, steps_);
          add_group(lists, {0, option, n, 0, 0}, steps_, terms);
        } else {
          add_group(lists, {0, option, n, 0, 0}, frontiers_.whole(option, signature), terms);
        }
      }
    }
    const auto most = static_cast<std::size_t>(query_.beam) * static_cast<std::size_t>(tuning_.groups_per_beam);
    if (query_.beam > 0 && lists.groups.size() > most) {
      std::nth_element(lists.groups.begin(), lists.groups.begin() + static_cast<std::ptrdiff_t>(most),
                       lists.groups.end(), smaller_growth);
      lists.groups.resize(most);
    }
    std::sort(lists.groups.begin(), lists.groups.end(), smaller_growth);
    return lists;
  }

  void relax(int option, int blocks, int left, int depth, std::vector<Candidate>& steps) const {
    if (blocks == left) {
      first_relaxed_frontier_of(program_, option, left, depth, steps);
    } else {
      relaxed_frontier_of(program_, option, program_.signature_of(left - blocks, left), steps);
    }
  }

  struct GroupTerms {
    int depth;
    bool is_first_stage;
    double fixed;  // growth without the stage itself
    double slack;  // growth that is too much
  };

  void add_group(ExtensionLists& lists, ExtensionGroup group, std::span<const Candidate> frontier,
                 const GroupTerms& terms) const {
    group.begin = static_cast<std::uint32_t>(lists.extensions.size());
    for (const Candidate& candidate : frontier) {
      if (candidate.T > query_.period || static_cast<double>(candidate.T) + terms.fixed > terms.slack) break;
      const std::int64_t cost = terms.is_first_stage ? candidate.A + candidate.o : candidate.T;
      const double growth = static_cast<double>(cost) + terms.fixed;
      if (growth > terms.slack) continue;
      if (candidate.n_max < needed(program_, terms.depth)) continue;
      lists.extensions.push_back({growth, candidate, query_.relaxed ? nullptr : &candidate});
      if (query_.beam > 0 && !terms.is_first_stage) break;  // a beam search takes the fastest plan that holds the depth
    }
    group.end = static_cast<std::uint32_t>(lists.extensions.size());
    if (group.begin == group.end) return;
    const std::span<Extension> own = std::span(lists.extensions).subspan(group.begin);
    if (!std::ranges::is_sorted(own, {}, &Extension::growth)) std::ranges::stable_sort(own, {}, &Extension::growth);
    group.growth = own.front().growth;
    lists.groups.push_back(group);
  }

  [[nodiscard]] static bool fits(const Option& option, const Budget& budget) {
    return std::all_of(option.uses.begin(), option.uses.end(), [&](const Use& use) {
      return use.units <= budget.left[static_cast<std::size_t>(use.island_class)];
    });
  }

  // Whether the units that are left once an option has taken its own can hold the blocks that are left.
  [[nodiscard]] bool is_coverable(int left, std::int64_t depth, int option, const Budget& budget) const {
    return bound_.need(left, depth) <= budget.supply - bound_.unit_weight(option) &&
           bound_.capacity().covers_after(program_.options[static_cast<std::size_t>(option)], left, depth, budget.left);
  }

  // The groups for which a state has the units, now and for the blocks that remain.
  std::vector<ExtensionGroup>& open_groups(int left, int depth, const StateKey& key, const Budget& budget) {
    OpenGroups& open = open_groups_[static_cast<std::size_t>(depth)];
    if (open.known) return open.groups;
    open.known = true;
    open.groups.clear();
    for (const ExtensionGroup& group : extensions(left, depth).groups) {
      const Option& option = program_.options[static_cast<std::size_t>(group.option)];
      const bool ruled_out = group_cuts_.any([&](std::size_t cut) {
        switch (cut) {
          case kByUnits: return !fits(option, budget);
          case kByPlacement: return loads_.after(key.load, group.option) == Loads::kTooMuch;
          case kBySpending: return !program_.unit_spend.empty() && program_.spend_of(option) > budget.left.back();
          default: return !is_coverable(left - group.blocks, depth + 1, group.option, budget);
        }
      });
      if (ruled_out) continue;
      const double ahead = least_ahead(left, depth, group, budget);
      if (ahead == kNoCompletion) continue;
      open.groups.push_back(group);
      open.groups.back().ahead = ahead;
    }
    return open.groups;
  }

  // A beam search is not worth it.
  [[nodiscard]] double least_ahead(int left, int depth, const ExtensionGroup& group, const Budget& budget) {
    if (query_.beam > 0 || group.blocks == left || !tuning_.cuts.knapsack) return 0;
    left_after_ = budget.left;
    for (const Use& use : program_.options[static_cast<std::size_t>(group.option)].uses) {
      left_after_[static_cast<std::size_t>(use.island_class)] -= use.units;
    }
    const double hop = left == program_.blocks ? 0 : bound_.round_trip(left);
    return hop + bound_.knapsack().rest(left - group.blocks, depth + 1, left_after_);
  }

  // Looks at the relaxed frontier only: is there a plan that holds the depth within the period and the time?
  [[nodiscard]] bool can_extend(int option, int signature, int depth, double time) const {
    for (const Candidate& candidate : program_.frontier(option, signature)) {
      if (candidate.T > query_.period || static_cast<double>(candidate.T) > time) return false;
      if (candidate.n_max >= needed(program_, depth)) return true;
    }
    return false;
  }

  // The bound of a label is compared with the cutoff in doubles; one nanosecond of slack absorbs their rounding.
  [[nodiscard]] double limit() const { return static_cast<double>(cutoff_) + 1.0; }

  void expand_position(int left) {
    Position& position = positions_[static_cast<std::size_t>(left)];
    answer_.states += static_cast<std::int64_t>(position.states.size());
    position.index.clear();
    if (query_.beam > 0) keep_best(position, left);
    Budget budget;
    for (const State& state : position.states) {
      if (!answer_.finished) break;
      find_budget(state.key, budget);
      for (OpenGroups& open : open_groups_) open.known = false;
      for (const Held& held : state.labels) {
        if (answer_.finished) expand(held, state.key, left, budget);
      }
    }
    position = Position{};
  }

  void keep_best(Position& position, int left) {
    std::vector<std::pair<double, int>> order;
    std::vector<std::int64_t> units_left;
    for (const State& state : position.states) {
      find_left(state.key, units_left);
      const double refund = bound_.refund(units_left);
      for (const Held& held : state.labels) {
        const Label& label = nodes_[static_cast<std::size_t>(held.node)].label;
        const std::int64_t depth = left == program_.blocks ? 1 : label.n + 1;
        order.emplace_back(static_cast<double>(label.latency) + bound_.phi(left, depth) - refund, held.node);
      }
    }
    if (order.size() <= static_cast<std::size_t>(query_.beam)) return;
    std::nth_element(order.begin(), order.begin() + query_.beam, order.end());
    const std::pair<double, int> worst = order[static_cast<std::size_t>(query_.beam)];
    std::vector<std::uint8_t> kept(nodes_.size(), 0);
    for (const auto& entry : order) {
      if (entry < worst) kept[static_cast<std::size_t>(entry.second)] = 1;
    }
    for (State& state : position.states) {
      std::erase_if(state.labels, [&](const Held& held) { return kept[static_cast<std::size_t>(held.node)] == 0; });
    }
  }

  void expand(const Held& held, const StateKey& key, int left, const Budget& budget) {
    const Label label = nodes_[static_cast<std::size_t>(held.node)].label;
    const std::int64_t depth = left == program_.blocks ? 1 : label.n + 1;
    const double lower = static_cast<double>(label.latency) + bound_.phi(left, depth) - budget.refund;
    const int list_depth = static_cast<int>(std::min<std::int64_t>(depth, bound_.depths()));
    std::vector<ExtensionGroup>& groups = open_groups(left, list_depth, key, budget);
    const std::vector<Extension>& all = extensions(left, list_depth).extensions;
    for (ExtensionGroup& group : groups) {
      if (lower + group.growth > limit()) break;
      const Option& option = program_.options[static_cast<std::size_t>(group.option)];
      for (std::uint32_t i = group.begin; i < group.end; ++i) {
        if (lower + all[i].growth > limit()) break;
        if (static_cast<double>(label.latency + all[i].plan.T) + group.ahead > limit()) {
          ++answer_.cuts.groups_by_packing;
          break;
        }
        Node next{{}, held.node, group.option, group.blocks, all[i].candidate};
        if (!algebra_.prepend(label, held.dominance_key.head, all[i].plan, option.key, left, next.label)) continue;
        if (group.blocks == left) {
          complete(next);
        } else {
          insert(next, key, group, left - group.blocks, budget);
        }
        if (!answer_.finished) return;
      }
    }
  }

  void complete(const Node& node) {
    if (node.label.a + node.label.o > cutoff_) return;
    if (query_.all) return complete_.push_back(node);
    best_ = node;
    best_value_ = node.label.a + node.label.o;
    cutoff_ = best_value_ - 1;
  }

  // How late A + max o is at least, because of what the label has to synchronise.
  [[nodiscard]] std::int64_t end_of(const Node& node, int left, const Budget& before) const {
    const double refund = before.forward - forward_.unit_price(node.option);
    return node.label.a + node.label.o + forward_.at(left, refund);
  }

  [[nodiscard]] std::size_t most_inserted() const {
    return static_cast<std::size_t>(tuning_.inserted_per_beam) * static_cast<std::size_t>(query_.beam);
  }

  // `before`: what was left before the label's first stage took its units.
  void insert(const Node& node, const StateKey& parent, ExtensionGroup& group, int left, const Budget& before) {
    const std::int64_t depth = node.label.n + 1;
    const double refund = before.refund - bound_.unit_price(node.option);
    const double lower = static_cast<double>(node.label.latency) + bound_.phi(left, depth) - refund;
    const bool ruled_out = label_cuts_.any([&](std::size_t cut) {
      switch (cut) {
        case kByTime: return end_of(node, left, before) > cutoff_;
        case kByBound: return lower > limit();
        default: return !is_coverable(left, depth, node.option, before);
      }
    });
    if (ruled_out) return;
    Position& position = positions_[static_cast<std::size_t>(left)];
    if (query_.beam > 0 && position.bounds.excludes(lower, most_inserted())) return;
    const Option& option = program_.options[static_cast<std::size_t>(group.option)];
    if (program_.classic_warmup || group.target == ExtensionGroup::kNone) {
      StateKey key = after(parent, group.option);
      if (program_.classic_warmup) key.depth = node.label.n;
      group.target = state_of(key, position);
    }
    Held candidate{algebra_.dominance_key(node.label, option.key), static_cast<std::int32_t>(nodes_.size())};
    if (query_.feasibility_only) candidate.dominance_key.latency = 0;  // none is too late in the order to beat another
    const double backward_refund = before.backward - backward_.unit_price(node.option);
    candidate.dominance_key.a =
        std::max(candidate.dominance_key.a, candidate.dominance_key.latency + backward_.at(left, backward_refund));
    State& state = position.states[static_cast<std::size_t>(group.target)];
    if (!tuning_.cuts.dominance) {
      state.labels.push_back(candidate);
    } else if (!add(candidate, hops_.latency_gap_at(left), state)) {
      return;
    }
    nodes_.push_back(node);
    if (created() >= query_.label_budget) answer_.finished = false;
  }

  static std::int32_t state_of(const StateKey& key, Position& position) {
    const auto [entry, created_now] = position.index.try_emplace(key, static_cast<int>(position.states.size()));
    if (created_now) position.states.push_back({key, {}, 0});
    return entry->second;
  }

  // Whether no label of the state dominates the candidate. Labels ascend in latency: only those before the candidate
  // can dominate it, and it only those behind. Candidates in a row tend to lose to the same label: it is asked first.
  bool add(const Held& candidate, const BoundaryPrices::LatencyGap& latency_gap, State& state) {
    std::vector<Held>& held = state.labels;
    const auto is_beaten_by = [&](const Held& other) {
      return algebra_.dominates(other.dominance_key, candidate.dominance_key, latency_gap);
    };
    if (state.last_winner < held.size() && is_beaten_by(held[state.last_winner])) {
      ++answer_.cuts.labels_by_dominance;
      return false;
    }
    const auto latency_of = [](const Held& other) { return other.dominance_key.latency; };
    const auto place = std::ranges::upper_bound(held, candidate.dominance_key.latency, {}, latency_of);
    const auto winner = std::find_if(held.begin(), place, is_beaten_by);
    if (winner != place) {
      state.last_winner = static_cast<std::size_t>(winner - held.begin());
      ++answer_.cuts.labels_by_dominance;
      return false;
    }
    const auto is_beaten = [&](const Held& other) {
      return algebra_.dominates(candidate.dominance_key, other.dominance_key, latency_gap);
    };
    // Those of equal latency before the place are beaten, too, if they are no better in anything.
    const auto first = std::ranges::lower_bound(held, candidate.dominance_key.latency, {}, latency_of);
    const auto kept = std::remove_if(first, held.end(), is_beaten);
    answer_.cuts.labels_by_dominance += held.end() - kept;
    held.erase(kept, held.end());
    held.insert(std::ranges::upper_bound(held, candidate.dominance_key.latency, {}, latency_of), candidate);
    return true;
  }

  Chain trace_back(const Node& last) const {
    Chain chain;
    int first = 0;
    for (const Node* node = &last; node->parent >= 0; node = &nodes_[static_cast<std::size_t>(node->parent)]) {
      chain.stages.push_back({node->option, first, first + node->blocks, *node->candidate});
      first += node->blocks;
    }
    return chain;
  }

  const Program& program_;
  Frontiers& frontiers_;
  const CompletionBound& bound_;
  const SolverTuning& tuning_;
  const LabelQuery query_;
  const BoundaryPrices hops_;
  const LabelAlgebra algebra_;
  const EndFloor forward_;
  const EndFloor backward_;
  std::int64_t cutoff_;
  const std::vector<std::int64_t> resources_;
  Loads loads_;
  const std::vector<Radix> radices_;
  struct OpenGroups {
    bool known = false;
    std::vector<ExtensionGroup> groups;
  };

  std::vector<Candidate> steps_;            // of the relaxed frontier that is being added
  std::vector<std::int64_t> left_after_;    // units, by an extension that is being looked at
  std::vector<ExtensionLists> extensions_;  // [left * (depths + 1) + depth]
  std::vector<OpenGroups> open_groups_;     // by depth, of the state that is being expanded
  std::vector<Position> positions_;
  enum GroupCut : std::uint8_t { kByUnits, kBySpending, kByRemainderOfGroup, kByPlacement, kGroupCuts };
  enum LabelCut : std::uint8_t { kByTime, kByBound, kByRemainder, kLabelCuts };
  CutList<kGroupCuts> group_cuts_;
  CutList<kLabelCuts> label_cuts_;
  std::vector<Node> nodes_;
  std::optional<Node> best_;
  std::vector<Node> complete_;
  std::int64_t best_value_ = 0;
  LabelAnswer answer_;
};

}  // namespace

LabelAnswer search_labels(const LabelGround& ground, const CompletionBound& bound, const LabelQuery& query) {
  return Search(ground, bound, query).run();
}

}  // namespace tangram::chain
