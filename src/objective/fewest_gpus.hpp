// The plan on the fewest GPUs that is fast enough. Goes in: a walk of searches, and how long an iteration may take.
// Comes out: plans on as few GPUs as were found, the fastest first, and what is proven about fewer.
//
// More GPUs than `none` are needed, and `some` are enough: what lies between is halved. A number is enough if a plan
// makes the time when simulated; it is proven to be too few where none makes it by closed form. Each GPU type is looked
// at alone first, as few GPUs are of one type more often than not, and such searches are short.
//
// Simulated times are a little below closed forms. Searches allow closed forms twice as much more than is wanted as
// simulation gained before, as what they take grows steeply with it. In the end one GPU fewer is tried with most of the
// labels that are left, and with as much more as simulation ever gains.
#pragma once

#include <cstdint>

#include "tangram/objective/objective.hpp"
#include "walk.hpp"

namespace tangram::objective {

[[nodiscard]] RequestResult fewest_gpus(const Request& request, const model::Model& model, Walk& walk);

/// So many GPUs do not make the time, by work alone.
[[nodiscard]] std::int64_t too_few_gpus(const model::Model& model, const Walk& walk, Nanoseconds longest);

}  // namespace tangram::objective
