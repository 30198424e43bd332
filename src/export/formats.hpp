// One function per format. Goes in: a plan. Comes out: its files, or why not.
#pragma once

#include "tangram/export/export.hpp"

namespace tangram::exporting {

[[nodiscard]] Expected<Export> export_generic(const plan::LaunchPlan& plan);
[[nodiscard]] Expected<Export> export_megatron(const plan::LaunchPlan& plan);
[[nodiscard]] Expected<Export> export_flagscale(const plan::LaunchPlan& plan);

}  // namespace tangram::exporting
