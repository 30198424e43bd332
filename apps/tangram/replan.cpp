#include "replan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "table.hpp"
#include "tangram/evolve/refit.hpp"
#include "tangram/plan/check.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kLeastCandidates = 8;      // more to choose from than a plan for itself needs
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

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

class Replanner {
 public:
  Replanner(plan::LaunchPlan old, const cluster::Fleet& fleet, const model::Model& model, PlanningOptions options,
            double min_gain)
      : fleet_(fleet), model_(model), options_(replan_options(std::move(options))) {
    result_.old = std::move(old);
    result_.min_gain = min_gain;
    options_.near = &result_.old;
    options_.choose = [this](const auto& plans, std::size_t best) { return choose(plans, best); };
  }

  Expected<Replanned> run(const compose::ProgressCallback& progress) {
    look_at_old();
    auto planned = make_plan(fleet_, model_, options_, progress);
    if (planned) {
      result_.search_finished = planned->search_finished;
      result_.parallelizers = std::move(planned->parallelizers);
      take(std::move(planned->plan));
    } else {
      const plan::LaunchPlan* const left = fitting() != nullptr ? fitting() : spare_ ? &*spare_ : nullptr;
      if (left == nullptr) return fail(std::move(planned.error()));
      decision_ = evolve::decide(old_cost(), spare_candidates(), result_.min_gain);
      take(*left);
    }
    return std::move(result_);
  }

 private:
  /// The old plan on the fleet of now, and why it cannot go on.
  void look_at_old() {
    const evolve::RefitOptions options{options_.island_tolerance, options_.search.profiles};
    evolve::Refit refit = evolve::refit(result_.old, fleet_, model_, options);
    if (!refit.gone.empty()) result_.reasons.push_back({"gpus-gone", gone_text(result_.old, refit.gone)});
    note_misfits(refit);
    plan::LaunchPlan* const plan = refit.fitting();
    fits_ = plan != nullptr && runs(*plan);
    result_.now = std::move(refit.plan);
    if (fitting() != nullptr) note_slowdown(*fitting());
    if (!refit.gone.empty() && refit.misfits.empty()) look_for_spares(refit.gone, options);
  }

  void note_misfits(const evolve::Refit& refit) {
    for (const evolve::Misfit& misfit : refit.misfits) {
      const std::string where = misfit.where.empty() ? "" : misfit.where + ": ";
      result_.reasons.push_back({misfit.code, where + misfit.text});
    }
  }

  /// Completes a refitted plan; false where it does not finish or its target refuses it.
  bool runs(plan::LaunchPlan& plan) {
    const auto refused = reasons_against(plan, options_.target);
    for (const plan::TargetReason& reason : refused) result_.reasons.push_back({reason.code, reason.text});
    const auto done = predict(plan, fleet_);
    if (!done) result_.reasons.push_back({"deadlock", done.error().front().message});
    return refused.empty() && done;
  }

  /// The old plan on the fleet of now, if it can go on.
  [[nodiscard]] const plan::LaunchPlan* fitting() const { return fits_ && result_.now ? &*result_.now : nullptr; }

  void note_slowdown(const plan::LaunchPlan& now) {
    const auto slower = evolve::slowdowns(result_.old, now, fleet_);
    const double factor = now.predicted.iteration.as_double() / result_.old.predicted.iteration.as_double();
    if (slower.empty() && factor <= 1.005) return;
    result_.reasons.push_back({"slower", slowdown_text(result_.old, now, slower)});
  }

  void look_for_spares(const std::vector<evolve::Gpu>& gone, const evolve::RefitOptions& options) {
    const auto repaired = evolve::with_spares(result_.old, gone, fleet_);
    if (!repaired) return;
    evolve::Refit refit = evolve::refit(*repaired, fleet_, model_, options);
    plan::LaunchPlan* const plan = refit.fitting();
    if (plan == nullptr || !reasons_against(*plan, options_.target).empty() || !predict(*plan, fleet_)) return;
    plan->provenance.note = "the plan before, with other hosts in place of those that are gone";
    spare_ = std::move(*plan);
  }

  [[nodiscard]] double cost_of(const plan::LaunchPlan& plan) const { return worth_of(plan, options_.wish.objective); }
  [[nodiscard]] std::optional<double> old_cost() const {
    return fitting() != nullptr ? std::optional(cost_of(*fitting())) : std::nullopt;
  }
  [[nodiscard]] evolve::Candidate candidate_of(const plan::LaunchPlan& plan) const {
    return {cost_of(plan), evolve::count_roles(evolve::roles_of(result_.old), evolve::roles_of(plan)).moved()};
  }
  [[nodiscard]] std::vector<evolve::Candidate> spare_candidates() const {
    return spare_ ? std::vector{candidate_of(*spare_)} : std::vector<evolve::Candidate>{};
  }

  /// Decides among the plans that were found and the old one with spares; the latter comes last.
  std::size_t choose(const std::vector<plan::LaunchPlan>& plans, std::size_t best) {
    std::vector<evolve::Candidate> candidates;
    candidates.reserve(plans.size() + 1);
    for (const plan::LaunchPlan& plan : plans) candidates.push_back(candidate_of(plan));
    found_ = candidates.size();
    if (spare_) candidates.push_back(candidate_of(*spare_));
    decision_ = evolve::decide(old_cost(), candidates, result_.min_gain);
    return decision_.change && *decision_.change < found_ ? *decision_.change : best;
  }

  void take(plan::LaunchPlan found) {
    result_.change = decision_.change.has_value();
    const bool spares = result_.change && spare_ && *decision_.change == found_;
    result_.next = spares ? std::move(*spare_) : std::move(found);
    result_.gain = result_.change ? decision_.gain : decision_.best_gain;
    result_.moves = compare_plans(result_.old, result_.next, &fleet_);
    if (!result_.change) {
      result_.reasons.push_back(
          {"no-gain", fmt::format("the best plan that was found gains {}, less than {}",
                                  percent(std::max(0.0, result_.gain)), percent(result_.min_gain))});
    } else if (fitting() != nullptr) {
      result_.reasons.push_back(
          {"faster-plan", fmt::format("another plan gains {}: {}", percent(result_.gain),
                                      otherwise_text(*fitting(), result_.next, result_.moves.difference))});
    } else if (spares) {
      result_.reasons.push_back({"spares", "other hosts of the same kind take over"});
    }
  }

  const cluster::Fleet& fleet_;
  const model::Model& model_;
  PlanningOptions options_;
  Replanned result_;
  bool fits_ = false;
  std::optional<plan::LaunchPlan> spare_;
  std::size_t found_ = 0;  // plans of the search
  evolve::Decision decision_;
};

Json plan_json(const plan::LaunchPlan& plan) {
  return {{"plan_id", plan::plan_digest(plan)},
          {"iteration_s", to_seconds(plan.predicted.iteration)},
          {"tokens_per_s", plan.predicted.tokens_per_s},
          {"gpus", plan.ranks.size()}};
}

}  // namespace

PlanningOptions replan_options(PlanningOptions options) {
  options.search.top = std::max(options.search.top, kLeastCandidates);
  return options;
}

Expected<Replanned> replan(plan::LaunchPlan old, const cluster::Fleet& fleet, const model::Model& model,
                           PlanningOptions options, double min_gain, const compose::ProgressCallback& progress) {
  return Replanner(std::move(old), fleet, model, std::move(options), min_gain).run(progress);
}

std::string replanned_for_people(const Replanned& replanned, const Terminal& terminal) {
  std::string out = terminal.styled(replanned.change ? "change" : "keep", Style::kBold);
  std::string margin(10 - (replanned.change ? 6 : 4), ' ');
  for (const Reason& reason : replanned.reasons) {
    for (const std::string& line : wrapped(reason.text, terminal.text_width() - 10)) {
      out += margin + line + "\n";
      margin = std::string(10, ' ');
    }
  }
  if (!replanned.change) return out;
  const plan::LaunchPlan& before = replanned.now ? *replanned.now : replanned.old;
  return out + switch_for_people(before, replanned.next, replanned.moves, terminal);
}

Json replanned_json(const Replanned& replanned) {
  Json json;
  json["schema"] = "tangram.replan/1";
  json["status"] = replanned.change ? "different" : "ok";
  json["decision"] = replanned.change ? "change" : "keep";
  json["reasons"] = Json::array();
  for (const Reason& reason : replanned.reasons)
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
