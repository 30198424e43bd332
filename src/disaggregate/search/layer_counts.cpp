#include "layer_counts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "../ledger.hpp"

namespace tangram::disaggregate {

namespace {

constexpr int kMostPatterns = 512;  // all patterns of a layer, where there are no more
constexpr double kRounding = 1e-12;

using Rows = std::vector<double>;

Rows difference(Rows a, const Rows& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

// Whether layers depend on each other through the next one alone.
bool is_chain_of_layers(const Problem& problem, const Repeat& repeat) {
  const auto layer_of = [&](int kernel) {
    const int layer = kernel < repeat.first ? -1 : (kernel - repeat.first) / repeat.kernels;
    return std::min(layer, repeat.times);
  };
  const auto is_inside = [&](int layer) { return layer >= 0 && layer < repeat.times; };
  return std::ranges::all_of(problem.buffers, [&](const Buffer& buffer) {
    if (buffer.readers.empty()) return true;
    const int first = layer_of(buffer.writer >= 0 ? buffer.writer : buffer.readers.front());
    const int last = layer_of(buffer.readers.back());
    if (!is_inside(first) && !is_inside(last)) return first == last;
    return last - first <= (buffer.writer >= 0 ? 1 : 0);
  });
}

class LayerSearch {
 public:
  LayerSearch(const Resources& resources, const Relaxation& relaxation, const LayerQuery& query)
      : resources_(resources), relaxation_(relaxation), query_(query), repeat_(query.repeat), outside_(resources) {
    for (int k = 0; k < resources.problem().kernel_count(); ++k) {
      if (k < repeat_.first || k >= repeat_.first + repeat_.kernels * repeat_.times) {
        outside_.put(k, at(query.incumbent, k));
      }
    }
    // Twice the bound is found without a search.
    most_ = std::min(query.most * (1 - kRounding), 2 * relaxation.bound);
    make_patterns();
    make_arcs();
    make_completions();
    make_rates();
  }

  std::optional<Placement> run() {
    labels_.push_back({{-1, -1, -1, costs_outside_, outside_.rows()}});
    for (int layer = 0; layer < repeat_.times; ++layer) {
      extend(layer);
      if (labels_.back().empty()) return std::nullopt;
    }
    return best();
  }

 private:
  struct Arc {
    int pattern = 0;
    int to = 0;
    double cost = 0;
    Rows rows;
  };
  struct Label {
    int before = -1;  // label behind the layer in front
    int pattern = -1;
    int state = -1;
    double cost = 0;
    Rows rows;
  };
  // A label without its rows yet.
  struct Offer {
    int before = 0;
    const Arc* arc = nullptr;
    double projected = 0;  // the period, and what is overdrawn, if layers behind take what the mixture takes
  };

  [[nodiscard]] double priced(const Rows& rows) const {
    double sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) sum += relaxation_.prices[i] * rows[i];
    return sum;
  }

  void put(Ledger& ledger, int layer, const Placement* pattern) const {
    const int first = repeat_.first + layer * repeat_.kernels;
    for (int i = 0; i < repeat_.kernels; ++i) {
      ledger.put(first + i, pattern == nullptr ? Ledger::kNowhere : at(*pattern, i));
    }
  }

  void make_patterns() {
    std::set<Placement> patterns;
    if (std::pow(resources_.problem().class_count(), repeat_.kernels) <= kMostPatterns) {
      Placement pattern(static_cast<std::size_t>(repeat_.kernels), 0);
      do {
        if (runs(pattern)) patterns.insert(pattern);
      } while (next_placement(pattern, resources_.problem().class_count()));
    }
    for (const Placement& placement : query_.seen) {
      for (int layer = 0; layer < repeat_.times; ++layer) {
        const auto begin = placement.begin() + repeat_.first + layer * repeat_.kernels;
        patterns.emplace(begin, begin + repeat_.kernels);
      }
    }
    patterns_.assign(patterns.begin(), patterns.end());
    find_states();
  }

  [[nodiscard]] bool runs(const Placement& pattern) const {
    for (int i = 0; i < repeat_.kernels; ++i) {
      const Kernel& kernel = at(resources_.problem().kernels, repeat_.first + i);
      if (std::isinf(at(kernel.seconds, at(pattern, i)))) return false;
    }
    return true;
  }

  void find_states() {
    const int end_of_first = repeat_.first + repeat_.kernels;
    std::set<int> writers;  // in the first layer, of what the next one reads
    for (const Buffer& buffer : resources_.problem().buffers) {
      if (buffer.writer < repeat_.first || buffer.writer >= end_of_first || buffer.readers.empty()) continue;
      if (buffer.readers.back() >= end_of_first) writers.insert(buffer.writer - repeat_.first);
    }
    std::map<Placement, int> states;
    for (int p = 0; p < static_cast<int>(patterns_.size()); ++p) {
      Placement state;
      for (const int writer : writers) state.push_back(at(at(patterns_, p), writer));
      const auto [entry, is_new] = states.try_emplace(state, static_cast<int>(states.size()));
      if (is_new) example_.push_back(p);
      state_.push_back(entry->second);
    }
  }

  void make_arcs() {
    Ledger alone(resources_);
    const Rows nothing = outside_.rows();
    for (int p = 0; p < static_cast<int>(patterns_.size()); ++p) {
      put(outside_, 0, &at(patterns_, p));
      first_.push_back(arc_of(p, difference(outside_.rows(), nothing)));
    }
    put(outside_, 0, nullptr);
    outside_.restore(nothing);
    const int last = repeat_.times - 1;
    for (int s = 0; s < static_cast<int>(example_.size()); ++s) {
      const Placement& before = at(patterns_, at(example_, s));
      put(alone, 1, &before);
      const Rows of_before = alone.rows();
      std::vector<Arc>& arcs = arcs_.emplace_back();
      for (int p = 0; p < static_cast<int>(patterns_.size()); ++p) {
        put(alone, 2, &at(patterns_, p));
        arcs.push_back(arc_of(p, difference(alone.rows(), of_before)));
      }
      put(alone, 2, nullptr);
      put(alone, 1, nullptr);
      alone.restore(Rows(nothing.size(), 0));
      put(alone, last, &before);
      put(outside_, last, &before);
      ends_.push_back(difference(difference(outside_.rows(), nothing), alone.rows()));
      put(alone, last, nullptr);
      put(outside_, last, nullptr);
      alone.restore(Rows(nothing.size(), 0));
      outside_.restore(nothing);
    }
  }

  [[nodiscard]] Arc arc_of(int pattern, Rows rows) const {
    const double cost = priced(rows);
    return {pattern, at(state_, pattern), cost, std::move(rows)};
  }

  // The least that layers still to come cost, by their number and the state in front of them. Arcs are put in the order
  // in which they are of interest.
  void make_completions() {
    completion_.emplace_back();
    for (const Rows& end : ends_) completion_.back().push_back(priced(end));
    for (int left = 1; left <= repeat_.times; ++left) {
      std::vector<double> least;
      for (const std::vector<Arc>& arcs : arcs_) least.push_back(cheapest(arcs, left - 1));
      completion_.push_back(std::move(least));
    }
    const std::vector<double>& behind = at(completion_, repeat_.times / 2);
    const auto by_completion = [&](std::vector<Arc>& arcs) {
      std::ranges::sort(arcs, {},
                        [&](const Arc& arc) { return std::pair(arc.cost + at(behind, arc.to), arc.pattern); });
    };
    for (std::vector<Arc>& arcs : arcs_) {
      by_completion(arcs);
      // From one state the cheapest at the prices: few others are ever taken.
      arcs.resize(std::min(arcs.size(), static_cast<std::size_t>(query_.beam) * 3 / 2));
    }
    by_completion(first_);
  }

  [[nodiscard]] double cheapest(const std::vector<Arc>& arcs, int left) const {
    double least = kNever;
    for (const Arc& arc : arcs) least = std::min(least, arc.cost + at(at(completion_, left), arc.to));
    return least;
  }

  // What the mixture takes of each row in one layer.
  void make_rates() {
    rates_.assign(outside_.rows().size(), 0);
    for (std::size_t j = 0; j < relaxation_.placements.size(); ++j) {
      const Rows rows = Ledger(resources_, relaxation_.placements[j]).rows();
      for (std::size_t i = 0; i < rates_.size(); ++i) rates_[i] += relaxation_.shares[j] * rows[i];
    }
    for (std::size_t i = 0; i < rates_.size(); ++i) {
      rates_[i] = std::max(0.0, rates_[i] - outside_.rows()[i]) / repeat_.times;
    }
    credit_ = resources_.memory_worth(relaxation_.prices);
    costs_outside_ = priced(outside_.rows());
  }

  void extend(int layer) {
    const int left = repeat_.times - layer - 1;
    std::vector<std::vector<Offer>> offers(example_.size());
    const std::vector<Label>& before = labels_.back();
    for (int i = 0; i < static_cast<int>(before.size()); ++i) {
      offer_all(at(before, i), i, layer == 0 ? first_ : at(arcs_, at(before, i).state), left, offers);
    }
    labels_.push_back(chosen(before, offers));
  }

  void offer_all(const Label& label, int number, const std::vector<Arc>& arcs, int left,
                 std::vector<std::vector<Offer>>& offers) const {
    const std::vector<double>& completion = at(completion_, left);
    for (const Arc& arc : arcs) {
      if (label.cost + arc.cost + at(completion, arc.to) - credit_ >= most_) continue;
      const double projected = projected_with(label, arc, left);
      if (projected < kNever) at(offers, arc.to).push_back({number, &arc, projected});
    }
  }

  // Infinite: a row is overdrawn already.
  [[nodiscard]] double projected_with(const Label& label, const Arc& arc, int left) const {
    double period = 0;
    double overdraft = 0;
    for (int i = 0; i < resources_.rows(); ++i) {
      const double taken = at(label.rows, i) + at(arc.rows, i);
      const double projected = taken + left * at(rates_, i);
      if (resources_.is_memory(i)) {
        if (taken > 1 + kRounding) return kNever;
        overdraft += std::max(0.0, projected - 1);
      } else {
        if (taken >= most_) return kNever;
        period = std::max(period, projected / most_);
      }
    }
    return period + kOverdraftWeight * overdraft;
  }

  // The best offers of each state become labels, but for those that another is no worse than in anything.
  [[nodiscard]] std::vector<Label> chosen(const std::vector<Label>& before,
                                          std::vector<std::vector<Offer>>& offers) const {
    std::vector<Label> labels;
    for (std::vector<Offer>& of_state : offers) {
      const std::size_t kept = std::min(of_state.size(), static_cast<std::size_t>(query_.beam) * 4);
      const auto by_projection = [](const Offer& a, const Offer& b) {
        return std::tuple(a.projected, a.before, a.arc->pattern) < std::tuple(b.projected, b.before, b.arc->pattern);
      };
      std::partial_sort(of_state.begin(), of_state.begin() + static_cast<std::ptrdiff_t>(kept), of_state.end(),
                        by_projection);
      const std::size_t first = labels.size();
      for (std::size_t i = 0; i < kept && labels.size() < first + static_cast<std::size_t>(query_.beam); ++i) {
        const Offer& offer = of_state[i];
        Label label = at(before, offer.before);
        label.before = offer.before;
        label.pattern = offer.arc->pattern;
        label.state = offer.arc->to;
        label.cost += offer.arc->cost;
        for (std::size_t r = 0; r < label.rows.size(); ++r) label.rows[r] += offer.arc->rows[r];
        const auto dominates = [&](const Label& other) {
          return std::ranges::equal(other.rows, label.rows, [](double a, double b) { return a <= b + kRounding * b; });
        };
        if (std::none_of(labels.begin() + static_cast<std::ptrdiff_t>(first), labels.end(), dominates)) {
          labels.push_back(std::move(label));
        }
      }
    }
    return labels;
  }

  [[nodiscard]] std::optional<Placement> best() const {
    const std::vector<Label>& last = labels_.back();
    int best = -1;
    double least = most_;
    for (int i = 0; i < static_cast<int>(last.size()); ++i) {
      const Label& label = at(last, i);
      double period = 0;
      bool fits = true;
      for (int r = 0; r < resources_.rows(); ++r) {
        const double taken = at(label.rows, r) + at(at(ends_, label.state), r);
        if (resources_.is_memory(r)) {
          fits = fits && taken <= 1 + kRounding;
        } else {
          period = std::max(period, taken);
        }
      }
      if (!fits || period >= least) continue;
      least = period;
      best = i;
    }
    if (best < 0) return std::nullopt;
    return placement_of(best);
  }

  [[nodiscard]] Placement placement_of(int label) const {
    Placement placement = query_.incumbent;
    for (int layer = repeat_.times - 1; layer >= 0; --layer) {
      const Label& of_layer = at(at(labels_, layer + 1), label);
      const int first = repeat_.first + layer * repeat_.kernels;
      std::ranges::copy(at(patterns_, of_layer.pattern), placement.begin() + first);
      label = of_layer.before;
    }
    return placement;
  }

  const Resources& resources_;
  const Relaxation& relaxation_;
  const LayerQuery& query_;
  const Repeat repeat_;
  Ledger outside_;     // kernels that stay, and none of the layers
  double most_ = 0;    // shorter periods are of interest
  double credit_ = 0;  // what memory is worth at the prices
  double costs_outside_ = 0;
  std::vector<Placement> patterns_;
  std::vector<int> state_;    // by pattern
  std::vector<int> example_;  // by state: a pattern that leads to it
  std::vector<Arc> first_;
  std::vector<std::vector<Arc>> arcs_;  // by the state in front
  std::vector<Rows> ends_;              // by state: what kernels behind the last layer add
  std::vector<std::vector<double>> completion_;
  Rows rates_;
  std::vector<std::vector<Label>> labels_;  // behind so many layers
};

}  // namespace

std::optional<Placement> best_counts(const Resources& resources, const Relaxation& relaxation,
                                     const LayerQuery& query) {
  if (query.repeat.times < 3 || !is_chain_of_layers(resources.problem(), query.repeat)) return std::nullopt;
  return LayerSearch(resources, relaxation, query).run();
}

}  // namespace tangram::disaggregate
