#include "tangram/disaggregate/serving.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::disaggregate {

namespace {

struct Decoding {
  std::size_t request = 0;
  int generated = 0;
};

struct Arriving {
  double time = 0;  // when its cache is there
  std::size_t request = 0;
};

struct Engine {
  double now = 0;
  std::deque<std::size_t> prefills;  // requests
  std::deque<Arriving> decodes;      // prefilled elsewhere
  std::vector<Decoding> running;
};

// What a monitor knows: ratios of prefills that have ended.
struct Ratio {
  double time = 0;
  double value = 0;
};

class Serving {
 public:
  Serving(std::span<const Request> requests, const ServingModel& model, ServingMode mode,
          std::optional<MonitorRule> rule)
      : requests_(requests), model_(model), mode_(mode), rule_(rule) {
    served_.seconds_per_token.assign(requests.size(), 0);
  }

  Served run() {
    while (done_ < requests_.size()) {
      const int next = engines_[0].now <= engines_[1].now ? 0 : 1;
      const double now = engines_[static_cast<std::size_t>(next)].now;
      take_arrivals(now);
      if (rule_) decide(now);
      if (!step(next)) wait(next);
    }
    return std::move(served_);
  }

 private:
  void take_arrivals(double now) {
    for (; arrived_ < requests_.size() && requests_[arrived_].arrival <= now; ++arrived_) {
      engines_[static_cast<std::size_t>(prefill_gpu())].prefills.push_back(arrived_);
    }
  }

  [[nodiscard]] int prefill_gpu() const {
    if (mode_ == ServingMode::kOneGpu) return 0;
    if (mode_ == ServingMode::kPrefillDecode) return 1;
    const auto load = [&](int gpu) {
      const Engine& engine = at(engines_, gpu);
      const ServingGpu& of = at(model_.gpus, gpu);
      const double queue = 1.0 + static_cast<double>(engine.prefills.size() + engine.running.size());
      return queue * of.decode.at(1, of.decode.contexts.front());
    };
    return load(0) <= load(1) ? 0 : 1;
  }

  // False: there is nothing to do yet.
  bool step(int gpu) {
    if (prefill(gpu)) return true;
    Engine& engine = at(engines_, gpu);
    while (!engine.decodes.empty() && engine.decodes.front().time <= engine.now && has_room(engine)) {
      engine.running.push_back({engine.decodes.front().request, 1});
      engine.decodes.pop_front();
    }
    if (engine.running.empty()) return false;
    decode(gpu);
    return true;
  }

  [[nodiscard]] bool has_room(const Engine& engine) const {
    return static_cast<int>(engine.running.size()) < model_.most_requests;
  }

  bool prefill(int gpu) {
    Engine& engine = at(engines_, gpu);
    std::vector<std::size_t> taken;
    int tokens = 0;
    const int room = model_.most_requests - static_cast<int>(engine.running.size());
    while (!engine.prefills.empty() && static_cast<int>(taken.size()) < room) {
      const int prompt = requests_[engine.prefills.front()].prompt;
      if (tokens > 0 && tokens + prompt > model_.most_prefill_tokens) break;
      tokens += prompt;
      taken.push_back(engine.prefills.front());
      engine.prefills.pop_front();
    }
    if (taken.empty()) return false;
    engine.now += tokens * at(model_.gpus, gpu).prefill_seconds_per_token;
    for (const std::size_t r : taken) end_prefill(gpu, r);
    return true;
  }

  void end_prefill(int gpu, std::size_t number) {
    Engine& engine = at(engines_, gpu);
    const Request& request = requests_[number];
    const double execution = request.prompt * at(model_.gpus, gpu).prefill_seconds_per_token;
    ratios_.push_back({engine.now, (engine.now - request.arrival) / execution});
    if (request.generated <= 1) return finish(number, engine.now);
    if (mode_ == ServingMode::kReplicas || gpu == 0) {
      engine.running.push_back({number, 1});
    } else {
      at(engines_, 0).decodes.push_back({engine.now + request.prompt * model_.cache_seconds_per_token, number});
    }
  }

  void decode(int gpu) {
    Engine& engine = at(engines_, gpu);
    double context = 0;
    for (const Decoding& d : engine.running) context += requests_[d.request].prompt + d.generated;
    const auto batch = static_cast<double>(engine.running.size());
    engine.now += at(model_.gpus, gpu).decode.at(batch, context / batch);
    for (Decoding& d : engine.running) {
      if (++d.generated >= requests_[d.request].generated) finish(d.request, engine.now);
    }
    std::erase_if(engine.running, [&](const Decoding& d) { return d.generated >= requests_[d.request].generated; });
  }

  void finish(std::size_t request, double now) {
    const Request& of = requests_[request];
    served_.seconds_per_token[request] = (now - of.arrival) / std::max(1, of.generated);
    ++done_;
  }

  // Until the next thing that can happen.
  void wait(int gpu) {
    Engine& engine = at(engines_, gpu);
    double next = std::numeric_limits<double>::infinity();
    if (arrived_ < requests_.size()) next = std::min(next, requests_[arrived_].arrival);
    if (!engine.decodes.empty()) next = std::min(next, engine.decodes.front().time);
    const double other = at(engines_, 1 - gpu).now;
    if (other > engine.now) next = std::min(next, other);
    constexpr double kSoon = 1e-3;  // both stand at one time: the other one goes on
    engine.now = next > engine.now && next < std::numeric_limits<double>::infinity() ? next : engine.now + kSoon;
  }

  void decide(double now) {
    if (now - decided_ < rule_->window) return;
    decided_ = now;
    while (!ratios_.empty() && ratios_.front().time <= now - rule_->window) ratios_.pop_front();
    double sum = 0;
    int count = 0;
    for (const Ratio& ratio : ratios_) {
      if (ratio.time > now) continue;  // of the GPU that is ahead
      sum += ratio.value;
      ++count;
    }
    for (const Engine& engine : engines_) {
      for (const std::size_t r : engine.prefills) {
        const double execution = requests_[r].prompt * model_.gpus[0].prefill_seconds_per_token;
        sum += (now - requests_[r].arrival + execution) / execution;
        ++count;
      }
    }
    if (count > 0) follow(sum / count, now);
  }

  void follow(double ratio, double now) {
    ServingMode wanted = mode_;
    if (ratio >= rule_->up) {
      wanted = rule_->high_load;
    } else if (ratio <= rule_->down) {
      wanted = rule_->low_load;
    }
    if (wanted == mode_ || now - switched_ < rule_->least_stay) return;
    mode_ = wanted;
    switched_ = now;
    ++served_.switches;
  }

  std::span<const Request> requests_;
  const ServingModel& model_;
  ServingMode mode_;
  std::optional<MonitorRule> rule_;
  std::array<Engine, 2> engines_;
  std::deque<Ratio> ratios_;
  std::size_t arrived_ = 0;
  std::size_t done_ = 0;
  double decided_ = 0;
  double switched_ = -std::numeric_limits<double>::infinity();
  Served served_;
};

// Where a number lies among ascending ones: the one below and how far on to the next.
struct Between {
  int below = 0;
  double share = 0;
};

Between between(const std::vector<double>& axis, double value) {
  if (value <= axis.front()) return {0, 0};
  if (value >= axis.back()) return {static_cast<int>(axis.size()) - 1, 0};
  const auto above = std::ranges::upper_bound(axis, value) - axis.begin();
  const double low = axis[static_cast<std::size_t>(above - 1)];
  return {static_cast<int>(above) - 1, (value - low) / (axis[static_cast<std::size_t>(above)] - low)};
}

double oracle_of(std::span<const Request> requests, const std::vector<Served>& statics, double window) {
  double sum = 0;
  for (std::size_t first = 0; first < requests.size();) {
    std::size_t last = first;
    const double end = requests[first].arrival + window;
    while (last < requests.size() && requests[last].arrival < end) ++last;
    double least = std::numeric_limits<double>::infinity();
    for (const Served& served : statics) {
      const auto begin = served.seconds_per_token.begin();
      least = std::min(least, std::accumulate(begin + static_cast<std::ptrdiff_t>(first),
                                              begin + static_cast<std::ptrdiff_t>(last), 0.0));
    }
    sum += least;
    first = last;
  }
  return requests.empty() ? 0 : sum / static_cast<double>(requests.size());
}

}  // namespace

double StepTable::at(double batch, double context) const {
  const Between row = between(requests, batch);
  const Between column = between(contexts, context);
  const auto cell = [&](int i, int j) {
    return seconds(std::min(i, seconds.rows() - 1), std::min(j, seconds.columns() - 1));
  };
  const auto along = [&](int i) {
    return (1 - column.share) * cell(i, column.below) + column.share * cell(i, column.below + 1);
  };
  return (1 - row.share) * along(row.below) + row.share * along(row.below + 1);
}

double Served::mean() const {
  if (seconds_per_token.empty()) return 0;
  return std::accumulate(seconds_per_token.begin(), seconds_per_token.end(), 0.0) /
         static_cast<double>(seconds_per_token.size());
}

Served serve(std::span<const Request> requests, const ServingModel& model, ServingMode mode) {
  return Serving(requests, model, mode, std::nullopt).run();
}

Served serve(std::span<const Request> requests, const ServingModel& model, const MonitorRule& rule) {
  TANGRAM_ASSERT(rule.down <= rule.up && rule.window > 0);
  return Serving(requests, model, rule.low_load, rule).run();
}

Adaptation judge(std::span<const Request> requests, const ServingModel& model, const MonitorRule& rule) {
  Adaptation result;
  std::vector<Served> statics;
  for (int m = 0; m < kServingModeCount; ++m) {
    statics.push_back(serve(requests, model, static_cast<ServingMode>(m)));
    at(result.statics, m) = statics.back().mean();
    if (at(result.statics, m) < at(result.statics, result.best)) result.best = static_cast<ServingMode>(m);
  }
  result.oracle = oracle_of(requests, statics, rule.window);
  const Served monitored = serve(requests, model, rule);
  result.monitor = monitored.mean();
  result.switches = monitored.switches;
  return result;
}

}  // namespace tangram::disaggregate
