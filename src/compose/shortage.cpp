#include "shortage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "space.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/relax/state_memory.hpp"

namespace tangram::compose {

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

double gib(Bytes bytes) { return bytes.as_double() / kGiB; }

const cluster::IslandClass& roomiest(const cluster::IslandLevel& level, const GpuTypes& types) {
  return *std::ranges::max_element(level.classes, {}, [&](const cluster::IslandClass& c) {
    return may_use(types, c) ? c.device.usable() : Bytes(0);
  });
}

// "the fleet has", or "A10G and L4 of the fleet have".
std::string owner_of_memory(const GpuTypes& types) {
  return types.empty() ? "the fleet has" : fmt::format("{} of the fleet have", fmt::join(types, " and "));
}

// What the state alone lacks can be counted in GPUs.
std::string hint_for_state(const cluster::IslandLevel& level, const GpuTypes& types, Bytes missing) {
  const cluster::IslandClass& best = roomiest(level, types);
  const double per_gpu = std::max(1.0, best.device.usable().as_double());
  const auto gpus = static_cast<long long>(missing.as_double() / per_gpu) + 1;
  return fmt::format("add at least {} {} ({:.0f} GiB usable each) for the state alone, or train a smaller model", gpus,
                     best.device.name, gib(best.device.usable()));
}

constexpr const char* kHintForTechniques =
    "the model's dimensions divide by no degree that the fleet's shapes offer: allow more techniques, add shapes or "
    "change dimensions";

/// Of modules, for people: "vision: tp 2 on A100"; empty: nothing.
std::string what_is_fixed(const model::Model& model) {
  std::vector<std::string> parts;
  for (const auto& fixed : constraints(model.graph)) parts.push_back(to_string(fixed));
  return fmt::format("{}", fmt::join(parts, " and "));
}

// Activations and buffers depend on the plan: no count of GPUs is promised.
constexpr const char* kHintForActivations = "add GPUs, or GPUs with more memory, or train a smaller model";

}  // namespace

Diagnostics out_of_time(const Deadline& deadline) {
  return {problem(ErrorKind::kIncomplete, "time-over",
                  fmt::format("no plan found within {:g} s; whether there is one is open", deadline.seconds()),
                  "give the search more seconds with --time-limit, or forbid techniques to make the space smaller")};
}

Diagnostics explain_shortage(const model::Model& model, const cluster::IslandLevel& level, const Attempts& attempts) {
  Diagnostic d;
  d.kind = ErrorKind::kInfeasible;
  if (attempts.no_batch) {
    d.code = "no-microbatch";
    d.message = fmt::format("no feasible plan: microbatch {} does not divide the global batch of {} samples",
                            model.job.microbatch, model.job.global_batch);
    d.hint = "choose a microbatch that divides the global batch";
    return {d};
  }
  const Bytes needed = relax::least_state(model);
  const Bytes usable = relax::usable_memory(level, attempts.gpu_types);
  d.code = "out-of-memory";
  if (needed > usable) {
    d.message = fmt::format(
        "no feasible plan: parameters, gradients and optimizer state of {} need {:.1f} GiB, {} {:.1f} GiB of usable "
        "GPU memory: {:.1f} GiB short",
        model.name, gib(needed), owner_of_memory(attempts.gpu_types), gib(usable), gib(needed - usable));
    d.hint = hint_for_state(level, attempts.gpu_types, needed - usable);
    return {d};
  }
  if (!attempts.some_slice_fits && attempts.smallest_shortage > Bytes(0)) {
    d.message =
        fmt::format("no feasible plan: not even one block of {} fits; the leanest strategy is {:.2f} GiB per GPU short",
                    model.name, gib(attempts.smallest_shortage));
    d.hint = kHintForActivations;
    return {d};
  }
  if (!attempts.some_slice_fits) {
    d.code = "no-strategy";
    d.message = fmt::format("no feasible plan: no allowed combination of techniques can run a block of {}", model.name);
    d.hint = kHintForTechniques;
    return {d};
  }
  if (const std::string fixed = what_is_fixed(model); !fixed.empty()) {
    d.code = "module-constraints";
    d.message = fmt::format("no feasible plan with {}", fixed);
    d.hint = "fix less of modules, or add GPUs";
    return {d};
  }
  d.message = fmt::format(
      "no feasible plan: state of {:.1f} GiB fits {:.1f} GiB of usable GPU memory, but not together with the "
      "activations and buffers of any pipeline; {:.1f} GiB are left beside the state",
      gib(needed), gib(usable), gib(usable - needed));
  d.hint = kHintForActivations;
  return {d};
}

}  // namespace tangram::compose
