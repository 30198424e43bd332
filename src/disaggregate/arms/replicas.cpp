#include "replicas.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::disaggregate {

namespace {

// Every size that a class may run.
struct Choice {
  std::size_t batch = 0;
  int requests = 0;  // on one GPU
  double rate = 0;   // of one GPU
};

std::vector<Choice> choices_of(std::span<const Batch> batches, const Terms& terms, int on) {
  std::vector<Choice> choices;
  for (std::size_t j = 0; j < batches.size(); ++j) {
    const Usage usage = alone_on(batches[j].problem, on);
    const double passes = batches[j].problem.phases.back().passes;
    if (!usage.fits || usage.period / passes > terms.token_seconds) continue;
    choices.push_back({j, batches[j].requests, batches[j].requests / usage.period});
  }
  return choices;
}

int most_requests(const Terms& terms) { return terms.most_requests > 0 ? terms.most_requests : INT32_MAX; }

}  // namespace

Usage alone_on(const Problem& problem, int on) {
  Problem alone = with_in_flight(problem, 1);
  at(alone.classes, on).count = 1;
  return usage_of(alone, Placement(problem.kernels.size(), on));
}

ReplicaPlan plan_one_gpu(std::span<const Batch> batches, const Terms& terms) {
  ReplicaPlan best;
  for (int c = 0; c < batches.front().problem.class_count(); ++c) {
    for (const Choice& choice : choices_of(batches, terms, c)) {
      if (choice.requests > most_requests(terms) || choice.rate <= best.rate) continue;
      best = {{{c, choice.batch, 1}}, choice.rate, choice.requests};
    }
  }
  return best;
}

ReplicaPlan plan_replicas(std::span<const Batch> batches, const Terms& terms) {
  std::map<int, ReplicaPlan> by_requests = {{0, {}}};  // the best plan of the classes so far
  const Problem& problem = batches.front().problem;
  for (int c = 0; c < problem.class_count(); ++c) {
    const int gpus = at(problem.classes, c).count;
    const std::map<int, ReplicaPlan> before = by_requests;
    for (const Choice& choice : choices_of(batches, terms, c)) {
      for (const auto& [requests, plan] : before) {
        const std::int64_t all = requests + std::int64_t{gpus} * choice.requests;
        if (all > most_requests(terms)) continue;
        ReplicaPlan& kept = by_requests[static_cast<int>(all)];
        const double rate = plan.rate + gpus * choice.rate;
        if (rate <= kept.rate) continue;
        kept = plan;
        kept.parts.push_back({c, choice.batch, gpus});
        kept.rate = rate;
        kept.requests = static_cast<int>(all);
      }
    }
  }
  ReplicaPlan best;
  for (const auto& [requests, plan] : by_requests) {
    if (plan.rate > best.rate) best = plan;
  }
  return best;
}

double rate_of(std::span<const Batch> batches, const ReplicaPlan& plan) {
  double rate = 0;
  for (const ReplicaPlan::Part& part : plan.parts) {
    const Batch& batch = batches[part.batch];
    rate += part.gpus * batch.requests / alone_on(batch.problem, part.on).period;
  }
  return rate;
}

}  // namespace tangram::disaggregate
