// The drawings of a plan's page.
#pragma once

#include "plan_picture.hpp"
#include "tangram/picture/markup.hpp"

namespace tangram::app {

/// Each pipeline that differs: stages with GPUs, hosts, layers, degrees and memory, and what goes from one to the next.
[[nodiscard]] picture::Markup plan_diagram(const PlanPicture& picture);

/// One iteration of these pipelines; or why there is none.
[[nodiscard]] picture::Markup plan_timeline(const PlanPicture& picture);

}  // namespace tangram::app
