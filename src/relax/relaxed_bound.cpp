#include "tangram/relax/relaxed_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "rate_bound.hpp"
#include "tangram/cost/stage.hpp"
#include "whole_blocks.hpp"

namespace tangram::relax {

namespace {

struct WorkItem {
  double count = 0;             // per sample
  std::vector<double> seconds;  // by class
};

std::vector<WorkItem> work_items(const model::Model& model, const cluster::IslandLevel& level,
                                 const cost::ProfileSet* profiles) {
  std::vector<WorkItem> items;
  for (std::size_t type = 0; type < model.types.size(); ++type) {
    WorkItem item;
    item.count = static_cast<double>(std::count(model.blocks.begin(), model.blocks.end(), static_cast<int>(type)));
    for (const cluster::IslandClass& c : level.classes) {
      item.seconds.push_back(cost::least_gpu_seconds(model, model.types[type], c.device, profiles));
    }
    items.push_back(std::move(item));
  }
  WorkItem head{1, {}};
  for (const cluster::IslandClass& c : level.classes) {
    head.seconds.push_back(cost::least_gpu_seconds_head(model, c.device, profiles));
  }
  items.push_back(std::move(head));
  return items;
}

// Work that one GPU of a class does at most in a second, at these prices of the items.
double most_of_gpu(const std::vector<WorkItem>& items, const std::vector<double>& prices, std::size_t k) {
  double best = 0;
  for (std::size_t j = 0; j < items.size(); ++j) {
    if (items[j].count > 0 && items[j].seconds[k] > 0) best = std::max(best, prices[j] / items[j].seconds[k]);
  }
  return best;
}

double work_at(const std::vector<WorkItem>& items, const std::vector<double>& prices) {
  double work = 0;
  for (std::size_t j = 0; j < items.size(); ++j) work += items[j].count * prices[j];
  return work;
}

double bound_at(const std::vector<WorkItem>& items, const std::vector<double>& prices,
                const cluster::IslandLevel& level) {
  double capacity = 0;
  for (std::size_t k = 0; k < level.classes.size(); ++k) {
    capacity += level.classes[k].gpu_count() * most_of_gpu(items, prices, k);
  }
  return capacity > 0 ? work_at(items, prices) / capacity : 0;
}

// GPUs that do so much work a second, those first that do the most.
double fewest_for(double work_per_second, const std::vector<WorkItem>& items, const std::vector<double>& prices,
                  const cluster::IslandLevel& level) {
  std::vector<std::pair<double, int>> classes;
  classes.reserve(level.classes.size());
  for (std::size_t k = 0; k < level.classes.size(); ++k) {
    classes.emplace_back(most_of_gpu(items, prices, k), level.classes[k].gpu_count());
  }
  std::sort(classes.rbegin(), classes.rend());
  double gpus = 0;
  for (const auto& [most, count] : classes) {
    if (most <= 0) break;
    const double needed = work_per_second / most;
    if (needed <= count) return gpus + needed;
    gpus += count;
    work_per_second -= count * most;
  }
  return std::numeric_limits<double>::infinity();
}

std::vector<double> prices_from(const std::vector<WorkItem>& items, std::size_t k) {
  std::vector<double> prices;
  prices.reserve(items.size());
  for (const WorkItem& item : items) prices.push_back(item.seconds[k]);
  return prices;
}

double work_over_speed(const model::Model& model, const cluster::IslandLevel& level, const cost::ProfileSet* profiles) {
  const std::vector<WorkItem> items = work_items(model, level, profiles);
  double best = 0;
  for (std::size_t k = 0; k < level.classes.size(); ++k) {
    best = std::max(best, bound_at(items, prices_from(items, k), level));
  }
  return best * static_cast<double>(model.job.global_batch);
}

// Where parameters are wider than gradients, no more than these count.
double gathered_share(const model::Job& job) {
  if (job.gradient_bytes <= 0) return 0;
  return std::min(1.0, cost::least_parameter_bytes(job) / static_cast<double>(job.gradient_bytes));
}

constexpr double kBelowRounding = 1 - 1e-9;  // of sums in doubles
constexpr double kMostSeconds = 9e9;         // seconds that nanoseconds can count

Nanoseconds rounded_down(double seconds) {
  return Nanoseconds(static_cast<std::int64_t>(std::floor(std::min(seconds * kBelowRounding, kMostSeconds) * 1e9)));
}

// The least part of any block's time that is its forward pass.
double forward_share(const RateProblem& problem) {
  double share = 1;
  for (const auto& own : problem.block_rates) {
    for (const BlockRate& rate : own) {
      if (rate.total() > 0) share = std::min(share, rate.forward / rate.total());
    }
  }
  return share;
}

double at_block_rates(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                      const cost::ProfileSet* profiles, const BoundTuning& tuning, int chunks, const Deadline& deadline,
                      bool zero_bubble) {
  RateProblem problem{block_rates_of(model, hierarchy, profiles, tuning),
                      {},
                      item_counts(model),
                      model.job.global_batch,
                      gathered_share(model.job),
                      tuning,
                      static_cast<double>(chunks),
                      deadline,
                      zero_bubble};
  for (const cluster::IslandClass& c : hierarchy.levels.front().classes) problem.gpus.push_back(c.gpu_count());
  const double share = zero_bubble ? forward_share(problem) : 1;
  if (share > 0) problem.chunks /= share;
  const double thin = rate_bound(problem);
  const bool goes_on = tuning.whole_blocks && share > 0 && !deadline.has_passed();
  const double seconds = goes_on ? whole_blocks_bound(problem, thin) : thin;
  return std::isfinite(seconds) ? seconds * kBelowRounding : 0;  // where nothing fits, the search says why
}

}  // namespace

Nanoseconds relaxed_bound(const model::Model& model, const cluster::IslandHierarchy& hierarchy, bool modelled,
                          const cost::ProfileSet* profiles, const BoundTuning& tuning, int chunks,
                          const Deadline& deadline, bool zero_bubble) {
  double seconds = work_over_speed(model, hierarchy.levels.front(), profiles);
  if (modelled)
    seconds = std::max(seconds, at_block_rates(model, hierarchy, profiles, tuning, chunks, deadline, zero_bubble));
  return Nanoseconds(static_cast<std::int64_t>(std::floor(seconds * 1e9)));
}

double relaxed_dollars(const model::Model& model, const cluster::IslandLevel& level, const cost::ProfileSet* profiles) {
  double dollars = 0;
  for (const WorkItem& item : work_items(model, level, profiles)) {
    double cheapest = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < level.classes.size(); ++k) {
      cheapest = std::min(cheapest, price_of(level.classes[k]).as_double() * 1e-6 * item.seconds[k] / 3600);
    }
    dollars += item.count * cheapest;
  }
  return dollars * static_cast<double>(model.job.global_batch);
}

SpeedOfMoney::SpeedOfMoney(const model::Model& model, const cluster::IslandLevel& level,
                           const cost::ProfileSet* profiles, const std::vector<std::string>& gpu_types) {
  const std::vector<WorkItem> items = work_items(model, level, profiles);
  const auto is_asked_for = [&](const cluster::IslandClass& c) {
    return gpu_types.empty() || std::ranges::find(gpu_types, c.device.name) != gpu_types.end();
  };
  for (std::size_t k = 0; k < level.classes.size(); ++k) {
    const std::vector<double> prices = prices_from(items, k);
    Pricing pricing{work_at(items, prices) * static_cast<double>(model.job.global_batch), {}};
    for (std::size_t other = 0; other < level.classes.size(); ++other) {
      const cluster::IslandClass& c = level.classes[other];
      if (!is_asked_for(c)) continue;
      const double price = std::max(1.0, price_of(c).as_double());
      pricing.offers.push_back({most_of_gpu(items, prices, other) / price, price * c.gpu_count()});
    }
    std::ranges::sort(pricing.offers, std::ranges::greater{}, &Offer::work_for_money);
    pricings_.push_back(std::move(pricing));
  }
}

Nanoseconds SpeedOfMoney::least_time(cluster::MicroDollarsPerHour most) const {
  double seconds = 0;
  for (const Pricing& pricing : pricings_) {
    double money = most.as_double();
    double work_per_second = 0;
    for (const Offer& offer : pricing.offers) {
      work_per_second += offer.work_for_money * std::min(money, offer.money);
      money -= std::min(money, offer.money);
    }
    if (pricing.work > 0) {
      seconds = std::max(seconds, work_per_second > 0 ? pricing.work / work_per_second : kMostSeconds);
    }
  }
  return rounded_down(seconds);
}

double relaxed_gpus(const model::Model& model, const cluster::IslandLevel& level, Nanoseconds time,
                    const cost::ProfileSet* profiles) {
  const std::vector<WorkItem> items = work_items(model, level, profiles);
  const double samples_per_second = static_cast<double>(model.job.global_batch) / to_seconds(time);
  double most = 0;
  for (std::size_t k = 0; k < level.classes.size(); ++k) {
    const std::vector<double> prices = prices_from(items, k);
    most = std::max(most, fewest_for(work_at(items, prices) * samples_per_second, items, prices, level));
  }
  return most;
}

}  // namespace tangram::relax
