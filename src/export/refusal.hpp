// Rules of a format as errors. Goes in: broken rules. Comes out: diagnostics with code, stages and remedy.
#pragma once

#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::exporting {

/// Collects what a format cannot say.
class Refusals {
 public:
  Refusals(std::string format, std::string remedy) : format_(std::move(format)), remedy_(std::move(remedy)) {}

  void add(const plan::TargetReason& reason);
  void add(std::string code, std::vector<int> stages, std::string text) {
    add(plan::TargetReason{std::move(code), std::move(stages), std::move(text)});
  }
  /// Refuses when `broken(stage)` holds for any stage of the plan.
  template <class Broken>
  void none(const plan::LaunchPlan& plan, Broken broken, std::string code, std::string text) {
    std::vector<int> found;
    for (const plan::Stage& stage : plan.stages) {
      if (broken(stage)) found.push_back(stage.id);
    }
    if (!found.empty()) add(std::move(code), std::move(found), std::move(text));
  }

  [[nodiscard]] bool empty() const { return diagnostics_.empty(); }
  [[nodiscard]] tl::unexpected<Diagnostics> fail() && { return tangram::fail(std::move(diagnostics_)); }

 private:
  std::string format_;
  std::string remedy_;
  Diagnostics diagnostics_;
};

/// The rules of a target of the launch plan, judged anew.
[[nodiscard]] Refusals refusals_of_target(const plan::LaunchPlan& plan, const std::string& target);

}  // namespace tangram::exporting
