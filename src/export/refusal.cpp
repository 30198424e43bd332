#include "refusal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tangram/plan/assemble.hpp"

namespace tangram::exporting {

namespace {

constexpr std::size_t kMostStagesNamed = 12;

std::string stages_text(const std::vector<int>& stages) {
  if (stages.empty()) return "";
  const std::size_t shown = std::min(stages.size(), kMostStagesNamed);
  return fmt::format(" ({} {}{})", stages.size() == 1 ? "stage" : "stages",
                     fmt::join(stages.begin(), stages.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < stages.size() ? fmt::format(" and {} more", stages.size() - shown) : "");
}

}  // namespace

void Refusals::add(const plan::TargetReason& reason) {
  Diagnostic diagnostic;
  diagnostic.kind = ErrorKind::kInfeasible;
  diagnostic.code = reason.code;
  diagnostic.message = fmt::format("{} cannot run this plan, which breaks the rule {}: {}{}", format_, reason.code,
                                   reason.text, stages_text(reason.stages));
  if (diagnostics_.empty()) diagnostic.hint = remedy_;
  diagnostics_.push_back(std::move(diagnostic));
}

Refusals refusals_of_target(const plan::LaunchPlan& plan, const std::string& target) {
  Refusals refusals(target, fmt::format("tangram plan --target {0} finds the best plan that {0} can run; the format "
                                        "generic takes every plan",
                                        target));
  for (const plan::TargetVerdict& verdict : plan::target_verdicts(plan)) {
    if (verdict.target != target) continue;
    for (const plan::TargetReason& reason : verdict.reasons) refusals.add(reason);
  }
  return refusals;
}

}  // namespace tangram::exporting
