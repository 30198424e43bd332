#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tangram/discrepancy/discrepancy.hpp"

namespace tangram::discrepancy {

TraitsOfRun::TraitsOfRun(const model::Model& model, std::string software) {
  traits_.software = std::move(software);
  traits_.tp = traits_.cp = traits_.ep = traits_.tokens = traits_.gpus = 0;
  traits_.sequence = static_cast<double>(model.job.sequence_length);
  traits_.hidden = static_cast<double>(model.hidden);
  traits_.blocks = static_cast<double>(model.block_count());
  traits_.parameters = model.total_parameters();
  traits_.experts = model.has_experts();
  traits_.precision = to_string(model.job.precision);
}

void TraitsOfRun::add(const std::string& gpu_type, const cost::Degrees& degrees, std::int64_t samples) {
  const double gpus = degrees.gpus();
  traits_.gpus += gpus;
  traits_.tp += gpus * std::log(degrees.tp);
  traits_.cp += gpus * std::log(degrees.cp);
  traits_.ep += gpus * std::log(degrees.ep);
  const auto most = std::max<std::int64_t>(degrees.most_samples(samples), 1);
  traits_.tokens += gpus * std::log(traits_.sequence * static_cast<double>(most));
  if (std::ranges::find(types_, gpu_type) == types_.end()) types_.push_back(gpu_type);
}

Traits TraitsOfRun::of_pipelines(double stages, std::int64_t microbatches) const {
  Traits traits = traits_;
  for (double* const mean : {&traits.tp, &traits.cp, &traits.ep, &traits.tokens}) *mean = std::exp(*mean / traits.gpus);
  traits.stages = stages;
  traits.microbatches = static_cast<double>(microbatches);
  std::vector<std::string> types = types_;
  std::ranges::sort(types);
  traits.gpu_types = fmt::format("{}", fmt::join(types, "+"));
  return traits;
}

}  // namespace tangram::discrepancy
