// For any program that reads the plan itself: the plan, who runs where, and scripts that start it.
#include "formats.hpp"
#include "scripts.hpp"

namespace tangram::exporting {

Launch generic_launch(const plan::LaunchPlan& plan) { return {plan::plan_order(plan), {}}; }

Expected<Export> export_generic(const plan::LaunchPlan& plan) {
  const plan::LaunchOrder order = generic_launch(plan).order;
  Export out;
  out.files = plan_files(plan, order);
  const Program program{"PROGRAM.py [ARGUMENT...]",
                        "here=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" && pwd)\n"
                        "export TANGRAM_PLAN=$here/plan.json TANGRAM_RANKMAP=$here/rankmap.csv\n",
                        "\"$@\""};
  for (File& file : start_scripts(plan, order, {}, program)) out.files.push_back(std::move(file));
  out.notes.emplace_back("run nodes/HOST.sh PROGRAM.py on every host; the program finds the plan in $TANGRAM_PLAN");
  return out;
}

}  // namespace tangram::exporting
