#include "numbers.hpp"

#include <algorithm>
#include <ostream>

namespace tangram::simulate {

Numbers::Numbers(std::size_t stages) : f(stages), w(stages), c(stages), busy(stages), g(stages), o(stages), n(stages) {
  for (std::size_t s = 0; s < stages; ++s) n[s] = static_cast<Int>(stages - s);  // the classic warm-up
}

std::ostream& operator<<(std::ostream& out, const Numbers& p) {
  const auto row = [&out](const char* name, const std::vector<Int>& values) {
    out << ' ' << name;
    for (const Int value : values) out << ' ' << value;
  };
  out << "M " << p.M;
  row("f", p.f);
  row("w", p.w);
  row("c", p.c);
  row("busy", p.busy);
  row("g", p.g);
  row("o", p.o);
  row("n", p.n);
  return out;
}

SimPipeline pipeline_of(const Numbers& p) {
  SimPipeline pipeline;
  pipeline.microbatches = p.M;
  for (std::size_t s = 0; s < p.size(); ++s) {
    SimStage stage;
    stage.parts.push_back({Nanoseconds(p.f[s]), Nanoseconds(p.w[s]), Nanoseconds(p.g[s]), Nanoseconds(p.o[s])});
    stage.warmup = p.n[s] - 1;
    stage.latency = Nanoseconds(p.c[s]);
    stage.occupancy = Nanoseconds(p.busy[s]);
    pipeline.stages.push_back(stage);
  }
  return pipeline;
}

Int max_of(const std::vector<Int>& values) { return *std::max_element(values.begin(), values.end()); }

Int period(const Numbers& p) {
  Int P = 0;
  for (std::size_t s = 0; s < p.size(); ++s) {
    P = std::max(P, p.T(s));
    if (s + 1 < p.size()) P = std::max(P, p.busy[s]);
  }
  return P;
}

Int latency(const Numbers& p) {
  Int sum = 0;
  for (std::size_t s = 0; s < p.size(); ++s) sum += p.T(s) + (s + 1 < p.size() ? 2 * p.c[s] : 0);
  return sum;
}

Int form(const Numbers& p, Int P) { return latency(p) + (p.M - 1) * P; }

Int exposed_tail(const Numbers& p) {
  Int tail = 0, hidden = 0;
  for (std::size_t s = 0; s < p.size(); ++s) {
    tail = std::max(tail, p.g[s] - hidden);
    hidden += p.w[s] + p.c[s];
  }
  return tail;
}

void set_in_flight(Numbers& p, Int P) {
  Int n = 0, Q = 0;
  for (std::size_t s = p.size(); s-- > 0;) {
    const Int x = p.T(s) + (s + 1 < p.size() ? 2 * p.c[s] + Q : 0);
    n = std::max(n + 1, (x + P - 1) / P);
    Q = std::max(P * (n - 1) + p.T(s), x);
    p.n[s] = n;
  }
}

Int corrected_form(const Numbers& p, Int P) {
  Int best = 0, before = 0, slowest_f = 0, slowest_w = 0;
  for (std::size_t t = 0; t < p.size(); ++t) {
    before += p.T(t) + (t > 0 ? 2 * p.c[t - 1] : 0);
    const Int link = t > 0 ? p.busy[t - 1] : 0;
    slowest_f = std::max({slowest_f, p.f[t], link});
    slowest_w = std::max({slowest_w, p.w[t], link});
    const Int W = std::min(p.n[t] - 1, p.M - 1);
    best = std::max(best, before + W * (slowest_f + slowest_w) + (p.M - 1 - W) * P);
  }
  return best;
}

LowerBounds lower_bounds(const Numbers& p) {
  LowerBounds bounds{latency(p), 0};
  Int upstream_T = 0, upstream_f = 0;
  for (std::size_t k = 0; k < p.size(); ++k) {
    bounds.backward = std::max(bounds.backward, p.M * p.T(k) + upstream_T);
    bounds.sync = std::max(bounds.sync, p.M * p.T(k) + upstream_f + p.g[k]);
    upstream_T += p.T(k) + 2 * p.c[k];
    upstream_f += p.f[k] + p.c[k];
  }
  return bounds;
}

}  // namespace tangram::simulate
