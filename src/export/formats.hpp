// One function per format. Goes in: a plan. Comes out: its files, or why not.
#pragma once

#include <map>
#include <string>

#include "tangram/export/export.hpp"
#include "tangram/plan/launch_order.hpp"

namespace tangram::exporting {

/// What wrappers need of the program they start: order of ranks and environment.
struct Launch {
  plan::LaunchOrder order;
  std::map<std::string, std::string> environment;
};
[[nodiscard]] Launch generic_launch(const plan::LaunchPlan& plan);
[[nodiscard]] Launch megatron_launch(const plan::LaunchPlan& plan);
[[nodiscard]] Launch torch_launch(const plan::LaunchPlan& plan);

[[nodiscard]] Expected<Export> export_generic(const plan::LaunchPlan& plan);
[[nodiscard]] Expected<Export> export_torch(const plan::LaunchPlan& plan);
[[nodiscard]] Expected<Export> export_megatron(const plan::LaunchPlan& plan);
[[nodiscard]] Expected<Export> export_mimo(const plan::LaunchPlan& plan);
[[nodiscard]] Expected<Export> export_flagscale(const plan::LaunchPlan& plan);
[[nodiscard]] Expected<Export> export_slurm(const plan::LaunchPlan& plan, const Options& options);
[[nodiscard]] Expected<Export> export_kubernetes(const plan::LaunchPlan& plan, const Options& options);
[[nodiscard]] Expected<Export> export_sailor(const plan::LaunchPlan& plan);
[[nodiscard]] Expected<Export> export_flashflex(const plan::LaunchPlan& plan);
[[nodiscard]] Expected<Export> export_galvatron(const plan::LaunchPlan& plan);

}  // namespace tangram::exporting
