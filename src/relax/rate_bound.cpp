#include "rate_bound.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "tangram/cost/stage.hpp"

namespace tangram::relax {

namespace {

constexpr double kLongest = 1e9;  // seconds

// Few microbatches one by one: that is where each counts. Likely numbers first: they set the mark for the others.
std::vector<Range> ranges_of(std::int64_t batch, const BoundTuning& tuning) {
  std::vector<Range> ranges;
  for (std::int64_t first = 1; first <= batch;) {
    const std::int64_t next =
        first <= tuning.single_microbatches
            ? first + 1
            : static_cast<std::int64_t>(std::ceil(static_cast<double>(first) * tuning.microbatch_step));
    ranges.push_back({first, std::min(next - 1, batch)});
    first = next;
  }
  const auto oddity = [&](const Range& r) {
    return std::pair(std::abs(std::log2(static_cast<double>(r.first) / tuning.usual_microbatches)), r.first);
  };
  std::ranges::sort(ranges, {}, oddity);
  return ranges;
}

// All but the times: block rates that are alike in it compare by these alone.
auto setting_of(const BlockRate& block_rate) {
  return std::tie(block_rate.item, block_rate.gpus, block_rate.samples, block_rate.last, block_rate.dense_span,
                  block_rate.expert_span, block_rate.dense_sync, block_rate.expert_sync);
}

// Whether a block rate takes no longer than another one of its setting, and so costs no more. Of a single number of
// samples that is so where its own times decide, not its limits: whole_stages() makes of a time t, of which r = latency
// / M is delay, r / -ln(1 - r / t). That falls where t and latency get shorter by as much, or t by more, as r <= t / 2.
bool is_no_slower(const BlockRate& a, const BlockRate& b) {
  const auto samples = static_cast<double>(a.samples);
  const bool own_times = a.forward_limit * samples <= a.forward && a.backward_limit * samples <= a.backward;
  return a.forward <= b.forward && a.backward <= b.backward && a.forward_limit <= b.forward_limit &&
         a.backward_limit <= b.backward_limit && (a.samples != a.last || own_times);
}

// Those that none of the same setting beats: the others are never best at any prices.
std::vector<BlockRate> unbeaten(const std::vector<BlockRate>& block_rates) {
  std::vector<std::size_t> order(block_rates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return setting_of(block_rates[a]) < setting_of(block_rates[b]); });
  std::vector<std::size_t> kept;
  std::size_t first = 0;  // kept of the same setting
  for (const std::size_t i : order) {
    if (!kept.empty() && setting_of(block_rates[kept.back()]) != setting_of(block_rates[i])) first = kept.size();
    const auto own = std::span(kept).subspan(first);
    if (std::ranges::any_of(own, [&](std::size_t k) { return is_no_slower(block_rates[k], block_rates[i]); })) continue;
    const auto beaten = [&](std::size_t k) { return is_no_slower(block_rates[i], block_rates[k]); };
    kept.erase(std::remove_if(kept.begin() + static_cast<std::ptrdiff_t>(first), kept.end(), beaten), kept.end());
    kept.push_back(i);
  }
  std::ranges::sort(kept);
  std::vector<BlockRate> out;
  out.reserve(kept.size());
  for (const std::size_t i : kept) out.push_back(block_rates[i]);
  return out;
}

std::vector<std::vector<BlockRate>> unbeaten_by_class(const std::vector<std::vector<BlockRate>>& block_rates) {
  std::vector<std::vector<BlockRate>> out;
  out.reserve(block_rates.size());
  for (const std::vector<BlockRate>& own : block_rates) out.push_back(unbeaten(own));
  return out;
}

// A block rate at a range of microbatches.
struct RangeRate {
  std::size_t item = 0;
  double latency = 0;      // seconds by which a block delays what comes behind it
  double gpu_seconds = 0;  // of a sample, with its part of the gradients' synchronisation
  double passage = 0;      // seconds of a microbatch on its way there and back
  double delay = 1;        // at most this share of a stage's part of the iteration delays what comes behind it
};

// Under zero bubble backward passes may all be weight gradients, for all that a block rate says.
double passage_of(const BlockRate& block_rate, const RateProblem& problem) {
  return problem.zero_bubble ? block_rate.forward : block_rate.total();
}

double latency_of(const BlockRate& block_rate, const RateProblem& problem, double share) {
  if (problem.zero_bubble) return block_rate.forward;
  return (block_rate.forward + (1 - share) * block_rate.backward) / problem.chunks;
}

// `share` of the synchronisation is counted, and that much of backward does not count as delay.
std::optional<RangeRate> rate_of(const BlockRate& block_rate, const Range& range, const RateProblem& problem,
                                 double share) {
  const std::int64_t batch = problem.batch;
  const std::int64_t most = (batch + range.first - 1) / range.first;  // of a microbatch
  if (block_rate.samples > most) return std::nullopt;
  const auto first = static_cast<double>(range.first);
  const auto last = static_cast<double>(range.last);
  const auto samples = static_cast<double>(std::min(block_rate.last, most));
  const double exposed = share * (range.first == 1 ? 0.5 : 1);
  const double hidden = exposed * (range.first <= 2 ? 1 : cost::kSyncOverlap) / first;
  const double copies = std::max(1.0, static_cast<double>(batch) / (last * samples));
  const double sync = exposed * block_rate.sync(copies) / last;
  RangeRate rate;
  rate.item = block_rate.item;
  rate.passage = passage_of(block_rate, problem);
  rate.latency = latency_of(block_rate, problem, share);
  rate.gpu_seconds = block_rate.gpu_seconds(hidden, samples) + block_rate.gpus * sync / samples;
  if (block_rate.samples == block_rate.last) {
    rate.delay = std::min(1.0, rate.latency / (block_rate.forward + (1 - hidden) * block_rate.backward + sync));
  }
  return rate;
}

// What whole stages cost less than ever thinner ones: x / -ln(1 - x), where a stage delays by the share x of what is
// left.
double whole_stages(double delay, std::int64_t microbatches) {
  const double share = delay / static_cast<double>(microbatches);
  return share < 1 ? share / -std::log1p(-share) : 0;
}

// Gains `gain` times the item's price and spends `cost` times the class's for a moment of delay, at the beginning.
struct Line {
  std::size_t island_class = 0;
  std::size_t item = 0;
  double gain = 0;
  double cost = 0;
};

// Those that are best at some ratio of prices: the upper hull over cost, from the origin to the largest gain.
void add_hull(std::vector<Line> lines, std::vector<Line>& out) {
  std::ranges::sort(lines,
                    [](const Line& a, const Line& b) { return a.cost != b.cost ? a.cost < b.cost : a.gain > b.gain; });
  std::vector<Line> hull{Line{}};
  for (const Line& line : lines) {
    if (line.gain <= hull.back().gain) continue;
    const auto is_below = [&](const Line& a, const Line& b) {
      return (b.gain - a.gain) * (line.cost - a.cost) <= (line.gain - a.gain) * (b.cost - a.cost);
    };
    while (hull.size() >= 2 && is_below(hull[hull.size() - 2], hull.back())) hull.pop_back();
    hull.push_back(line);
  }
  out.insert(out.end(), hull.begin() + 1, hull.end());
}

struct Prices {
  std::vector<double> classes;  // of a GPU
  std::vector<double> items;    // of a block
};

// What pipelines would do at some prices: they take what gains most at each moment.
struct Response {
  double gain = 0;           // seconds times price
  std::vector<double> gpus;  // by class
  std::vector<double> done;  // by item
};

// At 1/w of the iteration still to come a line gives gain - cost w: their upper envelope over w >= 1 is integrated over
// 1/w.
class Envelope {
 public:
  Envelope(const std::vector<Line>& lines, std::size_t classes, std::size_t items) : lines_(lines) {
    response_.gpus.resize(classes);
    response_.done.resize(items);
    gain_.resize(lines.size());
    cost_.resize(lines.size());
  }

  const Response& at(const Prices& prices) {
    response_.gain = 0;
    std::ranges::fill(response_.gpus, 0);
    std::ranges::fill(response_.done, 0);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      gain_[i] = lines_[i].gain * prices.items[lines_[i].item];
      cost_[i] = lines_[i].cost * prices.classes[lines_[i].island_class];
    }
    double w = 1;
    for (std::size_t line = first(); line < lines_.size();) {
      double end = gain_[line] / cost_[line];
      const std::size_t next = after(line, w, end);
      take(line, w, end);
      w = end;
      line = next;
    }
    return response_;
  }

 private:
  [[nodiscard]] std::size_t first() const {
    std::size_t best = lines_.size();
    double most = 0;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (gain_[i] - cost_[i] <= most) continue;
      most = gain_[i] - cost_[i];
      best = i;
    }
    return best;
  }

  // The line that takes over before `end`, which becomes the point where it does.
  [[nodiscard]] std::size_t after(std::size_t line, double w, double& end) const {
    std::size_t next = lines_.size();
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (cost_[i] >= cost_[line]) continue;
      // Never before w but for rounding.
      const double meet = std::max(w, (gain_[line] - gain_[i]) / (cost_[line] - cost_[i]));
      if (meet >= end) continue;
      end = meet;
      next = i;
    }
    return next;
  }

  void take(std::size_t line, double from, double to) {
    const double time = 1 / from - 1 / to;
    const double weight = std::log(to / from);
    response_.gain += gain_[line] * time - cost_[line] * weight;
    response_.done[lines_[line].item] += lines_[line].gain * time;
    response_.gpus[lines_[line].island_class] += lines_[line].cost * weight;
  }

  const std::vector<Line>& lines_;
  std::vector<double> gain_;
  std::vector<double> cost_;
  Response response_;
};

class Solver {
 public:
  explicit Solver(const RateProblem& problem)
      : problem_(problem),
        block_rates_(unbeaten_by_class(problem.block_rates)),
        batch_(static_cast<double>(problem.batch)),
        prices_(first_prices()) {}

  double run() {
    double least = kInfinity;
    for (const Range& range : ranges_of(problem_.batch, problem_.tuning)) {
      if (problem_.deadline.has_passed()) return 0;  // any of the others may be less
      least = std::min(least, bound_of(range, least));
    }
    return least;
  }

 private:
  using Rates = std::vector<std::vector<RangeRate>>;  // by class

  // Of the range; not much more than `enough` is asked for.
  double bound_of(const Range& range, double enough) {
    double best = range.first == 1 ? all_at_once() : 0;
    for (const double share : {0.5, 0.0, 1.0}) {
      if (best >= enough || range.first == 1) break;
      const Rates rates = rates_of(range, share);
      if (!are_complete(rates)) return kInfinity;
      best = std::max(best, with_fill(lines_of(rates, range.first), enough));
    }
    for (const double share : {0.0, 1.0}) {
      if (best >= enough || range.first > problem_.tuning.few_microbatches) break;
      const Rates rates = rates_of(range, share);
      if (!are_complete(rates)) return kInfinity;
      best = std::max(best, without_fill(rates));
    }
    return best;
  }

  // A single microbatch is in one stage at a time. That of the pipeline that is fastest at the reference item could run
  // all of it within the iteration, so that no pipeline has fewer GPUs a sample than the fewest that can.
  [[nodiscard]] double all_at_once() const {
    constexpr int kHalvings = 60;
    double low = 0;
    double high = 1;
    while (samples_within(high) < batch_ && high < kLongest) high *= 2;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (samples_within(middle) < batch_ ? low : high) = middle;
    }
    return low;
  }

  // Samples that all GPUs can work on at once where each must be through within `seconds`.
  [[nodiscard]] double samples_within(double seconds) const {
    double sum = 0;
    for (std::size_t k = 0; k < block_rates_.size(); ++k) {
      double most = 0;
      for (const BlockRate& block_rate : block_rates_[k]) {
        if (block_rate.item != reference_ || problem_.counts[reference_] * passage_of(block_rate, problem_) > seconds)
          continue;
        most = std::max(most, static_cast<double>(std::min(block_rate.last, problem_.batch)) / block_rate.gpus);
      }
      sum += most * problem_.gpus[k];
    }
    return sum;
  }

  [[nodiscard]] Rates rates_of(const Range& range, double share) const {
    Rates rates(block_rates_.size());
    for (std::size_t k = 0; k < rates.size(); ++k) {
      rates[k].reserve(block_rates_[k].size());
      for (const BlockRate& block_rate : block_rates_[k]) {
        if (const auto rate = rate_of(block_rate, range, problem_, share)) rates[k].push_back(*rate);
      }
    }
    return rates;
  }

  // Every item can run somewhere.
  [[nodiscard]] bool are_complete(const Rates& rates) const {
    std::vector<bool> has(problem_.counts.size(), false);
    for (const auto& own : rates) {
      for (const RangeRate& rate : own) has[rate.item] = true;
    }
    for (std::size_t j = 0; j < has.size(); ++j) {
      if (problem_.counts[j] > 0 && !has[j]) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<Line> lines_of(const Rates& rates, std::int64_t microbatches) const {
    std::vector<Line> lines;
    for (std::size_t k = 0; k < rates.size(); ++k) {
      std::vector<std::vector<Line>> by_item(problem_.counts.size());
      for (const RangeRate& rate : rates[k]) {
        if (rate.latency <= 0) return {};
        const double cost = whole_stages(rate.delay, microbatches) * rate.gpu_seconds / rate.latency;
        by_item[rate.item].push_back({k, rate.item, 1 / rate.latency, cost});
      }
      for (std::vector<Line>& own : by_item) add_hull(std::move(own), lines);
    }
    return lines;
  }

  [[nodiscard]] double spent(const Prices& prices) const {
    double sum = 0;
    for (std::size_t k = 0; k < prices.classes.size(); ++k) sum += prices.classes[k] * problem_.gpus[k];
    return sum / batch_;
  }

  [[nodiscard]] double work(const Prices& prices) const {
    double sum = 0;
    for (std::size_t j = 0; j < prices.items.size(); ++j) sum += prices.items[j] * problem_.counts[j];
    return sum;
  }

  // Any prices prove a bound; better ones are sought by steps that grow while a price goes one way and shrink when it
  // turns (Riedmiller, Braun, Rprop, ICNN 1993).
  double with_fill(const std::vector<Line>& lines, double enough) {
    const BoundTuning& tuning = problem_.tuning;
    if (lines.empty()) return 0;
    Envelope envelope(lines, problem_.gpus.size(), problem_.counts.size());
    Prices prices = prices_;
    Climb climb(prices, reference_);
    double best = 0;
    double mark = 0;
    for (int step = 0, since = 0; step < tuning.most_price_steps && since < tuning.price_patience && best < enough;
         ++step, ++since) {
      const Response& response = envelope.at(prices);
      const double bound = work(prices) / (spent(prices) + response.gain);
      if (bound > best) {
        best = bound;
        prices_ = prices;
      }
      if (best > mark * (1 + tuning.price_gain)) {
        mark = best;
        since = 0;
      }
      climb.step(prices, response, problem_, batch_, best);
    }
    return best;
  }

  // Directions and steps of all prices but the reference item's.
  class Climb {
   public:
    Climb(const Prices& prices, std::size_t reference)
        : classes_(prices.classes.size()), items_(prices.items.size()), reference_(reference) {}

    void step(Prices& prices, const Response& response, const RateProblem& problem, double batch, double bound) {
      for (std::size_t k = 0; k < classes_.size(); ++k) {
        classes_[k].move(prices.classes[k], response.gpus[k] > problem.gpus[k] / batch);
      }
      for (std::size_t j = 0; j < items_.size(); ++j) {
        if (j != reference_) items_[j].move(prices.items[j], problem.counts[j] > bound * response.done[j]);
      }
    }

   private:
    struct Step {
      double size = 0.1;
      int way = 0;
      void move(double& price, bool up) {
        const int now = up ? 1 : -1;
        if (now == -way) size *= 0.6;
        if (now == way) size = std::min(1.0, size * 1.1);
        way = now;
        price *= std::exp(now * size);
      }
    };
    std::vector<Step> classes_;
    std::vector<Step> items_;
    std::size_t reference_;
  };

  // Pipelines without fill, but no microbatch is through before the iteration ends: prices of items are taken from each
  // class in turn, and time has one too.
  [[nodiscard]] double without_fill(const Rates& rates) const {
    double best = 0;
    for (std::size_t from = 0; from < rates.size(); ++from) {
      const Prices prices = prices_from(rates, from);
      if (prices.classes.empty()) continue;
      for (const double weight : {0.0, 0.1, 0.3, 0.6, 1.0, 2.0, 4.0}) {
        const double time = weight * spent(prices);
        best = std::max(best, cheapest(rates, prices, time) / (spent(prices) + time));
      }
    }
    return best;
  }

  [[nodiscard]] double cheapest(const Rates& rates, const Prices& prices, double time) const {
    std::vector<double> least(problem_.counts.size(), kInfinity);
    for (std::size_t k = 0; k < rates.size(); ++k) {
      for (const RangeRate& rate : rates[k]) {
        least[rate.item] = std::min(least[rate.item], prices.classes[k] * rate.gpu_seconds + time * rate.passage);
      }
    }
    double sum = 0;
    for (std::size_t j = 0; j < least.size(); ++j) {
      if (problem_.counts[j] > 0) sum += problem_.counts[j] * least[j];
    }
    return sum;
  }

  // Items at what they cost on one class; classes at the most they do with a GPU at these prices. None where the class
  // cannot run them all.
  [[nodiscard]] Prices prices_from(const Rates& rates, std::size_t from) const {
    Prices prices;
    prices.items.assign(problem_.counts.size(), kInfinity);
    for (const RangeRate& rate : rates[from]) {
      prices.items[rate.item] = std::min(prices.items[rate.item], rate.gpu_seconds);
    }
    for (std::size_t j = 0; j < prices.items.size(); ++j) {
      if (problem_.counts[j] == 0) prices.items[j] = 0;
      if (!std::isfinite(prices.items[j])) return {};
    }
    for (const auto& own : rates) {
      double most = 0;
      for (const RangeRate& rate : own) most = std::max(most, prices.items[rate.item] / rate.gpu_seconds);
      prices.classes.push_back(most);
    }
    return prices;
  }

  // To begin with: as of the class that does most.
  [[nodiscard]] Prices first_prices() {
    const Rates rates = rates_of({1, 1}, 0);
    Prices best;
    double most = 0;
    for (std::size_t k = 0; k < rates.size(); ++k) {
      Prices prices = prices_from(rates, k);
      if (prices.classes.empty()) continue;
      const double share = prices.classes[k] * problem_.gpus[k] / (spent(prices) * batch_);
      if (share <= most) continue;
      most = share;
      best = std::move(prices);
    }
    if (best.classes.empty()) {
      best.classes.assign(problem_.gpus.size(), 1);
      best.items.assign(problem_.counts.size(), 1);
    }
    for (std::size_t j = 0; j < best.items.size(); ++j) {
      const auto share = [&](std::size_t item) { return best.items[item] * problem_.counts[item]; };
      if (share(j) > share(reference_)) reference_ = j;
    }
    return best;
  }

  const RateProblem& problem_;
  std::vector<std::vector<BlockRate>> block_rates_;  // by class
  double batch_;
  std::size_t reference_ = 0;
  Prices prices_;
};

}  // namespace

double rate_bound(const RateProblem& problem) { return Solver(problem).run(); }

}  // namespace tangram::relax
