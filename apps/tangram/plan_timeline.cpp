#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "plan_page_parts.hpp"
#include "tangram/base/at.hpp"
#include "tangram/picture/page.hpp"
#include "tangram/picture/timeline.hpp"

namespace tangram::app {

namespace {

using picture::Markup;
using picture::Paint;
using simulate::Event;
using simulate::EventKind;

/// What an executor does; what is on the way between stages is not drawn.
struct Kind {
  EventKind event;
  Paint paint;
  std::string_view word;
  bool is_pass;  ///< of a microbatch
};
constexpr Kind kKinds[] = {{EventKind::kForward, Paint::kForward, "forward", true},
                           {EventKind::kBackward, Paint::kBackward, "backward", true},
                           {EventKind::kWeightGradient, Paint::kWeightGradient, "weight gradient", true},
                           {EventKind::kEncoderForward, Paint::kSeries4, "encoders forward", true},
                           {EventKind::kEncoderBackward, Paint::kSeries5, "encoders backward", true},
                           {EventKind::kGradientSync, Paint::kSync, "gradient sync, exposed", false},
                           {EventKind::kOptimizer, Paint::kOptimizer, "optimizer", false}};

const Kind* kind_of(EventKind event) {
  const auto* found = std::ranges::find(kKinds, event, &Kind::event);
  return found != std::end(kKinds) ? found : nullptr;
}

/// Lanes of the parts of all stages that are drawn.
class PlanLanes {
 public:
  explicit PlanLanes(const PlanPicture& picture) {
    for (std::size_t g = 0; g < picture.drawn; ++g) {
      bool is_first = picture.drawn > 1;
      for (const std::size_t s : picture.stages(g)) {
        add_stage(picture, g, s, is_first ? pipelines_text(at(picture.groups, g)) : "");
        is_first = false;
      }
    }
  }

  [[nodiscard]] const std::vector<picture::Lane>& all() const { return lanes_; }
  /// -1: not drawn.
  [[nodiscard]] int lane_of(const Event& event) const {
    const auto found = places_.find({event.pipeline, event.stage, event.part});
    return found != places_.end() ? found->second : -1;
  }

 private:
  void add_stage(const PlanPicture& picture, std::size_t group, std::size_t place, const std::string& heading) {
    constexpr std::size_t kRoom = 26;  // characters beside the stage's number
    const plan::Stage& stage = picture.stage(group, place);
    for (std::size_t p = 0; p < parts_drawn(stage); ++p) {
      const plan::Part& part = stage.parts[p];
      const std::string gpus = gpus_text(picture.plan, part);
      places_[{static_cast<int>(group), static_cast<int>(place), static_cast<int>(p)}] =
          static_cast<int>(lanes_.size());
      lanes_.push_back({p == 0 ? fmt::format("{}", place) : "+", clipped(gpus, kRoom),
                        clipped(fmt::format("stage {}: {}, layers {}", place, gpus, layers_text(stage))),
                        p == 0 ? heading : "", picture.paint_of(part)});
    }
  }

  std::vector<picture::Lane> lanes_;
  std::map<std::tuple<int, int, int>, int> places_;  // by group, stage and part
};

picture::SpanLook look_of(const Event& event, Nanoseconds iteration, bool has_chunks) {
  const Kind& kind = *kind_of(event.kind);
  picture::SpanLook look;
  look.paint = kind.paint;
  look.title = kind.word;
  if (kind.is_pass) {
    look.shade = event.chunk;
    look.label = fmt::format("{}", event.microbatch);
    look.title += fmt::format(" {}{}", event.microbatch, has_chunks ? fmt::format(", chunk {}", event.chunk) : "");
  }
  look.title +=
      fmt::format(": {} to {}", picture::time_text(event.start, iteration), picture::time_text(event.end, iteration));
  return look;
}

std::int64_t most_microbatches(const PlanPicture& picture) {
  std::int64_t most = 0;
  for (const simulate::SimPipeline& pipeline : picture.schedule.pipelines) most = std::max(most, pipeline.microbatches);
  return most;
}

/// Of what there is.
Markup legend_of(const std::vector<Event>& events, bool has_chunks) {
  std::vector<picture::LegendEntry> entries;
  for (const Kind& kind : kKinds) {
    if (std::ranges::find(events, kind.event, &Event::kind) == events.end()) continue;
    entries.push_back({kind.paint, std::string(kind.word)});
  }
  Markup out = picture::legend(entries);
  if (has_chunks) out += picture::paragraph("The fainter a pass, the later its model chunk.");
  return out;
}

}  // namespace

Markup plan_timeline(const PlanPicture& picture) {
  if (!picture.run) return picture::paragraph(picture.why_no_run);
  const simulate::Result& run = *picture.run;
  const PlanLanes lanes(picture);
  const bool has_chunks = picture.plan.is_interleaved();
  picture::Timeline timeline;
  timeline.description = "when each stage computes, synchronises gradients and runs the optimizer";
  timeline.lanes = lanes.all();
  timeline.end = run.iteration;
  timeline.label_room = fmt::formatted_size("{}", most_microbatches(picture) - 1);
  std::vector<const Event*> drawn;
  for (const Event& event : run.events) {
    const int lane = lanes.lane_of(event);
    if (lane < 0 || kind_of(event.kind) == nullptr || event.end == event.start) continue;
    timeline.spans.push_back({lane, event.start, event.end});
    drawn.push_back(&event);
  }
  timeline.look = [&](std::size_t s) { return look_of(*at(drawn, s), run.iteration, has_chunks); };
  return legend_of(run.events, has_chunks) + picture::timeline(timeline);
}

}  // namespace tangram::app
