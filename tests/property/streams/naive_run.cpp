#include "naive_run.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace tangram::tests {

namespace {

using namespace streams;

constexpr double kNotYet = std::numeric_limits<double>::infinity();

struct OnePass {
  int kind = 0;
  std::size_t number = 0;
  int place = 0;
  const std::vector<Segment>* segments = nullptr;
  std::vector<double> begin;  // by segment
  std::vector<double> end;
};

bool is_over(const OnePass& pass, double now) {
  return std::ranges::all_of(pass.end, [now](double end) { return end <= now; });
}

}  // namespace

Run naive_run(const Schedule& schedule) {
  Run result;
  result.busy.assign(schedule.servers.size(), 0);
  std::vector<OnePass> begun;  // oldest first
  std::vector<std::size_t> next(schedule.kinds.size(), 0);
  std::set<double> times{0};
  for (const PassKind& kind : schedule.kinds) {
    result.passes.emplace_back(static_cast<std::size_t>(kind.passes));
    times.insert(kind.arrivals.begin(), kind.arrivals.end());
  }
  while (!times.empty()) {
    const double now = *times.begin();
    times.erase(times.begin());
    for (int k = 0; k < static_cast<int>(schedule.kinds.size()); ++k) {
      const PassKind& kind = schedule.kinds[static_cast<std::size_t>(k)];
      for (int place = 0; place < kind.in_flight; ++place) {
        std::size_t& number = next[static_cast<std::size_t>(k)];
        if (number == static_cast<std::size_t>(kind.passes)) continue;
        if (!kind.arrivals.empty() && kind.arrivals[number] > now) continue;
        const bool is_taken = std::ranges::any_of(
            begun, [&](const OnePass& p) { return p.kind == k && p.place == place && !is_over(p, now); });
        if (is_taken) continue;
        const std::vector<Segment>& segments =
            kind.ways[static_cast<std::size_t>(kind.way_of(static_cast<std::int64_t>(number)))];
        const std::vector<double> open(segments.size(), kNotYet);
        begun.push_back({k, number, place, &segments, open, open});
        result.passes[static_cast<std::size_t>(k)][number].begin = now;
        ++number;
      }
    }
    for (int resource = 0; resource < static_cast<int>(schedule.servers.size()); ++resource) {
      for (int server = 0; server < schedule.servers[static_cast<std::size_t>(resource)]; ++server) {
        OnePass* chosen = nullptr;
        std::size_t segment = 0;
        bool is_busy = false;
        for (OnePass& pass : begun) {
          const std::vector<Segment>& segments = *pass.segments;
          if (pass.place % schedule.servers[static_cast<std::size_t>(resource)] != server) continue;
          for (std::size_t s = 0; s < segments.size(); ++s) {
            if (segments[s].resource != resource) continue;
            if (pass.begin[s] < kNotYet) {
              is_busy = is_busy || pass.end[s] > now;
              continue;
            }
            const bool is_ready = std::ranges::all_of(
                segments[s].after, [&](int before) { return pass.end[static_cast<std::size_t>(before)] <= now; });
            if (!is_ready || chosen != nullptr) continue;
            chosen = &pass;
            segment = s;
          }
        }
        if (is_busy || chosen == nullptr) continue;
        const double seconds = (*chosen->segments)[segment].seconds;
        chosen->begin[segment] = now;
        chosen->end[segment] = now + seconds;
        result.busy[static_cast<std::size_t>(resource)] += seconds;
        times.insert(now + seconds);
      }
    }
  }
  for (const OnePass& pass : begun) {
    const double end = *std::ranges::max_element(pass.end);
    result.passes[static_cast<std::size_t>(pass.kind)][pass.number].end = end;
    result.end = std::max(result.end, end);
  }
  return result;
}

}  // namespace tangram::tests
