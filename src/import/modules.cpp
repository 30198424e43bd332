#include "modules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "limits.hpp"
#include "megatron_job.hpp"
#include "tangram/base/at.hpp"
#include "tangram/model/split.hpp"

namespace tangram::importing {

namespace {

cost::MemoryPolicy policy_of(const JobModule& module, std::int64_t layers) {
  cost::MemoryPolicy policy;
  policy.zero = module.dp > 1 ? 1 : 0;  // the distributed optimizer is mandatory
  policy.recompute = module.recompute;
  const std::int64_t most = module.recompute_layers > 0 ? std::min(module.recompute_layers, layers) : layers;
  policy.recompute_layers = module.recompute == cost::RecomputeMode::kFull ? static_cast<int>(most) : 0;
  return policy;
}

JobStage stage_of(const JobModule& module, std::int64_t first, std::int64_t last, std::int64_t microbatch) {
  JobStage stage;
  stage.first = first;
  stage.last = last;
  stage.common.etp = static_cast<int>(module.etp);
  stage.common.sequence_parallel = module.sequence_parallel;
  stage.policy = policy_of(module, last - first);
  stage.replicas.assign(static_cast<std::size_t>(module.dp), replica_of(module.tp, 1, microbatch / module.dp));
  stage.place = module.place;
  return stage;
}

/// Of each stage of the language model.
std::vector<std::int64_t> layers_of(const JobModule& module, std::int64_t layers, Diagnostics& wrong) {
  if (!module.layers.empty()) return module.layers;
  if (layers % module.pp != 0) {
    wrong.push_back(at(module.place, "layers-do-not-divide",
                       fmt::format("{} layers cannot be split evenly over pp {}", layers, module.pp),
                       "language.pipeline_model_parallel_layout says which stage has which"));
  }
  return std::vector<std::int64_t>(static_cast<std::size_t>(module.pp), layers / module.pp);
}

/// The model's encoders and the language model, as the chain has them.
std::vector<std::string> names_of(const model::Model& model) {
  std::vector<std::string> names;
  for (std::size_t e = 0; e < model::encoder_ranges(model).size(); ++e) {
    names.push_back(model::encoder_name(model, static_cast<int>(e)));
  }
  names.emplace_back(kLanguageModule);
  return names;
}

Diagnostics unlike(const Job& job, const std::vector<std::string>& names) {
  Diagnostics wrong;
  for (const JobModule& module : job.modules) {
    if (std::ranges::find(names, module.name) != names.end()) continue;
    wrong.push_back(at(module.place, "unknown-module", fmt::format("the model has no module \"{}\"", module.name),
                       fmt::format("its modules: {}", fmt::join(names, ", "))));
  }
  for (const std::string& name : names) {
    if (std::ranges::find(job.modules, name, &JobModule::name) != job.modules.end()) continue;
    wrong.push_back(at(job.modules.front().place, "missing-module", fmt::format("no component is of {}", name)));
  }
  return wrong;
}

}  // namespace

Diagnostics stages_of_modules(Job& job, const model::Model& model) {
  const std::vector<std::string> names = names_of(model);
  Diagnostics wrong = unlike(job, names);
  if (!wrong.empty()) return wrong;
  JobPipeline pipeline;
  pipeline.microbatch = job.microbatch;
  pipeline.microbatches = *job.overrides.global_batch / job.microbatch;
  const std::vector<model::BlockRange> encoders = model::encoder_ranges(model);
  for (std::size_t m = 0; m < names.size(); ++m) {
    const JobModule& module = *std::ranges::find(job.modules, names[m], &JobModule::name);
    if (m < encoders.size()) {
      pipeline.stages.push_back(stage_of(module, encoders[m].first, encoders[m].last, job.microbatch));
    } else {
      std::int64_t first = encoders.empty() ? 0 : encoders.back().last;
      for (const std::int64_t layers : layers_of(module, model.block_count() - first, wrong)) {
        pipeline.stages.push_back(stage_of(module, first, first + layers, job.microbatch));
        first += layers;
      }
    }
    std::vector<int> own(static_cast<std::size_t>(module.ranks()));
    std::iota(own.begin(), own.end(), static_cast<int>(module.offset));
    job.gpu_order.insert(job.gpu_order.end(), own.begin(), own.end());
  }
  job.pipelines = {std::move(pipeline)};
  return wrong;
}

}  // namespace tangram::importing
