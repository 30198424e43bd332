#include "label_search.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tangram/base/assert.hpp"

namespace tangram::compose {

namespace {

constexpr std::int64_t kFar = INT64_MAX / 8;
constexpr std::size_t kExtensionsPerBeam = 4;

struct Label {
  std::int64_t latency = 0;
  std::int64_t a = 0;
  std::int64_t o = 0;
  std::int64_t q = 0;
  std::int64_t n = 0;
  int parent = -1;
  int option = -1;
  int blocks = 0;  // of the stage that `option` runs
  const Candidate* candidate = nullptr;
};

// n needs no comparison of its own: (n-1) P < Q <= n P, and Q = kFar exactly where n = M, so a Q that is no larger
// means an n that is no larger. The sign of a difference tells, and there is no branch: which component decides cannot
// be foretold. No difference overflows, as none of them is negative.
template <class X, class Y>
bool dominates(const X& x, const Y& y) {
  return ((y.latency - x.latency) | (y.a - x.a) | (y.o - x.o) | (y.q - x.q)) >= 0;
}

// Units used, mixed radix over the classes, in two words; and the head's price key.
struct StateKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  int head = -1;
  // Of classic warm-ups: a smaller Q can then come with fewer microbatches in flight, and allow less.
  std::int64_t depth = 0;
  bool operator==(const StateKey&) const = default;
};

struct StateKeyHash {
  std::size_t operator()(const StateKey& key) const {
    std::uint64_t h = key.low * std::uint64_t{0x9E3779B97F4A7C15};
    h ^= (key.high + 0x7F4A7C15U) * std::uint64_t{0xC2B2AE3D27D4EB4F} + (h << 6) + (h >> 2);
    h ^= static_cast<std::uint64_t>((key.depth << 32) + key.head + 1) * std::uint64_t{0x165667B19E3779F9} + (h << 6) +
         (h >> 2);
    return static_cast<std::size_t>(h ^ (h >> 29));
  }
};

// A label where it stands: what dominance compares lies together.
struct Held {
  std::int64_t latency;
  std::int64_t a;
  std::int64_t o;
  std::int64_t q;
  int label;
};

struct State {
  StateKey key;
  std::vector<Held> labels;
};

struct Position {
  std::vector<State> states;  // in order of creation, so that results never depend on hashing
  std::unordered_map<StateKey, int, StateKeyHash> index;
};

struct Extension {
  double reduced_cost = 0;  // growth of a label's bound, at least
  int option = 0;
  int blocks = 0;
  Candidate plan;                        // copied: it is looked at for every label
  const Candidate* candidate = nullptr;  // where it came from
};

bool smaller_growth(const Extension& a, const Extension& b) {
  return std::tie(a.reduced_cost, a.option, a.blocks, a.candidate) <
         std::tie(b.reduced_cost, b.option, b.blocks, b.candidate);
}

// What is left of the inventory in a state, and its worth.
struct Budget {
  std::vector<int> units;
  double refund = 0;
  double supply = 0;
};

class Search {
 public:
  Search(const Program& program, Frontiers& frontiers, const CompletionBound& bound, const LabelQuery& query)
      : program_(program), frontiers_(frontiers), bound_(bound), query_(query), cutoff_(query.cutoff) {
    encode_radices();
    collect_widest_hops();
    extensions_.resize(static_cast<std::size_t>(program.blocks + 1) * static_cast<std::size_t>(bound.depths() + 1));
    built_.assign(extensions_.size(), 0);
    positions_.resize(static_cast<std::size_t>(program.blocks) + 1);
  }

  LabelAnswer run() {
    labels_.push_back(Label{});
    const int root = 0;
    positions_[static_cast<std::size_t>(program_.blocks)].states.push_back({StateKey{}, {Held{0, 0, 0, 0, root}}});
    for (int left = program_.blocks; left > 0 && answer_.finished; --left) expand_position(left);
    answer_.labels = created();
    if (best_) answer_.chain = trace_back();
    answer_.value = best_value_;
    return std::move(answer_);
  }

 private:
  // The root is there from the start.
  [[nodiscard]] std::int64_t created() const { return static_cast<std::int64_t>(labels_.size()) - 1; }

  void encode_radices() {
    // Classes fill the low word until it would overflow, then the high one.
    std::uint64_t scale = 1;
    bool high = false;
    for (const int units : program_.inventory) {
      const auto radix = static_cast<std::uint64_t>(units) + 1;
      if (scale > UINT64_MAX / radix / 2) {
        TANGRAM_ASSERT(!high);
        high = true;
        scale = 1;
      }
      radices_.push_back({scale, radix, high});
      scale *= radix;
    }
  }

  void collect_widest_hops() {
    // For each head key the largest latency a stage may have to it: bounds when Q can still matter.
    widest_hop_.assign(static_cast<std::size_t>(program_.keys), 0);
    const auto keys = static_cast<std::size_t>(program_.keys);
    for (std::size_t i = 0; i < program_.prices.size(); ++i) {
      auto& widest = widest_hop_[i % keys];
      widest = std::max(widest, program_.prices[i].latency);
    }
  }

  std::vector<int> units_left(const StateKey& key) const {
    std::vector<int> left(program_.inventory.size());
    for (std::size_t k = 0; k < left.size(); ++k) {
      const Radix& r = radices_[k];
      const std::uint64_t word = r.high ? key.high : key.low;
      left[k] = program_.inventory[k] - static_cast<int>(word / r.scale % r.radix);
    }
    return left;
  }

  StateKey after(const StateKey& key, const Option& option) const {
    StateKey next = key;
    next.head = option.key;
    for (const Use& use : option.uses) {
      const Radix& r = radices_[static_cast<std::size_t>(use.island_class)];
      (r.high ? next.high : next.low) += r.scale * static_cast<std::uint64_t>(use.units);
    }
    return next;
  }

  // Extensions of a position at a depth, by growth of the bound. Those that cannot stay below the cutoff even from the
  // root are left out: along any chain the bound never shrinks.
  const std::vector<Extension>& extensions(int left, int depth) {
    const auto at = static_cast<std::size_t>(left) * static_cast<std::size_t>(bound_.depths() + 1) +
                    static_cast<std::size_t>(depth);
    if (built_[at]) return extensions_[at];
    built_[at] = 1;
    std::vector<Extension>& list = extensions_[at];
    const double here = bound_.phi(left, depth);
    if (here == kNoCompletion) return list;
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
        for (const Candidate& candidate : frontiers_.whole(option, signature)) {
          if (candidate.T > query_.period) break;
          if (static_cast<double>(candidate.T) + fixed > slack) break;
          const double growth = static_cast<double>(n == left ? candidate.A + candidate.o : candidate.T) + fixed;
          if (growth > slack) continue;
          if (candidate.n_max < std::min<std::int64_t>(depth, program_.microbatches)) continue;
          list.push_back({growth, option, n, candidate, &candidate});
          if (query_.beam > 0 && n < left) break;  // a quick pass takes the fastest plan that holds the depth
        }
      }
    }
    const auto most = static_cast<std::size_t>(query_.beam) * kExtensionsPerBeam;
    if (query_.beam > 0 && list.size() > most) {
      std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(most), list.end(), smaller_growth);
      list.resize(most);
    }
    std::sort(list.begin(), list.end(), smaller_growth);
    return list;
  }

  // Looks at the outline only: is there a plan that holds the depth within the period and the time?
  [[nodiscard]] bool can_extend(int option, int signature, int depth, double time) const {
    for (const Candidate& candidate : program_.frontier(option, signature)) {
      if (candidate.T > query_.period || static_cast<double>(candidate.T) > time) return false;
      if (candidate.n_max >= std::min<std::int64_t>(depth, program_.microbatches)) return true;
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
    for (const State& state : position.states) {
      if (!answer_.finished) break;
      const std::vector<int> units = units_left(state.key);
      const Budget budget{units, bound_.refund(units), bound_.supply(units)};
      for (const Held& held : state.labels) {
        if (answer_.finished) expand(held.label, state, left, budget);
      }
    }
    position = Position{};
  }

  void keep_best(Position& position, int left) {
    std::vector<std::pair<double, int>> order;
    for (const State& state : position.states) {
      const double refund = bound_.refund(units_left(state.key));
      for (const Held& held : state.labels) {
        const Label& label = labels_[static_cast<std::size_t>(held.label)];
        const std::int64_t depth = left == program_.blocks ? 1 : label.n + 1;
        order.emplace_back(static_cast<double>(label.latency) + bound_.phi(left, depth) - refund, held.label);
      }
    }
    if (order.size() <= static_cast<std::size_t>(query_.beam)) return;
    std::nth_element(order.begin(), order.begin() + query_.beam, order.end());
    const std::pair<double, int> worst = order[static_cast<std::size_t>(query_.beam)];
    std::vector<std::uint8_t> kept(labels_.size(), 0);
    for (const auto& entry : order) {
      if (entry < worst) kept[static_cast<std::size_t>(entry.second)] = 1;
    }
    for (State& state : position.states) {
      std::erase_if(state.labels, [&](const Held& held) { return kept[static_cast<std::size_t>(held.label)] == 0; });
    }
  }

  void expand(int label_id, const State& state, int left, const Budget& budget) {
    const Label label = labels_[static_cast<std::size_t>(label_id)];
    const std::int64_t depth = left == program_.blocks ? 1 : label.n + 1;
    const double lower = static_cast<double>(label.latency) + bound_.phi(left, depth) - budget.refund;
    const int list_depth = static_cast<int>(std::min<std::int64_t>(depth, bound_.depths()));
    for (const Extension& extension : extensions(left, list_depth)) {
      if (lower + extension.reduced_cost > limit()) break;
      const Option& option = program_.options[static_cast<std::size_t>(extension.option)];
      const bool fits = std::all_of(option.uses.begin(), option.uses.end(), [&](const Use& use) {
        return use.units <= budget.units[static_cast<std::size_t>(use.island_class)];
      });
      if (!fits) continue;
      Label next;
      if (!prepend(label, extension.plan, option, state.key.head, left, next)) continue;
      next.parent = label_id;
      next.option = extension.option;
      next.blocks = extension.blocks;
      next.candidate = extension.candidate;
      if (extension.blocks == left) {
        complete(next);
      } else {
        insert(next, state.key, option, left - extension.blocks, budget);
      }
      if (!answer_.finished) return;
    }
  }

  // False: the period, the memory or the cutoff does not allow it.
  bool prepend(const Label& label, const Candidate& p, const Option& option, int head, int left, Label& next) const {
    std::int64_t c = 0;
    if (head >= 0) {
      const Price& price = program_.price(left, option.key, head);
      if (price.occupancy > query_.period) return false;
      c = price.latency;
    }
    next.a = head < 0 ? p.A : std::max(label.a + p.F + c, p.A + label.latency + 2 * c);
    next.o = std::max(label.o, p.o);
    if (next.a + next.o > cutoff_) return false;
    next.latency = p.T + 2 * c + label.latency;
    const std::int64_t period = query_.period;
    const std::int64_t x = p.T + 2 * c + label.q;
    if (label.q >= kFar) {
      next.n = program_.microbatches;
    } else {
      next.n = label.n + 1;
      if (x > next.n * period) {  // rare, and a division is slow
        if (program_.classic_warmup && next.n < program_.microbatches) return false;
        next.n = (x + period - 1) / period;
      }
    }
    if (next.n >= program_.microbatches) {
      // All microbatches in flight: it cannot get worse, so n and Q no longer matter.
      next.n = program_.microbatches;
      next.q = kFar;
    } else {
      next.q = std::max(period * (next.n - 1) + p.T, x);
      // Any Q up to n P - 2 c gives the next stage n + 1 microbatches, whatever its T <= P: call them equal.
      next.q = std::max(next.q, next.n * period - 2 * widest_hop_[static_cast<std::size_t>(option.key)]);
    }
    return next.n <= p.n_max;
  }

  void complete(const Label& label) {
    const std::int64_t value = label.a + label.o;
    if (value > cutoff_) return;
    best_ = label;
    best_value_ = value;
    cutoff_ = value - 1;
  }

  // `before`: what was left before the label's first stage took its units.
  void insert(const Label& label, const StateKey& parent, const Option& option, int left, const Budget& before) {
    if (bound_.need(left, label.n + 1) > before.supply - bound_.unit_weight(label.option)) return;
    const double refund = before.refund - bound_.unit_price(label.option);
    const double lower = static_cast<double>(label.latency) + bound_.phi(left, label.n + 1) - refund;
    if (lower > limit()) return;
    Position& position = positions_[static_cast<std::size_t>(left)];
    StateKey key = after(parent, option);
    if (program_.classic_warmup) key.depth = label.n;
    const auto [entry, created_now] = position.index.try_emplace(key, static_cast<int>(position.states.size()));
    if (created_now) position.states.push_back({key, {}});
    std::vector<Held>& held = position.states[static_cast<std::size_t>(entry->second)].labels;
    if (std::any_of(held.begin(), held.end(), [&](const Held& other) { return dominates(other, label); })) return;
    std::erase_if(held, [&](const Held& other) { return dominates(label, other); });
    held.push_back({label.latency, label.a, label.o, label.q, static_cast<int>(labels_.size())});
    labels_.push_back(label);
    if (created() >= query_.label_budget) answer_.finished = false;
  }

  Chain trace_back() const {
    Chain chain;
    int first = 0;
    for (const Label* label = &*best_; label->parent >= 0; label = &labels_[static_cast<std::size_t>(label->parent)]) {
      chain.stages.push_back({label->option, first, first + label->blocks, *label->candidate});
      first += label->blocks;
    }
    return chain;
  }

  struct Radix {
    std::uint64_t scale;
    std::uint64_t radix;
    bool high;
  };

  const Program& program_;
  Frontiers& frontiers_;
  const CompletionBound& bound_;
  const LabelQuery query_;
  std::int64_t cutoff_;
  std::vector<Radix> radices_;
  std::vector<std::int64_t> widest_hop_;
  std::vector<std::vector<Extension>> extensions_;
  std::vector<std::uint8_t> built_;
  std::vector<Position> positions_;
  std::vector<Label> labels_;
  std::optional<Label> best_;
  std::int64_t best_value_ = 0;
  LabelAnswer answer_;
};

}  // namespace

LabelAnswer search_labels(const Program& program, Frontiers& frontiers, const CompletionBound& bound,
                          const LabelQuery& query) {
  return Search(program, frontiers, bound, query).run();
}

}  // namespace tangram::compose
