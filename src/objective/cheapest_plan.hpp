// The plan of the least money per token. Goes in: a walk of searches, and how long an iteration may take. Comes out:
// the cheapest plans that were found, and what is proven about those that were not.
//
// With C the least cost so far, a plan of more than r dollars an hour is cheaper only within C / r. So windows of rates
// (r, R] are searched for plans that spend no more than R and take less than C / r, unless work over speed rules them
// out. What a window gives is the fastest plan that spends R at most, in t: what spends C / t or more is no cheaper,
// and the next window ends below. A window that is searched to its end holds nothing cheaper by closed form.
//
// The better C is from the start, the less there is to search: each GPU type is looked at alone first, as few GPUs of
// one type, without pipelines over slow links, are cheap more often than not. Where windows stay open, so are pairs.
#pragma once

#include "tangram/objective/objective.hpp"
#include "walk.hpp"

namespace tangram::objective {

[[nodiscard]] RequestResult cheapest_plan(const Request& request, const model::Model& model, Walk& walk);

}  // namespace tangram::objective
