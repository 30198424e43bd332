#include "plan_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "plan_page_parts.hpp"
#include "plan_sentences.hpp"
#include "table.hpp"
#include "tangram/base/at.hpp"
#include "tangram/picture/page.hpp"

namespace tangram::app {

namespace {

using picture::element;
using picture::Markup;
using picture::text;

// Of a page: notes name whatever there is.
constexpr std::size_t kLongestSentence = 1000;
constexpr std::size_t kMostSentences = 32;

std::vector<picture::Fact> facts_of(const std::vector<Sentence>& sentences) {
  std::vector<picture::Fact> facts;
  for (const Sentence& sentence : sentences) {
    if (facts.size() == kMostSentences) {
      facts.push_back({"", counted(static_cast<std::int64_t>(sentences.size() - facts.size()), "more line")});
      break;
    }
    facts.push_back({sentence.label, clipped(sentence.text, kLongestSentence)});
  }
  return facts;
}

Markup header_of(const plan::LaunchPlan& plan, const std::string& title, std::string_view warning) {
  Markup out = element("h1", {}, title);
  if (!warning.empty()) out += element("p", {{"class", "warning"}}, warning);
  std::vector<Sentence> sentences = plan_subject(plan);
  for (Sentence& sentence : plan_outcome(plan)) sentences.push_back(std::move(sentence));
  return element("header", {}, out + picture::facts(facts_of(sentences)));
}

const simulate::StageUse* use_of(const PlanPicture& picture, std::size_t group, std::size_t place) {
  if (!picture.run) return nullptr;
  for (const simulate::StageUse& use : picture.run->stages) {
    if (use.pipeline == static_cast<int>(group) && use.stage == static_cast<int>(place)) return &use;
  }
  return nullptr;
}

struct StageColumn {
  picture::TableColumn column;
  bool only_with_pipelines = false;
  bool only_with_modules = false;
};

std::vector<picture::TableColumn> columns_of(bool has_pipelines, bool has_modules) {
  const StageColumn columns[] = {{{"pipeline", true}, true, false},
                                 {{"stage", true}},
                                 {{"GPUs"}},
                                 {{"layers"}},
                                 {{"modules"}, false, true},
                                 {{"parallel"}},
                                 {{"memory"}},
                                 {{"fwd+bwd ms", true}},
                                 {{"load", true}},
                                 {{"computes", true}},
                                 {{"exposed sync", true}},
                                 {{"bubble", true}},
                                 {{"in flight", true}}};
  std::vector<picture::TableColumn> taken;
  for (const StageColumn& c : columns) {
    const bool is_left_out = (c.only_with_pipelines && !has_pipelines) || (c.only_with_modules && !has_modules);
    if (!is_left_out) taken.push_back(c.column);
  }
  return taken;
}

Markup memory_of(const plan::PartPrediction& predicted) {
  const MemoryUse memory = memory_use(predicted);
  return text(memory.text) + picture::meter(memory.share, memory.text);
}

class StageTable {
 public:
  explicit StageTable(const PlanPicture& picture)
      : picture_(picture),
        slowest_(slowest_pass(picture.plan)),
        has_pipelines_(picture.plan.pipelines.size() > 1),
        has_modules_(has_modules(picture)) {}

  [[nodiscard]] Markup made() const {
    std::vector<std::vector<Markup>> rows;
    for (std::size_t g = 0; g < picture_.drawn; ++g) {
      for (const std::size_t s : picture_.stages(g)) {
        for (std::size_t p = 0; p < parts_drawn(picture_.stage(g, s)); ++p) rows.push_back(row_of(g, s, p));
      }
    }
    return picture::table(columns_of(has_pipelines_, has_modules_), rows);
  }

 private:
  static bool has_modules(const PlanPicture& picture) {
    const auto is_of_modules = [&](const plan::Stage& stage) { return !picture.modules_of(stage).empty(); };
    return std::ranges::any_of(picture.plan.stages, is_of_modules);
  }

  [[nodiscard]] std::vector<Markup> row_of(std::size_t group, std::size_t place, std::size_t number) const {
    const plan::Stage& stage = picture_.stage(group, place);
    const plan::Part& part = at(stage.parts, number);
    const bool is_first = number == 0;
    std::vector<Markup> row;
    const auto add = [&](const std::string& words) { row.push_back(text(words)); };
    if (has_pipelines_) add(is_first ? range_of(at(picture_.groups, group)) : "");
    add(is_first ? fmt::format("{}", place) : "+");
    add(clipped(gpus_text(picture_.plan, part)));
    add(is_first ? clipped(layers_text(stage)) : "");
    if (has_modules_) add(is_first ? fmt::format("{}", fmt::join(picture_.modules_of(stage), ", ")) : "");
    add(strategy_text(part.strategy));
    row.push_back(memory_of(part.predicted));
    add(pass_text(part.predicted));
    add(people_percent(pass_time(part).as_double() / slowest_.as_double()));
    add_use(is_first ? use_of(picture_, group, place) : nullptr, row);
    return row;
  }

  /// Of the whole stage: shares of the iteration.
  void add_use(const simulate::StageUse* use, std::vector<Markup>& row) const {
    const auto share = [&](Nanoseconds time) {
      return text(people_percent(time.as_double() / picture_.run->iteration.as_double()));
    };
    if (use == nullptr) {
      row.resize(row.size() + 4);
      return;
    }
    row.push_back(share(use->busy));
    row.push_back(share(use->exposed_sync));
    row.push_back(share(use->idle));
    row.push_back(text(fmt::format("{}", use->max_in_flight)));
  }

  static std::string range_of(const PipelineGroup& group) {
    return group.first == group.last ? fmt::format("{}", group.first) : fmt::format("{}-{}", group.first, group.last);
  }

  const PlanPicture& picture_;
  Nanoseconds slowest_;
  bool has_pipelines_;
  bool has_modules_;
};

constexpr std::string_view kStagesText =
    "Load is the time of one microbatch against the slowest stage. What a stage computes, what of its gradient sync "
    "is exposed, and the bubble in which it waits are shares of the iteration; the optimizer takes the rest.";

}  // namespace

std::string plan_page(const plan::LaunchPlan& plan, std::string_view warning) {
  const PlanPicture picture = picture_of(plan);
  picture::Page page;
  page.title = clipped(fmt::format("{} on {}", plan.model.name, plan.fleet_name), kLongestSentence);
  page.has_timelines = picture.run.has_value();
  page.body = header_of(plan, page.title, warning);
  page.body += picture::section("Pipeline", plan_diagram(picture));
  page.body += picture::section("One iteration", plan_timeline(picture));
  page.body += picture::section("Stages", picture::paragraph(kStagesText) + StageTable(picture).made());
  return picture::written(page);
}

}  // namespace tangram::app
