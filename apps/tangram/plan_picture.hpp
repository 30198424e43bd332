// What of a launch plan is drawn: pipelines that run alike once, with one iteration as `simulate` has it, and names and
// colours that the diagram, the timeline and the table of a page share.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "page_text.hpp"
#include "plan_view.hpp"
#include "tangram/picture/paint.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::app {

/// Rows of a page's timeline and table: more than fits on a screen, and what keeps it near 1 MB.
inline constexpr std::size_t kMostRowsDrawn = 128;
inline constexpr std::size_t kMostPartsDrawn = 8;  ///< of a stage

/// Its first ones, where it has more.
[[nodiscard]] std::size_t parts_drawn(const plan::Stage& stage);

struct MemoryUse {
  double share = 0;  ///< of what is usable
  std::string text;  ///< "73.8 GiB of 74.1 GiB"
};
[[nodiscard]] MemoryUse memory_use(const plan::PartPrediction& predicted);

struct PlanPicture {
  const plan::LaunchPlan& plan;
  std::vector<PipelineGroup> groups;  ///< all, in the plan's order
  std::size_t drawn = 0;              ///< groups at the front that are drawn
  simulate::Schedule schedule;        ///< the first pipeline of each group
  /// Of that schedule, which takes as long as that of all pipelines.
  std::optional<simulate::Result> run;
  std::string why_no_run;                        ///< a sentence
  std::map<std::string, picture::Paint> paints;  ///< of GPU types

  [[nodiscard]] const plan::Pipeline& pipeline(std::size_t group) const;
  /// Places in the group's pipeline: all, or its first and last where they are too many.
  [[nodiscard]] std::vector<std::size_t> stages(std::size_t group) const;
  [[nodiscard]] const plan::Stage& stage(std::size_t group, std::size_t place) const;
  [[nodiscard]] picture::Paint paint_of(const plan::Part& part) const;
  /// "vision", "language": modules whose layers it has; none where the model has no more than one.
  [[nodiscard]] std::vector<std::string> modules_of(const plan::Stage& stage) const;
};

[[nodiscard]] PlanPicture picture_of(const plan::LaunchPlan& plan);

}  // namespace tangram::app
