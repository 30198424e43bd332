#include "tangram/model/cuda_graphs.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "tangram/base/enum_names.hpp"
#include "tangram/model/model.hpp"

namespace tangram::model {

std::vector<std::string_view> names_of(const CudaGraphs& graphs) {
  for (const auto& [name, named] : kNamedGraphs) {
    if (graphs == named) return {name};
  }
  return names_in(kGraphModuleNames, graphs);
}

std::string to_string(const CudaGraphs& graphs) { return fmt::format("{}", fmt::join(names_of(graphs), "+")); }

bool is_partial(const CudaGraphs& graphs) { return !graphs.empty() && !graphs.has(GraphModule::kRest); }

CudaGraphs captured_modules(const Model& model) {
  CudaGraphs captured;
  const auto capture = [&](GraphModule module) {
    if (model.job.cuda_graphs.has(module)) captured.add(module);
  };
  for (const BlockType& type : model.types) {
    if (type.mixes()) capture(mixing_module(type));
    if (type.feeds_forward()) capture(feeding_module(type));
  }
  return captured;
}

GraphModule mixing_module(const BlockType& block) {
  return block.recurrence ? GraphModule::kRecurrence : GraphModule::kAttention;
}

GraphModule feeding_module(const BlockType& block) {
  return block.feed_forward.is_moe() ? GraphModule::kRouter : GraphModule::kFeedForward;
}

}  // namespace tangram::model
