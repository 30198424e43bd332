// How many micro-batches must be in flight before a placement reaches its bound: an 8B model on an A100 and an L40S.
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "tables.hpp"
#include "tangram/base/at.hpp"
#include "tangram/streams/streams.hpp"

using namespace tangram;
using namespace tangram::tests;

namespace {

// So many layers as a pattern says: 0 is the A100.
struct Layers {
  std::string pattern;
  int count = 0;
};

// A placement as one chain of segments, a hop before each change of the GPU; the residual stream rides along. Kernels
// next to each other are one segment.
class Chain {
 public:
  Chain(const disaggregate::Problem& layer, const disaggregate::Link& link, const std::vector<Layers>& layers) {
    for (const Layers& some : layers) {
      for (int i = 0; i < some.count; ++i) add_layer(layer, link, some.pattern);
    }
  }
  [[nodiscard]] const std::vector<streams::Segment>& segments() const { return segments_; }

 private:
  void add_layer(const disaggregate::Problem& layer, const disaggregate::Link& link, const std::string& pattern) {
    for (int k = 0; k < 9; ++k) {
      const int on = at(pattern, k) - '0';
      if (last_ >= 0 && on != last_) {
        add(2 + last_, link.seconds(bytes_written(layer, (k + 8) % 9)) + 2 * link.gpu_seconds);
      }
      add(on, at(at(layer.kernels, k).seconds, on));
      last_ = on;
    }
  }

  static double bytes_written(const disaggregate::Problem& layer, int kernel) {
    for (const disaggregate::Buffer& buffer : layer.buffers) {
      if (buffer.writer == kernel) return buffer.bytes;
    }
    return 0;
  }

  void add(int resource, double seconds) {
    if (!segments_.empty() && segments_.back().resource == resource) {
      segments_.back().seconds += seconds;
      return;
    }
    const int before = static_cast<int>(segments_.size()) - 1;
    segments_.push_back({resource, seconds, before < 0 ? std::vector<int>{} : std::vector<int>{before}});
  }

  std::vector<streams::Segment> segments_;
  int last_ = -1;
};

struct Flight {
  std::string phase;
  int requests = 0;
  std::vector<Layers> layers;
  std::vector<double> over_replicas;  // 1, 2, 3, 4, 6, 8 in flight
};

const std::vector<Flight>& flights() {
  static const std::vector<Flight> kFlights = {
      {"decode",
       32,
       {{"111100000", 1}, {"001100000", 27}, {"000000000", 4}},
       {0.505, 0.904, 0.928, 0.957, 1.022, 1.060}},
      {"decode", 8, {{"111111011", 9}, {"111111000", 23}}, {0.524, 0.896, 1.000, 1.002, 1.016, 1.023}},
      {"prefill",
       4,
       {{"000110111", 14}, {"000110000", 17}, {"000111111", 1}},
       {0.349, 0.542, 0.715, 0.713, 0.758, 0.775}},
  };
  return kFlights;
}

}  // namespace

TEST_CASE("disaggregate in flight: forty passes over replicas, the oldest first") {
  const std::vector<int> in_flight = {1, 2, 3, 4, 6, 8};
  for (const Flight& row : flights()) {
    const disaggregate::Problem problem = model_problem({.phase = row.phase, .requests = row.requests});
    const Chain chain(problem, kInfiniBand, row.layers);
    for (std::size_t i = 0; i < in_flight.size(); ++i) {
      INFO(row.phase << ' ' << row.requests << ", " << in_flight[i] << " in flight");
      const int passes = 40 + in_flight[i];  // the last ones are still under way when 40 have ended
      const streams::Run run = streams::run({{1, 1, 1, 1}, {{{chain.segments()}, in_flight[i], passes, {}}}});
      CHECK(replica_period(problem) / run.period(0) == Approx(row.over_replicas[i]).margin(0.005));
    }
  }
}

TEST_CASE("disaggregate in flight: over a thousand passes no rate is above what the busiest GPU allows") {
  // Eight in flight, over replicas. Forty passes are too few: the oldest first, they end in clusters, and the last of
  // these may be complete by chance, as in the first row above.
  const std::vector<double> eight = {1.046, 1.065, 0.792};
  for (std::size_t i = 0; i < eight.size(); ++i) {
    const Flight& row = flights()[i];
    const disaggregate::Problem problem = model_problem({.phase = row.phase, .requests = row.requests});
    const Chain chain(problem, kInfiniBand, row.layers);
    const streams::Run run = streams::run({{1, 1, 1, 1}, {{{chain.segments()}, 8, 1000, {}}}});
    const double rate = 1000 / run.end;
    INFO(row.phase << ' ' << row.requests);
    CHECK(rate <= 1000 / *std::ranges::max_element(run.busy));
    CHECK(replica_period(problem) * rate == Approx(eight[i]).margin(0.0005));
  }
}
