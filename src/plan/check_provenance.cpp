// What a plan says of how good it is, against its own times: bounds are recomputed by nobody here, as a search makes
// them and the judge shares no code with it, but they must fit the times, the gaps and each other.
#include <algorithm>
#include <cmath>
#include <string>

#include "findings.hpp"

namespace tangram::plan {

namespace {

constexpr double kRounding = 1e-9;  // of a quotient that was worked out elsewhere

/// Gap of a time over a bound; 0 where there is no bound or the time is below it.
double gap_over(Nanoseconds time, Nanoseconds bound) {
  return bound > Nanoseconds(0) ? std::max(0.0, time.as_double() / bound.as_double() - 1) : 0;
}

void check_gap(double written, Nanoseconds time, Nanoseconds bound, const char* name, Findings& findings) {
  const double gap = gap_over(time, bound);
  if (std::isfinite(written) && std::abs(written - gap) <= kRounding * (1 + gap)) return;
  findings.add(
      "provenance-impossible", "provenance",
      std::string(name) + " is " + std::to_string(written) + ", its time and its bound give " + std::to_string(gap));
}

}  // namespace

void check_provenance(const LaunchPlan& plan, Findings& findings) {
  const PlanProvenance& p = plan.provenance;
  const Nanoseconds closed_form = plan.predicted.closed_form;
  const Nanoseconds iteration = plan.predicted.iteration;
  const Nanoseconds best = iteration > Nanoseconds(0) ? std::min(closed_form, iteration) : closed_form;
  check_gap(p.search_gap, closed_form, p.search_bound, "search_gap", findings);
  check_gap(p.relaxed_gap, best, p.relaxed_bound, "relaxed_gap", findings);
  const auto refuse = [&](bool broken, const std::string& message) {
    if (broken) findings.add("provenance-impossible", "provenance", message);
  };
  refuse(p.relaxed_bound > best, "relaxed_bound is above the plan's own time: it holds for every plan, this one too");
  // Pipelines that are not alike are outside of the space that search_bound speaks of.
  refuse(p.search_bound < p.relaxed_bound, "search_bound is below relaxed_bound, which holds for every plan");
  refuse(p.optimal && p.search_bound.value() == 0, "optimal without a bound");
  // The gap is of time; what is best by another objective may take longer than the bound.
  refuse(p.optimal && p.objective == "throughput" && p.search_gap > kRounding, "optimal with a gap");
  refuse(p.states < 0 || p.labels < 0, "a search has no fewer than no states and labels");
}

}  // namespace tangram::plan
