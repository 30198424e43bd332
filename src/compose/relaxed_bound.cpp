#include "relaxed_bound.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tangram/cost/stage.hpp"

namespace tangram::compose {

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

double bound_at(const std::vector<WorkItem>& items, const std::vector<double>& prices,
                const cluster::IslandLevel& level) {
  double work = 0;
  for (std::size_t j = 0; j < items.size(); ++j) work += items[j].count * prices[j];
  double capacity = 0;
  for (std::size_t k = 0; k < level.classes.size(); ++k) {
    double best = 0;
    for (std::size_t j = 0; j < items.size(); ++j) {
      if (items[j].count > 0 && items[j].seconds[k] > 0) best = std::max(best, prices[j] / items[j].seconds[k]);
    }
    capacity += level.classes[k].gpu_count() * best;
  }
  return capacity > 0 ? work / capacity : 0;
}

}  // namespace

Nanoseconds relaxed_bound(const model::Model& model, const cluster::IslandLevel& level,
                          const cost::ProfileSet* profiles) {
  const std::vector<WorkItem> items = work_items(model, level, profiles);
  double best = 0;
  for (std::size_t k = 0; k < level.classes.size(); ++k) {
    std::vector<double> prices;
    for (const WorkItem& item : items) prices.push_back(item.seconds[k]);
    best = std::max(best, bound_at(items, prices, level));
  }
  const double seconds = best * static_cast<double>(model.job.global_batch);
  return Nanoseconds(static_cast<std::int64_t>(std::floor(seconds * 1e9)));
}

}  // namespace tangram::compose
