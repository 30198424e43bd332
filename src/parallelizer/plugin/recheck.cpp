#include "recheck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "../keep_frontier.hpp"
#include "claims.hpp"
#include "messages.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/sharding.hpp"
#include "tangram/parallelizer/degrees.hpp"

namespace tangram::parallelizer {
namespace {

using Json = nlohmann::json;

// A claim this close below a bound is rounding, not nonsense.
constexpr double kRounding = 0.999;

std::optional<Rejection> rejection(std::string code, std::string message) {
  return Rejection{std::move(code), std::move(message)};
}

/// A technique that the query does not allow, or nothing.
std::string forbidden(const cost::Strategy& strategy, const model::Techniques& allow) {
  const auto& [degrees, policy] = strategy;
  const std::tuple<bool, bool, const char*> uses[] = {
      {degrees.tp > 1, allow.tp, "tp"},
      {degrees.sequence_parallel, allow.sp, "sp"},
      {degrees.cp > 1, allow.cp, "cp"},
      {degrees.dp > 1, allow.dp, "dp"},
      {degrees.ep > 1, allow.ep, "ep"},
      {policy.zero == 1, allow.zero1, "zero1"},
      {policy.zero == 2, allow.zero2, "zero2"},
      {policy.zero == 3, allow.zero3, "zero3"},
      {policy.recompute == cost::RecomputeMode::kSelective, allow.recompute_selective, "recompute_selective"},
      {policy.recompute == cost::RecomputeMode::kFull, allow.recompute_full, "recompute_full"},
  };
  for (const auto& [used, allowed, name] : uses) {
    if (used && !allowed) return name;
  }
  return "";
}

/// Whether ZeRO has anything to shard over.
bool shards(const model::Model& model, const Query& query, const cost::Degrees& degrees) {
  return cost::has_shards(degrees, traits_of(model, query.slice).experts > 0);
}

/// Why ZeRO cannot shard like this, or nothing.
std::string wrong_groups(const model::Model& model, const Query& query, const cost::Strategy& strategy) {
  const cost::Degrees& d = strategy.degrees;
  if (!strategy.policy.shards()) return d.dp_replicate > 1 ? "dp_replicate without ZeRO" : "";
  if (!shards(model, query, d)) return "ZeRO with nothing to shard over";
  const model::ShardingGroup& wanted = model.job.sharding_group;
  if (wanted.kind == model::ShardingGroup::Kind::kAny) return "";
  return cost::replicate_of(wanted, d, query.shape) == d.dp_replicate ? "" : "another sharding group than the job's";
}

/// What the target's runtime demands of the stage and the strategy does not keep, or nothing.
std::string unmet(const model::Model& model, const Query& query, const cost::Strategy& strategy) {
  const Demands& demands = query.demands;
  const auto& [degrees, policy] = strategy;
  if (!admits(demands, model, query.slice, degrees)) return "other degrees than the target's runtime demands here";
  if (demands.equal_samples && query.samples % degrees.dp != 0) return "replicas of a stage get equally many samples";
  if (demands.alike && policy.is_mixed()) return "the target's runtime treats the blocks of a stage alike";
  if (demands.recompute && policy.recompute != *demands.recompute) return "another recompute mode than the target's";
  const bool whole =
      policy.recompute != cost::RecomputeMode::kFull || policy.recompute_layers == query.slice.block_count();
  if ((demands.recompute || demands.whole_recompute) && !whole) {
    return "full recompute of some blocks, the target demands it of all";
  }
  if (demands.zero1 && policy.zero != (shards(model, query, degrees) ? 1 : 0)) {
    return "ZeRO-1 wherever there is something to shard is the target's demand";
  }
  return "";
}

/// What does not fit the query's shape, samples or techniques.
std::optional<Rejection> query_mismatch(const model::Model& model, const Query& query, const cost::Strategy& strategy) {
  const cost::Degrees& d = strategy.degrees;
  const std::int64_t gpus = std::int64_t{d.tp} * d.cp * d.dp;
  if (gpus != query.shape.gpus()) {
    return rejection("wrong-gpus", fmt::format("tp {} x cp {} x dp {} are {} GPUs, the shape has {}", d.tp, d.cp, d.dp,
                                               gpus, query.shape.gpus()));
  }
  if (query.shape.per_node % d.tp != 0) {
    return rejection("tp-leaves-node",
                     fmt::format("tp {} does not divide the {} GPUs of a node", d.tp, query.shape.per_node));
  }
  if (query.samples < d.dp) {
    return rejection("too-few-samples", fmt::format("dp {} is more than {} samples", d.dp, query.samples));
  }
  if (gpus % (std::int64_t{d.ep} * d.etp) != 0) {
    return rejection("wrong-gpus", fmt::format("ep {} x etp {} does not divide {} GPUs", d.ep, d.etp, gpus));
  }
  if (d.sequence_parallel && d.tp == 1)
    return rejection("unsupported", "sequence parallelism without tensor parallelism");
  if (d.dp % d.dp_replicate != 0) {
    return rejection("unsupported", fmt::format("dp_replicate {} does not divide dp {}", d.dp_replicate, d.dp));
  }
  if (std::string why = wrong_groups(model, query, strategy); !why.empty()) {
    return rejection("unsupported", std::move(why));
  }
  if (const std::string name = forbidden(strategy, query.allow); !name.empty()) {
    return rejection("not-allowed", fmt::format("uses {}, which the job does not allow", name));
  }
  if (std::string why = unmet(model, query, strategy); !why.empty()) return rejection("not-demanded", std::move(why));
  return std::nullopt;
}

/// ns that no GPU of this type stays below: the slice's matrix products at the highest rate of any kernel.
double least_time(const model::Model& model, const Query& query, const cost::ProfileSet* profiles) {
  double seconds = 0;
  for (const auto& [type, count] : query.slice.runs) {
    seconds += count * cost::least_gpu_seconds(model, at(model.types, type), query.shape.device, profiles);
  }
  if (query.slice.head) seconds += cost::least_gpu_seconds_head(model, query.shape.device, profiles);
  return seconds * query.samples / query.shape.gpus() * 1e9;
}

/// Claims that cannot be true, whatever the strategy.
std::optional<Rejection> impossible(const model::Model& model, const Query& query, const Claims& claims, double floor) {
  if (const auto time = claims.time(); time && *time < floor * kRounding) {
    return rejection(
        "impossible-time",
        fmt::format("claims {:.0f} ns forward and backward, at its peak the device takes {:.0f}", *time, floor));
  }
  const double parameters =
      model::held_parameters(model, query.slice) * cost::least_parameter_bytes(model.job) / query.shape.gpus();
  if (claims.static_memory && *claims.static_memory < parameters * kRounding) {
    return rejection("impossible-memory",
                     fmt::format("claims {:.0f} bytes of static memory, sharded parameters alone are {:.0f}",
                                 *claims.static_memory, parameters));
  }
  const double peak = claims.static_memory.value_or(0) + claims.transient.value_or(0) + claims.activation.value_or(0);
  const double usable = query.shape.device.usable().as_double();
  if (peak > usable) {
    return rejection("out-of-memory",
                     fmt::format("needs {:.0f} bytes by its own account, {:.0f} are usable", peak, usable));
  }
  return std::nullopt;
}

Judged<PartialPlan> recompute(const model::Model& model, const cost::ProfileSet* profiles, const Query& query,
                              const ClaimedPlan& claimed) {
  const auto units =
      cost::unit_costs_of(model, query.slice, query.shape, claimed.strategy.degrees, query.samples, profiles);
  if (!units) return tl::unexpected(Rejection{"unsupported", units.error().front().message});
  PartialPlan plan;
  plan.strategy = claimed.strategy;
  plan.cost = cost::stage_cost(*units, query.slice, claimed.strategy.policy);
  plan.n_max = cost::max_in_flight(plan.cost, query.shape.device.usable());
  plan.opaque = claimed.opaque;
  if (plan.n_max < 1) {
    return tl::unexpected(
        Rejection{"out-of-memory", fmt::format("needs {} bytes with one microbatch in flight, {} are usable",
                                               plan.cost.peak(1).value(), query.shape.device.usable().value())});
  }
  return plan;
}

void note_claim(Outcome& outcome, const Claims& claims, const cost::StageCost& cost) {
  const double recomputed = (cost.forward + cost.backward).as_double();
  const auto time = claims.time();
  if (!time || recomputed <= 0) return;
  const double ratio = *time / recomputed;
  const ClaimRange before = outcome.claimed.value_or(ClaimRange{ratio, ratio});
  outcome.claimed = ClaimRange{std::min(before.least, ratio), std::max(before.most, ratio)};
}

Outcome failed(Failure failure) {
  Outcome outcome;
  outcome.status = OutcomeStatus::kFailed;
  outcome.message = failure.message;
  outcome.failure = std::move(failure);
  return outcome;
}

/// An answer of type "error".
Outcome refusal(const Json& said, const Query& query) {
  const auto text = [&said](const char* key) {
    const auto found = said.find(key);
    return found != said.end() && found->is_string() ? excerpt(found->get<std::string>(), 200) : std::string();
  };
  const std::string code = text("code");
  Outcome outcome;
  outcome.message = text("message");
  if (code == "unsupported") {
    outcome.status = OutcomeStatus::kUnsupported;
    return outcome;
  }
  if (code != "infeasible") {
    return failed({FailureKind::kRefused, fmt::format("{}: {}", code.empty() ? "error" : code, outcome.message), ""});
  }
  outcome.status = OutcomeStatus::kInfeasible;
  const auto needed = said.find("needed_bytes");
  if (needed != said.end() && needed->is_number()) {
    const double short_of = needed->get<double>() - query.shape.device.usable().as_double();
    if (short_of > 0) outcome.shortage = ceil_to_bytes(short_of);
  }
  return outcome;
}

}  // namespace

Outcome Recheck::judge(const Query& query, const Answer& answer) const {
  if (answer.failure) return failed(*answer.failure);
  const Json said = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object()) return failed({FailureKind::kProtocol, "not an object: " + excerpt(answer.body), ""});
  if (said.value("type", Json()) == Json("error")) return refusal(said, query);
  const auto plans = said.find("plans");
  if (plans == said.end() || !plans->is_array()) {
    return failed({FailureKind::kProtocol, "a result without \"plans\": " + excerpt(answer.body), ""});
  }
  Outcome outcome;
  const double floor = least_time(model_, query, profiles_);
  for (const Json& entry : *plans) {
    const auto claimed = read_claimed_plan(entry, model_, query.slice);
    std::optional<Rejection> wrong;
    if (!claimed) wrong = claimed.error();
    if (!wrong) wrong = query_mismatch(model_, query, claimed->strategy);
    if (!wrong) wrong = impossible(model_, query, claimed->claims, floor);
    if (wrong) {
      outcome.rejected.push_back(std::move(*wrong));
      continue;
    }
    auto plan = recompute(model_, profiles_, query, *claimed);
    if (!plan) {
      outcome.rejected.push_back(std::move(plan.error()));
      continue;
    }
    note_claim(outcome, claimed->claims, plan->cost);
    plan->parallelizer = name_;
    outcome.plans.push_back(std::move(*plan));
  }
  keep_frontier(outcome.plans, query.max_in_flight);
  return outcome;
}

}  // namespace tangram::parallelizer
