#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "plan_page_parts.hpp"
#include "table.hpp"
#include "tangram/base/at.hpp"
#include "tangram/picture/chain.hpp"

namespace tangram::app {

namespace {

using picture::Box;
using picture::BoxPart;
using picture::Flow;
using picture::Markup;

std::string hosts_text(const plan::LaunchPlan& plan, const plan::Part& part) {
  std::vector<std::string> hosts;
  std::set<std::string> seen;
  for (int i = 0; i < part.strategy.degrees.gpus(); ++i) {
    const std::string& host = plan.rank(part, i).host;
    if (seen.insert(host).second) hosts.push_back(host);
  }
  return clipped(compact_names(hosts));
}

BoxPart part_of(const PlanPicture& picture, const plan::Part& part, Nanoseconds slowest) {
  const MemoryUse memory = memory_use(part.predicted);
  BoxPart drawn;
  drawn.name = clipped(gpus_text(picture.plan, part));
  drawn.mark = picture.paint_of(part);
  drawn.facts = {{"hosts", hosts_text(picture.plan, part)},
                 {"parallel", strategy_text(part.strategy)},
                 {"samples", fmt::format("{} a replica", part.samples_per_replica())},
                 {"load", people_percent(pass_time(part).as_double() / slowest.as_double())}};
  drawn.fill = memory.share;
  drawn.fill_text = memory.text;
  return drawn;
}

Box box_of(const PlanPicture& picture, std::size_t group, std::size_t place, Nanoseconds slowest) {
  const plan::Stage& stage = picture.stage(group, place);
  Box box{fmt::format("stage {}", place),
          clipped("layers " + layers_text(stage)),
          picture.modules_of(stage),
          {},
          stage.id == picture.plan.predicted.bottleneck_stage};
  if (box.is_marked) box.tags.emplace_back("slowest");
  if (stage.embedding) box.tags.emplace_back("embedding");
  if (stage.head) box.tags.emplace_back("head");
  const std::size_t drawn = parts_drawn(stage);
  for (std::size_t p = 0; p < drawn; ++p) box.parts.push_back(part_of(picture, stage.parts[p], slowest));
  if (drawn < stage.parts.size()) box.tags.push_back(fmt::format("{} more parts", stage.parts.size() - drawn));
  return box;
}

Bytes bytes_of(const plan::Boundary& boundary) {
  Bytes bytes;
  for (const plan::Transfer& transfer : boundary.transfers) bytes += transfer.bytes;
  return bytes;
}

std::string rate_text(BytesPerSecond rate) { return fmt::format("{:.3g} GB/s", rate.value() * 1e-9); }

const plan::Boundary* boundary_between(const plan::LaunchPlan& plan, int from, int to) {
  const auto joins = [&](const plan::Boundary& b) { return b.from == from && b.to == to; };
  const auto found = std::ranges::find_if(plan.boundaries, joins);
  return found != plan.boundaries.end() ? &*found : nullptr;
}

std::string flow_title(const plan::Boundary& boundary) {
  return fmt::format("{} of one microbatch forward, the same backward, in {}; {} on the way at {}",
                     message_bytes(bytes_of(boundary)),
                     counted(static_cast<std::int64_t>(boundary.transfers.size()), "transfer"),
                     people_time(to_seconds(boundary.latency)), rate_text(boundary.link.bandwidth));
}

Flow flow_between(const PlanPicture& picture, std::size_t group, std::size_t place, std::size_t next) {
  if (next != place + 1) return {fmt::format("{} stages", next - place - 1), "not drawn", ""};
  const auto* boundary = boundary_between(picture.plan, picture.stage(group, place).id, picture.stage(group, next).id);
  if (boundary == nullptr) return {};
  return {message_bytes(bytes_of(*boundary)), rate_text(boundary->link.bandwidth), flow_title(*boundary)};
}

/// Where chunks are interleaved the last stage sends to the first.
Markup wraparound_of(const PlanPicture& picture, std::size_t group) {
  const auto& stages = picture.pipeline(group).stages;
  if (!picture.plan.is_interleaved() || stages.size() < 2) return {};
  const auto* boundary = boundary_between(picture.plan, stages.back(), stages.front());
  if (boundary == nullptr) return {};
  return picture::paragraph(
      fmt::format("From stage {} back to stage 0, for the next chunk: {}.", stages.size() - 1, flow_title(*boundary)));
}

/// How many pipelines, and what each of them runs.
std::string heading_of(const PlanPicture& picture, std::size_t group) {
  const plan::Pipeline& pipeline = picture.pipeline(group);
  const PipelineGroup& of = at(picture.groups, group);
  const int count = of.last - of.first + 1;
  const std::string names = picture.plan.pipelines.size() == 1 ? "One pipeline"
                            : count == 1                       ? fmt::format("Pipeline {}", of.first)
                                         : fmt::format("Pipelines {} to {}, {} alike", of.first, of.last, count);
  return fmt::format("{}: {} of {}{}", names, counted(pipeline.microbatches, "microbatch"),
                     counted(pipeline.microbatch, "sample"),
                     count > 1 ? fmt::format("; hosts are those of pipeline {}", of.first) : "");
}

Markup chain_of(const PlanPicture& picture, std::size_t group, Nanoseconds slowest) {
  const std::vector<std::size_t> places = picture.stages(group);
  std::vector<Box> boxes;
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i > 0) flows.push_back(flow_between(picture, group, places[i - 1], places[i]));
    boxes.push_back(box_of(picture, group, places[i], slowest));
  }
  return picture::paragraph(heading_of(picture, group)) + picture::chain(boxes, flows) + wraparound_of(picture, group);
}

/// GPU types with their colours; of very many the first.
std::vector<picture::LegendEntry> types_of(const PlanPicture& picture) {
  constexpr std::size_t kMostTypes = 24;
  std::vector<picture::LegendEntry> types;
  for (const auto& [name, paint] : picture.paints) {
    if (types.size() < kMostTypes) types.push_back({paint, clipped(name)});
  }
  return types;
}

}  // namespace

Markup plan_diagram(const PlanPicture& picture) {
  Markup out = picture::legend(types_of(picture));
  const Nanoseconds slowest = slowest_pass(picture.plan);
  for (std::size_t g = 0; g < picture.drawn; ++g) out += chain_of(picture, g, slowest);
  if (picture.drawn < picture.groups.size()) {
    out += picture::paragraph(fmt::format(
        "{} are not drawn.",
        counted(static_cast<std::int64_t>(picture.plan.pipelines.size()) - at(picture.groups, picture.drawn).first,
                "more pipeline")));
  }
  return out;
}

}  // namespace tangram::app
