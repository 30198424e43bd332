#include "end_floor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../resources.hpp"
#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

// Relaxed frontiers say the least of all their plans; whole frontiers show it.
template <class Cost>
Grid<std::int64_t> least_of(const Program& program, const Grid<std::int64_t>& said, const Cost& cost) {
  if (!said.empty()) return said;
  Grid<std::int64_t> least(program.frontiers.rows(), program.frontiers.columns(), INT64_MAX);
  for (int option = 0; option < least.rows(); ++option) {
    for (int signature = 0; signature < least.columns(); ++signature) {
      std::int64_t& here = least(option, signature);
      for (const Candidate& plan : program.frontier(option, signature)) here = std::min(here, cost(plan));
    }
  }
  return least;
}

}  // namespace

EndCosts::EndCosts(const Program& program, const SolverTuning& tuning)
    : program_(program),
      tuning_(tuning),
      forward_(least_of(program, program.least_forward, [](const Candidate& plan) { return plan.F; })),
      backward_(
          least_of(program, program.least_backward, [](const Candidate& plan) { return plan.passage() - plan.F; })) {}

EndFloor::EndFloor(const Program& program, const Grid<std::int64_t>& least, std::int64_t period, int ascent,
                   const SolverTuning& tuning)
    : program_(program), least_(least), period_(period) {
  note_hops();
  price_.assign(program.resources().size(), 0);
  option_price_.assign(program.options.size(), 0);
  if (!tuning.cuts.end_floor) {
    covered_.assign(static_cast<std::size_t>(program.blocks) + 1, 0);
    free_ = covered_;
    return;
  }
  const double unpriced = cover();
  free_ = covered_;
  if (unpriced != kNone && ascent > 0) ascend(ascent, tuning);
}

void EndFloor::note_hops() {
  std::vector<double> least;
  for (const Grid<Price>& of_kind : program_.prices) {
    double& here = least.emplace_back(kNone);
    for (const Price& price : of_kind) {
      if (price.occupancy <= period_) here = std::min(here, static_cast<double>(price.latency));
    }
  }
  hop_.assign(static_cast<std::size_t>(program_.blocks) + 1, 0);
  for (std::size_t cut = 1; cut + 1 < hop_.size(); ++cut) {
    hop_[cut] = at(least, program_.cut_kind[cut]);
  }
}

void EndFloor::price_options() {
  for (std::size_t option = 0; option < option_price_.size(); ++option) {
    option_price_[option] = option_price(program_, program_.options[option], price_);
  }
}

void EndFloor::fill_cheapest() {
  const auto signatures = static_cast<std::size_t>(program_.signatures);
  cheapest_.assign(signatures, kNone);
  chosen_.assign(signatures, -1);
  for (std::size_t option = 0; option < program_.options.size(); ++option) {
    for (std::size_t s = 0; s < signatures; ++s) {
      const std::vector<Candidate>& frontier = program_.frontiers(option, s);
      if (frontier.empty() || frontier.front().T > period_) continue;
      const double cost = static_cast<double>(least_(option, s)) + option_price_[option];
      if (cost >= cheapest_[s]) continue;
      cheapest_[s] = cost;
      chosen_[s] = static_cast<int>(option);
    }
  }
}

// Fills the table of covers at the prices; returns the cost of the whole model.
double EndFloor::cover() {
  fill_cheapest();
  const auto blocks = static_cast<std::size_t>(program_.blocks);
  covered_.assign(blocks + 1, kNone);
  last_slice_.assign(blocks + 1, 0);
  covered_[0] = 0;
  for (int left = 1; left <= program_.blocks; ++left) {
    double& best = at(covered_, left);
    for (int first = 0; first < left; ++first) {
      const double cost = at(covered_, first) + at(cheapest_, program_.signature_of(first, left));
      if (cost >= best) continue;
      best = cost;
      at(last_slice_, left) = left - first;
    }
    best += at(hop_, left);
  }
  return covered_[blocks];
}

std::vector<double> EndFloor::usage() const {
  std::vector<double> taken(price_.size(), 0);
  for (int left = program_.blocks; left > 0;) {
    const int first = left - at(last_slice_, left);
    const int option = at(chosen_, program_.signature_of(first, left));
    add_use<double>(program_, at(program_.options, option), 1, taken);
    left = first;
  }
  return taken;
}

void EndFloor::ascend(int steps, const SolverTuning& tuning) {
  const std::vector<std::int64_t> resources = program_.resources();
  std::vector<double> best_price = price_;
  double best_value = covered_.back();
  double step = tuning.first_price_step * std::max(1.0, best_value);
  for (int i = 0; i < steps; ++i) {
    const std::vector<double> taken = usage();
    double norm = 0;
    std::vector<double> excess(taken.size());
    for (std::size_t k = 0; k < taken.size(); ++k) {
      excess[k] = taken[k] / static_cast<double>(std::max<std::int64_t>(1, resources[k])) - 1.0;
      if (excess[k] > 0 || price_[k] > 0) norm += excess[k] * excess[k];
    }
    if (norm < 1e-12) break;
    for (std::size_t k = 0; k < taken.size(); ++k) {
      const auto most = static_cast<double>(std::max<std::int64_t>(1, resources[k]));
      price_[k] = std::max(0.0, price_[k] + step * excess[k] / most / std::sqrt(norm));
    }
    step *= tuning.floor_step_decay;
    price_options();
    const double value = cover() - refund(resources);
    if (value <= best_value) continue;
    best_value = value;
    best_price = price_;
  }
  price_ = best_price;
  price_options();
  cover();
}

double EndFloor::refund(std::span<const std::int64_t> left) const { return worth(price_, left); }

// Less one for the rounding of doubles.
std::int64_t EndFloor::rest(int blocks_left, double refund) const {
  const double floor = std::max(at(free_, blocks_left), at(covered_, blocks_left) - refund) - 1.0;
  return floor > 0 && floor < kNone ? static_cast<std::int64_t>(floor) : 0;
}

}  // namespace tangram::chain
