// What pipelines cost each other. Goes in: groups of pipelines that were searched apart. Comes out: their stages' A
// with the gradients reduced between all of them, and the closed form.
#pragma once

#include "tangram/ensemble/ensemble.hpp"

namespace tangram::ensemble {

/// Sets A of all stages, the closed form of every group (its own optimizer step included) and that of the whole, in
/// which all wait for the slowest before the step. A group's placements are in classes of `level`.
void price_ensemble(const model::Model& model, const cluster::IslandLevel& level, compose::Ensemble& ensemble);

}  // namespace tangram::ensemble
