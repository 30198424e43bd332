// What is said of a launch plan as a whole, for the terminal and for pages alike.
#pragma once

#include <string>
#include <vector>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::app {

struct Sentence {
  std::string label;  ///< at most nine characters
  std::string text;
};

/// Where encoders run: "in the pipelines", or how they are laid out on all GPUs.
[[nodiscard]] std::string encoder_line(const plan::LaunchPlan& plan);

/// Options that the planner chose, and how much less time the plan takes than without: "cuda_graphs blocks -2.5 %".
[[nodiscard]] std::string options_line(const std::vector<plan::ChosenOption>& options);

/// What was planned: fleet, model, batch, islands, colocated encoders.
[[nodiscard]] std::vector<Sentence> plan_subject(const plan::LaunchPlan& plan);

/// What came of it: result, schedule, which runtimes run it, the slowest stage, the gap, what is left idle, the note.
[[nodiscard]] std::vector<Sentence> plan_outcome(const plan::LaunchPlan& plan);

}  // namespace tangram::app
