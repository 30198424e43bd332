// Execution options of a job that a planner may choose: how software runs the same training. Goes in: names as people
// write them. Comes out: sets of options, and their values of a job. What a runtime has of them is runtime::Runtime's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tangram/base/enum_set.hpp"

namespace tangram::model {

enum class ExecutionOption : std::uint8_t {
  kCudaGraphs,
  kExpertDispatch,
  kExpertOverlap,
  kGatherOverlap,
  kTensorOverlap,
  kFusedLoss,
  kRecomputeModules,
  kOffloadModules,
  kContextExchange,
};
using OptionSet = EnumSet<ExecutionOption>;

struct OptionName {
  std::string_view name;  ///< its key of `training`
  ExecutionOption option;
  bool plain;  ///< flags of the runtime are all it takes; else it is chosen where somebody names it
};

/// In the order in which they are listed to people.
[[nodiscard]] std::span<const OptionName> option_names();
[[nodiscard]] std::string_view to_string(ExecutionOption option);
[[nodiscard]] std::optional<ExecutionOption> option_named(std::string_view name);

/// "as-given", which leaves none free, "any", and names.
struct WantedOptions {
  bool any = false;  ///< all plain ones that the job does not set
  OptionSet named;

  /// Of a job that sets none.
  [[nodiscard]] OptionSet all() const;
};
/// nullopt: one of the words is unknown.
[[nodiscard]] std::optional<WantedOptions> wanted_options(std::span<const std::string> words);

/// "did you mean ...?" or the list of all words.
[[nodiscard]] std::string option_hint(std::string_view word);

struct Job;
struct Model;

/// The option's value of a job, as people are told: "blocks", "true", "layernorm+mlp".
[[nodiscard]] std::string value_of(ExecutionOption option, const Job& job);

/// Why Transformer Engine's context parallelism does not run the model's attention by its context_exchange; empty: it
/// does.
[[nodiscard]] std::string_view context_conflict(const Model& model);

/// Takes the option's value over.
void copy_option(ExecutionOption option, const Job& from, Job& to);

/// The model with the values of `chosen` where its own job leaves them free, and no option free.
[[nodiscard]] Model settled(Model model, const Job& chosen);

}  // namespace tangram::model
