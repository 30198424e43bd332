#include "tangram/multimodal/label.hpp"

#include <algorithm>

#include "stage_terms.hpp"
#include "tangram/base/at.hpp"

namespace tangram::multimodal {

Label across(const Label& label, const Price& price) {
  return {label.Lat + 2 * price.latency, label.A + price.latency, label.o, label.n, label.Q + 2 * price.latency};
}

BranchLabel across(const BranchLabel& label, const Price& price) {
  BranchLabel seen = label;
  seen.phi += price.latency;
  if (seen.K != kNoGradient) seen.K += price.latency;
  if (seen.reach != kUnlimited) seen.reach -= 2 * price.latency;
  return seen;
}

Label fork(const Label& a, const Label& b) {
  return {std::max(a.Lat, b.Lat), std::max(a.A, b.A), std::max(a.o, b.o), std::max(a.n, b.n), std::max(a.Q, b.Q)};
}

BranchLabel join(const BranchLabel& a, const BranchLabel& b) {
  return {std::max(a.phi, b.phi), std::max(a.K, b.K), std::max(a.o, b.o), std::min(a.room, b.room),
          std::min(a.reach, b.reach)};
}

std::optional<Label> prepend(const Stage& stage, const Label& behind, std::int64_t period, const InFlight& allowed) {
  const Candidate& plan = stage.plan;
  if (plan.T > period) return std::nullopt;
  Label label;
  label.Lat = plan.T + behind.Lat;
  label.A = std::max(behind.A + plan.F, plan.A + behind.Lat);
  label.o = std::max(behind.o, plan.o);
  const std::int64_t x = plan.T + behind.Q;
  label.n = std::max({behind.n + 1, ceil_divide(x, period), allowed.least});
  label.Q = std::max(period * (label.n - 1) + plan.T, x);
  if (label.n > allowed.most) return std::nullopt;
  return label;
}

// What the stage asks of those behind it turns the recursion of prepend() around: n is bounded by its memory, by the
// room in front, and through Q by the reach in front.
std::optional<BranchLabel> append(const BranchLabel& inputs, const Stage& stage, std::int64_t period,
                                  const InFlight& allowed) {
  const Candidate& plan = stage.plan;
  if (plan.T > period || allowed.most < allowed.least) return std::nullopt;
  BranchLabel label;
  label.phi = inputs.phi + plan.F;
  label.o = std::max(inputs.o, plan.o);
  if (stage.is_frozen()) return label;
  label.K = std::max(plan.A - plan.F, inputs.K == kNoGradient ? kNoGradient : inputs.K + stage.backward());
  std::int64_t n = std::min(allowed.most, inputs.room);
  if (inputs.reach != kUnlimited) {
    if (inputs.reach < plan.T) return std::nullopt;
    n = std::min(n, (inputs.reach - plan.T) / period + 1);
  }
  constexpr std::int64_t kWithReader = 2;  // what it feeds has one of its own
  if (n < std::max(allowed.least, kWithReader)) return std::nullopt;
  if (n == kUnlimited) return label;
  label.room = n - 1;
  label.reach = std::min(period * n, inputs.reach) - plan.T;
  return label;
}

std::optional<Label> chain_label(std::span<const Stage> stages, std::span<const Price> hops, const Label& behind,
                                 std::int64_t period, std::span<const InFlight> allowed, std::int64_t microbatches) {
  std::optional<Label> label = behind;
  for (std::size_t s = stages.size(); s-- > 0;) {
    if (s < hops.size()) {
      if (least_period(stages[s], hops[s], microbatches) > period) return std::nullopt;
      label = across(*label, hops[s]);
    }
    label = prepend(stages[s], *label, period, allowed[s]);
    if (!label) return std::nullopt;
  }
  return label;
}

std::optional<BranchLabel> branch_label(std::span<const Stage> stages, std::span<const Price> hops, std::int64_t period,
                                        std::span<const InFlight> allowed, std::int64_t microbatches) {
  std::optional<BranchLabel> label = BranchLabel{};
  for (std::size_t s = 0; s < stages.size(); ++s) {
    label = append(*label, stages[s], period, allowed[s]);
    if (!label) return std::nullopt;
    if (s == hops.size()) break;
    if (least_period(stages[s], hops[s], microbatches) > period) return std::nullopt;
    label = across(*label, hops[s]);
  }
  return label;
}

bool fits(const BranchLabel& branches, const Label& language) {
  return language.n <= branches.room && language.Q <= branches.reach;
}

std::int64_t joined_time(const BranchLabel& branches, const Label& language, std::int64_t microbatches,
                         std::int64_t period) {
  std::int64_t end = language.A + branches.phi;
  if (branches.K != kNoGradient) end = std::max(end, branches.phi + language.Lat + branches.K);
  return end + (microbatches - 1) * period + std::max(language.o, branches.o);
}

}  // namespace tangram::multimodal
