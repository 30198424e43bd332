// What would make a job possible that does not fit. Goes in: the job, the islands, the target. Comes out: changes that
// were tried, each by a short search, and found to help; what does not help is not among them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/compose/search_options.hpp"
#include "tangram/model/model.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::objective {

/// Called before each change is tried, with what it is.
using RemedyCallback = std::function<void(const std::string&)>;

/// As people would write them: "--microbatch 1", "gradient_bytes_per_parameter: 2 in the model file". Single changes
/// first: techniques that are forbidden and that the target has, leaner state, a smaller microbatch; where none of them
/// is enough, some together, none of which can be left out; then the longest halved sample and the largest halved
/// batch. Empty: nothing of this helps.
[[nodiscard]] std::vector<std::string> find_remedies(runtime::Target target, const model::Model& model,
                                                     const cluster::IslandHierarchy& hierarchy,
                                                     const compose::SearchOptions& options,
                                                     const RemedyCallback& progress = {});

/// The first of the models that has a plan, by a short search of each; nullopt: none has.
[[nodiscard]] std::optional<std::size_t> first_feasible(runtime::Target target, std::span<const model::Model> models,
                                                        const cluster::IslandHierarchy& hierarchy,
                                                        const compose::SearchOptions& options);

}  // namespace tangram::objective
