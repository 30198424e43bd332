#include "tangram/parallelizer/tally.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tangram::parallelizer {
namespace {

void count(std::vector<CountedReason>& reasons, const CountedReason& reason) {
  const auto at =
      std::lower_bound(reasons.begin(), reasons.end(), reason.code,
                       [](const CountedReason& known, const std::string& code) { return known.code < code; });
  if (at != reasons.end() && at->code == reason.code) {
    at->count += reason.count;
  } else {
    reasons.insert(at, reason);
  }
}

void widen(std::optional<ClaimRange>& range, const std::optional<ClaimRange>& by) {
  if (!by) return;
  if (!range) {
    range = by;
    return;
  }
  range->least = std::min(range->least, by->least);
  range->most = std::max(range->most, by->most);
}

/// Only a clock was in the way.
bool only_late(const Tally& tally) {
  return tally.timed_out && std::ranges::all_of(tally.failed, [](const CountedReason& reason) {
           return reason.code == to_string(FailureKind::kTimedOut) || reason.code == to_string(FailureKind::kGivenUp);
         });
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  const std::size_t start = text.rfind('\n');
  return start == std::string::npos ? text : text.substr(start + 1);
}

}  // namespace

std::string_view to_string(FailureKind kind) {
  switch (kind) {
    case FailureKind::kUnavailable: return "unavailable";
    case FailureKind::kCrashed: return "crashed";
    case FailureKind::kProtocol: return "protocol";
    case FailureKind::kRefused: return "refused";
    case FailureKind::kTimedOut: return "timed-out";
    case FailureKind::kGivenUp: return "given-up";
    case FailureKind::kNotCached: return "not-cached";
  }
  return "crashed";
}

void Tally::add(const Outcome& outcome) {
  ++queries;
  plans += static_cast<std::int64_t>(outcome.plans.size());
  infeasible += outcome.status == OutcomeStatus::kInfeasible ? 1 : 0;
  unsupported += outcome.status == OutcomeStatus::kUnsupported ? 1 : 0;
  for (const Rejection& rejection : outcome.rejected) count(rejected, {rejection.code, 1, rejection.message});
  widen(claimed, outcome.claimed);
  if (outcome.status != OutcomeStatus::kFailed) return;
  const Failure failure = outcome.failure.value_or(Failure{FailureKind::kRefused, outcome.message, ""});
  count(failed, {std::string(to_string(failure.kind)), 1, failure.message});
  timed_out = timed_out || failure.kind == FailureKind::kTimedOut;
  if (!first_failure) first_failure = failure;
}

void Tally::add(const Tally& later) {
  queries += later.queries;
  plans += later.plans;
  infeasible += later.infeasible;
  unsupported += later.unsupported;
  for (const CountedReason& reason : later.rejected) count(rejected, reason);
  for (const CountedReason& reason : later.failed) count(failed, reason);
  timed_out = timed_out || later.timed_out;
  if (!first_failure) first_failure = later.first_failure;
  widen(claimed, later.claimed);
}

std::int64_t Tally::failures() const {
  std::int64_t all = 0;
  for (const CountedReason& reason : failed) all += reason.count;
  return all;
}

bool any_failed(const std::vector<Tally>& tallies) {
  return std::ranges::any_of(tallies, [](const Tally& tally) { return tally.failures() > 0; });
}

std::string failure_text(const Tally& tally) {
  return fmt::format("parallelizer {} failed on {} of {} queries: {}", tally.info.name, tally.failures(), tally.queries,
                     tally.first_failure ? tally.first_failure->message : tally.failed.front().example);
}

Diagnostics failures_of(const std::vector<Tally>& tallies) {
  Diagnostics failures;
  for (const Tally& tally : tallies) {
    if (tally.failures() == 0) continue;
    Diagnostic failure;
    failure.kind = only_late(tally) ? ErrorKind::kIncomplete : ErrorKind::kPlugin;
    failure.code = "parallelizer-failed";
    failure.message = failure_text(tally);
    const std::string printed = tally.first_failure ? last_line(tally.first_failure->output) : std::string();
    const bool not_cached = tally.first_failure && tally.first_failure->kind == FailureKind::kNotCached;
    failure.hint = not_cached        ? "plan once without --offline: that asks the plugin and fills the cache"
                   : printed.empty() ? fmt::format("tangram parallelizers test {} shows details", tally.info.name)
                                     : fmt::format("its last output: {}", printed);
    failures.push_back(std::move(failure));
  }
  return failures;
}

}  // namespace tangram::parallelizer
