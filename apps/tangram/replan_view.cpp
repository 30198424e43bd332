#include "replan_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "diff_view.hpp"
#include "table.hpp"
#include "words.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownSlower = 3;  // stages that are named

/// Hosts that lost all of their GPUs in the plan, then those that lost some.
std::string gone_text(const plan::LaunchPlan& old, const std::vector<evolve::Gpu>& gone) {
  std::map<std::string, std::vector<int>> lost;
  std::map<std::string, std::size_t> had;
  for (const auto& [host, gpu] : gone) lost[host].push_back(gpu);
  for (const plan::Rank& rank : old.ranks) ++had[rank.host];
  std::vector<std::string> whole;
  std::vector<std::string> texts;
  for (const auto& [host, gpus] : lost) {
    if (gpus.size() == had[host]) {
      whole.push_back(host);
    } else {
      texts.push_back(fmt::format("GPU {} of {}", compact_ranges(gpus), host));
    }
  }
  if (!whole.empty()) texts.insert(texts.begin(), compact_names(whole));
  const bool one_thing = lost.size() == 1 && (whole.size() == 1 || gone.size() == 1);
  std::set<int> stages;
  for (const plan::Rank& rank : old.ranks) {
    if (std::ranges::binary_search(gone, evolve::Gpu(rank.host, rank.gpu))) stages.insert(rank.stage);
  }
  return fmt::format("{} {} gone: {} of {}", fmt::join(texts, ", "), one_thing ? "is" : "are",
                     counted(static_cast<std::int64_t>(gone.size()), "GPU"),
                     stages.size() == 1 ? fmt::format("stage {}", *stages.begin())
                                        : fmt::format("stages {}", compact_ranges({stages.begin(), stages.end()})));
}

/// The largest growth of an exposed gradient synchronisation and of a hand-over, where either grew by more than half a
/// percent of the iteration.
std::string exchange_text(const plan::LaunchPlan& old, const plan::LaunchPlan& now) {
  std::string text;
  const Nanoseconds notable = old.predicted.iteration / 200;
  Nanoseconds most = notable;
  for (std::size_t s = 0; s < now.stages.size(); ++s) {
    const auto exposed = [&](const plan::LaunchPlan& plan) {
      return plan.stages[s].parts.front().predicted.gradient_sync_exposed;
    };
    if (exposed(now) - exposed(old) <= most) continue;
    most = exposed(now) - exposed(old);
    text = fmt::format("; stage {} synchronises gradients for {} more", s, people_time(to_seconds(most)));
  }
  std::string boundary_text;
  most = notable / std::max<std::int64_t>(1, now.pipelines.front().microbatches);
  for (std::size_t b = 0; b < std::min(now.boundaries.size(), old.boundaries.size()); ++b) {
    const Nanoseconds growth = now.boundaries[b].latency - old.boundaries[b].latency;
    if (growth <= most) continue;
    most = growth;
    boundary_text = fmt::format("; a hand-over from stage {} to {} takes {} more", now.boundaries[b].from,
                                now.boundaries[b].to, people_time(to_seconds(growth)));
  }
  return text + boundary_text;
}

std::string slowdown_text(const plan::LaunchPlan& old, const plan::LaunchPlan& now,
                          const std::vector<evolve::Slowdown>& slower) {
  std::string text =
      fmt::format("the plan takes {} an iteration, {} when it was made",
                  people_time(to_seconds(now.predicted.iteration)), people_time(to_seconds(old.predicted.iteration)));
  for (std::size_t i = 0; i < slower.size() && i < kShownSlower; ++i) {
    text += fmt::format("; stage {} computes {:.0f} % longer", slower[i].stage, (slower[i].factor - 1) * 100);
    if (!slower[i].hosts.empty()) text += fmt::format(" because of {}", compact_names(slower[i].hosts));
  }
  if (slower.empty()) text += exchange_text(old, now);
  if (slower.size() > kShownSlower) text += fmt::format("; and {} more stages", slower.size() - kShownSlower);
  return text;
}

/// GPUs of each type.
std::map<std::string, int> gpus_by_type(const plan::LaunchPlan& plan) {
  std::map<std::string, int> used;
  for (const plan::Rank& rank : plan.ranks) ++used[plan.island(rank.island).device.name];
  return used;
}

/// What another plan does otherwise, to gain what it gains: "4 more A100-80GB-SXM, 7 stages instead of 6".
std::string otherwise_text(const plan::LaunchPlan& before, const plan::LaunchPlan& after,
                           const evolve::Difference& difference) {
  std::vector<std::string> texts;
  std::map<std::string, int> more = gpus_by_type(after);
  for (const auto& [type, gpus] : gpus_by_type(before)) more[type] -= gpus;
  for (const auto& [type, gpus] : more) {
    if (gpus != 0) texts.push_back(fmt::format("{} {} {}", std::abs(gpus), gpus > 0 ? "more" : "fewer", type));
  }
  const auto instead = [&](std::size_t now, std::size_t then, std::string_view what) {
    if (now != then)
      texts.push_back(fmt::format("{} instead of {}", counted(static_cast<std::int64_t>(now), what), then));
  };
  instead(after.pipelines.size(), before.pipelines.size(), "pipeline");
  instead(after.stages.size(), before.stages.size(), "stage");
  const auto stages_with = [&](bool evolve::StagePair::* otherwise, const char* what) {
    const auto count = std::ranges::count_if(difference.stages, [&](const evolve::StagePair& pair) {
      return pair.before >= 0 && pair.after >= 0 && pair.*otherwise;
    });
    if (count > 0) texts.push_back(fmt::format("other {} in {}", what, counted(count, "stage")));
  };
  stages_with(&evolve::StagePair::layers, "layers");
  stages_with(&evolve::StagePair::inside, "parallelism");
  if (texts.empty()) texts.emplace_back("other microbatches or places of GPUs");
  return fmt::format("{}", fmt::join(texts, ", "));
}

struct Reason {
  std::string code;  // stable: "gpus-gone", "memory-exceeded", "slower", "faster-plan", "no-gain", ...
  std::string text;
};

/// What has become of the old plan.
std::vector<Reason> reasons_of_old(const planner::Replanned& replanned) {
  std::vector<Reason> reasons;
  if (!replanned.gone.empty()) reasons.push_back({"gpus-gone", gone_text(replanned.old, replanned.gone)});
  for (const evolve::Incompatibility& incompatibility : replanned.incompatibilities) {
    const std::string where = incompatibility.where.empty() ? "" : incompatibility.where + ": ";
    reasons.push_back({incompatibility.code, where + incompatibility.text});
  }
  for (const plan::TargetReason& reason : replanned.refused) reasons.push_back({reason.code, reason.text});
  if (replanned.deadlock) reasons.push_back({"deadlock", replanned.deadlock->message});
  if (replanned.slower) {
    reasons.push_back({"slower", slowdown_text(replanned.old, *replanned.now, replanned.slowdowns)});
  }
  return reasons;
}

/// And why it is kept or changed.
std::vector<Reason> reasons_of(const planner::Replanned& replanned) {
  std::vector<Reason> reasons = reasons_of_old(replanned);
  if (!replanned.change) {
    reasons.push_back(
        {"no-gain", fmt::format("the best plan that was found gains {}, less than {}",
                                people_percent(std::max(0.0, replanned.gain)), people_percent(replanned.min_gain))});
  } else if (replanned.fits) {
    reasons.push_back(
        {"faster-plan", fmt::format("another plan gains {}: {}", people_percent(replanned.gain),
                                    otherwise_text(*replanned.now, replanned.next, replanned.moves.difference))});
  } else if (replanned.spares) {
    reasons.push_back({"spares", "other hosts of the same kind take over"});
  }
  if (replanned.time_limit > 0) reasons.push_back({"time-limit", time_limit_text(replanned.time_limit)});
  return reasons;
}

Json plan_json(const plan::LaunchPlan& plan) {
  return {{"plan_id", plan::plan_digest(plan)},
          {"iteration_s", to_seconds(plan.predicted.iteration)},
          {"tokens_per_s", plan.predicted.tokens_per_s},
          {"gpus", plan.ranks.size()}};
}

}  // namespace

std::string replanned_for_people(const planner::Replanned& replanned, const Terminal& terminal) {
  std::string out = terminal.styled(replanned.change ? "change" : "keep", Style::kBold);
  std::string margin(10 - (replanned.change ? 6 : 4), ' ');
  for (const Reason& reason : reasons_of(replanned)) {
    for (const std::string& line : wrapped(reason.text, terminal.text_width() - 10)) {
      out += margin + line + "\n";
      margin = std::string(10, ' ');
    }
  }
  if (!replanned.change) return out;
  const plan::LaunchPlan& before = replanned.now ? *replanned.now : replanned.old;
  return out + switch_for_people(before, replanned.next, replanned.moves, terminal);
}

Json replanned_json(const planner::Replanned& replanned) {
  Json json;
  json["schema"] = "tangram.replan/1";
  json["status"] = replanned.change ? "different" : "ok";
  json["decision"] = replanned.change ? "change" : "keep";
  json["reasons"] = Json::array();
  for (const Reason& reason : reasons_of(replanned))
    json["reasons"].push_back({{"code", reason.code}, {"text", reason.text}});
  json["min_gain"] = replanned.min_gain;
  json["gain"] = replanned.gain;
  json["old"] = plan_json(replanned.old);
  json["old_now"] = replanned.now ? plan_json(*replanned.now) : Json(nullptr);
  json["new"] = plan_json(replanned.next);
  json["switch"] = switch_json(replanned.now ? *replanned.now : replanned.old, replanned.next, replanned.moves);
  return json;
}

}  // namespace tangram::app
