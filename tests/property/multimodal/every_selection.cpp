#include "every_selection.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/multimodal/closed_form.hpp"

namespace tangram::tests {

using multimodal::Choice;
using multimodal::JoinProblem;
using multimodal::Selection;
using multimodal::SharedSelection;
using multimodal::ShareProblem;

std::optional<std::int64_t> fastest_of_all(const JoinProblem& problem) {
  std::optional<std::int64_t> best;
  Selection selection;
  const std::function<void(std::vector<int>)> pick_next = [&](std::vector<int> left) {
    if (std::ranges::any_of(left, [](int units) { return units < 0; })) return;
    const std::size_t encoder = selection.encoders.size();
    const auto take = [&](const Choice& choice) {
      std::vector<int> rest = left;
      for (std::size_t c = 0; c < rest.size(); ++c) rest[c] -= choice.units[c];
      pick_next(std::move(rest));
    };
    if (encoder < problem.encoders.size()) {
      for (std::size_t i = 0; i < problem.encoders[encoder].choices.size(); ++i) {
        selection.encoders.push_back(static_cast<int>(i));
        take(problem.encoders[encoder].choices[i]);
        selection.encoders.pop_back();
      }
      return;
    }
    const auto form = closed_form(graph_of(problem, selection));
    if (form && (!best || form->time < *best)) best = form->time;
  };
  for (std::size_t i = 0; i < problem.language.size(); ++i) {
    selection.language = static_cast<int>(i);
    std::vector<int> left = problem.inventory;
    for (std::size_t c = 0; c < left.size(); ++c) left[c] -= problem.language[i].units[c];
    pick_next(std::move(left));
  }
  return best;
}

std::optional<std::int64_t> fastest_of_all(const ShareProblem& problem) {
  std::optional<std::int64_t> best;
  const std::function<void(SharedSelection&)> pick_next = [&](SharedSelection& selection) {
    const int encoder = static_cast<int>(selection.layouts.size());
    if (encoder == problem.layouts.rows()) {
      const auto time = closed_form(plan_of(problem, selection));
      if (time && (!best || *time < *best)) best = time;
      return;
    }
    const int allocation = at(problem.language, selection.language).allocation;
    for (std::size_t i = 0; i < problem.layouts(encoder, allocation).size(); ++i) {
      selection.layouts.push_back(static_cast<int>(i));
      pick_next(selection);
      selection.layouts.pop_back();
    }
  };
  for (std::size_t i = 0; i < problem.language.size(); ++i) {
    SharedSelection selection;
    selection.language = static_cast<int>(i);
    pick_next(selection);
  }
  return best;
}

}  // namespace tangram::tests
