#include "explanation_view.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plan_sentences.hpp"
#include "plan_view.hpp"
#include "table.hpp"
#include "words.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;
using planner::Alternative;
using planner::Explanation;
using planner::MemoryUse;
using planner::Resource;

constexpr double kWorthSaying = 0.001;  // smaller gains of more memory are rounding of the search

/// What an alternative changes, for people.
struct ChangeText {
  std::string operator()(const planner::Faster& change) const {
    switch (change.resource) {
      case Resource::kCompute: return "matrix products a tenth faster";
      case Resource::kMemoryBandwidth: return "memory bandwidth a tenth more";
      case Resource::kNodeLinks: return "links inside nodes a tenth faster";
      case Resource::kNetwork: return "network between nodes a tenth faster";
    }
    return "";
  }
  std::string operator()(const planner::MoreMemory& change) const {
    return fmt::format("a tenth more memory on {}", change.gpu_type);
  }
  std::string operator()(const planner::LayerMoved& change) const {
    return fmt::format("layer {} in stage {}", change.layer, change.to);
  }
  std::string operator()(const planner::OtherStrategy& change) const {
    return fmt::format("stage {} with {} instead of {}", change.stage, strategy_text(change.other),
                       strategy_text(change.now));
  }
  std::string operator()(const planner::NodeAdded& change) const {
    return fmt::format("one node more like {} ({})", change.like, change.island_class);
  }
  std::string operator()(const planner::IslandDropped& change) const {
    const std::string others = change.alike > 1 ? fmt::format(", one of {} alike", change.alike) : "";
    return fmt::format("without island {} ({}{})", change.island, change.island_class, others);
  }
  std::string operator()(const planner::OtherPlan& change) const {
    return fmt::format("{}, microbatches of {}, {} of {} GPUs with other work",
                       counted(static_cast<std::int64_t>(change.stages), "stage"), change.microbatch,
                       thousands(change.moved), thousands(static_cast<std::int64_t>(change.gpus)));
  }
  std::string operator()(const planner::RuleLifted& change) const { return std::string(in_words(change.rule)); }
  std::string operator()(const planner::RulesLifted&) const {
    return "all of them at once: on paper, no runtime runs it so";
  }
  std::string operator()(const planner::OptionChanged& change) const {
    return fmt::format("{}: {}", change.key, change.value);
  }
  std::string operator()(const planner::OtherPlacement& change) const {
    switch (change.placement) {
      case compose::EncoderPlacement::kHomogeneous: return "in the first stage, with the degrees of all others";
      case compose::EncoderPlacement::kDisjoint: return "each a stage of its own, on GPUs of its own";
      case compose::EncoderPlacement::kColocated: return "on all GPUs of the language model, in turn with it";
      case compose::EncoderPlacement::kAny: break;
    }
    return "anywhere in the pipelines";
  }
};

/// What is changed, for programs: "compute", "stage 3", a GPU type, a class, a plan.
struct ChangedThing {
  std::string operator()(const planner::Faster& change) const {
    switch (change.resource) {
      case Resource::kCompute: return "compute";
      case Resource::kMemoryBandwidth: return "memory bandwidth";
      case Resource::kNodeLinks: return "links inside nodes";
      case Resource::kNetwork: return "network";
    }
    return "";
  }
  std::string operator()(const planner::MoreMemory& change) const { return change.gpu_type; }
  std::string operator()(const planner::LayerMoved& change) const { return fmt::format("stage {}", change.cut); }
  std::string operator()(const planner::OtherStrategy& change) const { return fmt::format("stage {}", change.stage); }
  std::string operator()(const planner::NodeAdded& change) const { return change.island_class; }
  std::string operator()(const planner::IslandDropped& change) const { return change.island_class; }
  std::string operator()(const planner::OtherPlan& change) const { return change.plan_id; }
  std::string operator()(const planner::RuleLifted& change) const { return std::string(to_string(change.rule)); }
  std::string operator()(const planner::RulesLifted&) const { return "all"; }
  std::string operator()(const planner::OptionChanged& change) const {
    return fmt::format("{}={}", change.key, change.value);
  }
  std::string operator()(const planner::OtherPlacement& change) const {
    return std::string(compose::to_string(change.placement));
  }
};

std::string change_text_of(const Alternative& alternative) { return std::visit(ChangeText{}, alternative.change); }

/// What an iteration takes more; negative: less.
double change_of(const Alternative& alternative, Nanoseconds now) {
  return alternative.iteration.value_or(now).as_double() / now.as_double() - 1;
}

double gain_of(const Alternative& alternative, Nanoseconds now) {
  return alternative.iteration ? now.as_double() / alternative.iteration->as_double() - 1 : 0;
}

std::string price_text(const Alternative& alternative, Nanoseconds now) {
  if (!alternative.iteration) return alternative.why_not;
  return fmt::format("{} an iteration ({:+.2f} %)", people_time(to_seconds(*alternative.iteration)),
                     change_of(alternative, now) * 100);
}

std::string section(const char* title, const std::vector<Alternative>& list, Nanoseconds now,
                    const Terminal& terminal) {
  if (list.empty()) return "";
  Table table({{title, false, 30}, {"takes", false, 30}});
  for (const Alternative& a : list) table.add({{change_text_of(a)}, {price_text(a, now)}});
  return "\n" + table.render(terminal);
}

std::string plan_text(const plan::Predicted& p, Nanoseconds iteration) {
  const double whole = to_seconds(p.iteration);
  return fmt::format("{} an iteration; slowest is stage {}: computes {:.0f} %, bubble {:.0f} %, exposed sync {:.0f} %",
                     people_time(to_seconds(iteration)), p.bottleneck_stage, p.breakdown.compute / whole * 100,
                     p.bubble_fraction * 100, p.breakdown.exposed_sync / whole * 100);
}

/// The largest gain of a tenth.
std::string limit_text(const Explanation& e) {
  const Alternative& first = e.limits.front();
  return fmt::format("{} would make it {:.1f} % faster", change_text_of(first), gain_of(first, e.iteration) * 100);
}

/// Of interleaved chunks altogether: what a pass holds depends on its chunk.
std::string activations_text(const plan::PartPrediction& p) {
  if (p.put_off > Bytes(0)) {
    return fmt::format("{} in flight of {}, {} once they wait for weight gradients", counted(p.in_flight, "microbatch"),
                       people_bytes(p.activation), people_bytes(p.put_off));
  }
  if (p.chunks.empty()) {
    return fmt::format("{} in flight of {}", counted(p.in_flight, "microbatch"), people_bytes(p.activation));
  }
  return fmt::format("{} passes in flight of {} model chunks, which hold {}", thousands(p.in_flight), p.chunks.size(),
                     people_bytes(p.peak_memory - p.static_memory - p.transient));
}

/// Colocated encoders take their part before the stage's microbatches do.
std::string encoders_text(const MemoryUse& use) {
  if (!use.encoders) return "";
  return fmt::format(", {} of encoders", people_bytes(use.encoders->memory()));
}

/// What fills the fullest memory, and whether more of any would help.
std::string memory_text(const Explanation& e) {
  const MemoryUse& fullest = e.memory.front();
  const plan::PartPrediction& p = fullest.predicted;
  const std::string fill = fmt::format(
      "stage {} ({}) is fullest, {:.1f} % of {}: {} of parameters, gradients and optimizer, {}, {} of buffers{}; "
      "room for {} more",
      fullest.stage, fullest.gpu_type, fullest.share() * 100, people_bytes(p.usable_memory),
      people_bytes(p.static_memory), activations_text(p), people_bytes(p.transient), encoders_text(fullest),
      fullest.room() > 0 ? thousands(fullest.room()) : "no");
  const Alternative& first = e.more_memory.front();
  const double gain = gain_of(first, e.iteration);
  if (gain < kWorthSaying && e.time_limit > 0) return fill;
  if (gain < kWorthSaying) return fill + ". No memory limit binds: a tenth more of any gives no faster plan";
  return fill + fmt::format(". This limit binds: {} would make it {:.1f} % faster", change_text_of(first), gain * 100);
}

Json alternative_json(const Alternative& a, Nanoseconds now) {
  Json json{{"what", change_text_of(a)}, {"of", std::visit(ChangedThing{}, a.change)}};
  json["iteration_s"] = a.iteration ? Json(to_seconds(*a.iteration)) : Json(nullptr);
  json["change"] = a.iteration ? Json(change_of(a, now)) : Json(nullptr);
  if (!a.why_not.empty()) json["why_not"] = a.why_not;
  return json;
}

Json memory_json(const MemoryUse& use) {
  const plan::PartPrediction& p = use.predicted;
  Json json{{"stage", use.stage},
            {"gpu_type", use.gpu_type},
            {"share", use.share()},
            {"usable_bytes", p.usable_memory.value()},
            {"peak_bytes", p.peak_memory.value()},
            {"static_bytes", p.static_memory.value()},
            {"transient_bytes", p.transient.value()},
            {"activation_bytes", p.activation.value()},
            {"in_flight", p.in_flight},
            {"room", use.room()}};
  if (use.encoders) json["encoder_bytes"] = use.encoders->memory().value();
  return json;
}

}  // namespace

std::string explanation_for_people(const plan::LaunchPlan& plan, const Explanation& e, const Terminal& terminal) {
  std::string out = labelled(terminal, "plan", plan_text(plan.predicted, e.iteration));
  if (plan.provenance.objective != "throughput") {
    out += labelled(terminal, "made for",
                    fmt::format("the least {}; what follows compares times alone",
                                plan.provenance.objective == "cost" ? "cost" : "number of GPUs"));
  }
  if (const auto& options = plan.provenance.options; !options.empty()) {
    out += labelled(terminal, "options", options_line(options));
  }
  if (!e.limits.empty()) out += labelled(terminal, "limit", limit_text(e));
  out += labelled(terminal, "memory", memory_text(e));
  out +=
      labelled(terminal, "next best",
               e.next_best ? fmt::format("{}: {}", price_text(*e.next_best, e.iteration), change_text_of(*e.next_best))
                           : "none: the search found no plan beside this one");
  out += section("what limits it", e.limits, e.iteration, terminal);
  out += section("what memory limits", e.more_memory, e.iteration, terminal);
  out += section("why these cuts", e.cuts, e.iteration, terminal);
  out += section("why these degrees", e.degrees, e.iteration, terminal);
  out += section("another execution option", e.options, e.iteration, terminal);
  out += section("with encoders elsewhere", e.placements, e.iteration, terminal);
  out += section("without this rule of the runtime", e.rules, e.iteration, terminal);
  out += section("what a node more brings", e.more, e.iteration, terminal);
  out += section("what an island is worth", e.fewer, e.iteration, terminal);
  if (e.time_limit > 0) out += "\n" + labelled(terminal, "note", time_limit_text(e.time_limit));
  return out;
}

Json explanation_json(const plan::LaunchPlan& plan, const Explanation& e) {
  Json json;
  json["schema"] = "tangram.explanation/1";
  json["status"] = "ok";
  json["plan_id"] = plan::plan_digest(plan);
  json["iteration_s"] = to_seconds(e.iteration);
  if (e.time_limit > 0) json["time_limit_s"] = e.time_limit;
  json["bottleneck_stage"] = plan.predicted.bottleneck_stage;
  const auto list = [&](const char* name, const std::vector<Alternative>& alternatives) {
    json[name] = Json::array();
    for (const Alternative& a : alternatives) json[name].push_back(alternative_json(a, e.iteration));
  };
  list("limits", e.limits);
  json["memory"] = Json::array();
  for (const MemoryUse& use : e.memory) json["memory"].push_back(memory_json(use));
  list("more_memory", e.more_memory);
  list("cuts", e.cuts);
  list("degrees", e.degrees);
  list("options", e.options);
  list("rules", e.rules);
  if (!e.placements.empty()) list("placements", e.placements);
  json["next_best"] = e.next_best ? alternative_json(*e.next_best, e.iteration) : Json(nullptr);
  list("more", e.more);
  list("fewer", e.fewer);
  return json;
}

}  // namespace tangram::app
