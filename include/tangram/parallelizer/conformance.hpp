// Whether a plugin keeps to the protocol, for its author. Goes in: how to run it. Comes out: one line for each thing
// that is expected of it, with what was seen instead.
#pragma once

#include <string>
#include <vector>

#include "tangram/parallelizer/plugin.hpp"
#include "tangram/parallelizer/tally.hpp"

namespace tangram::parallelizer {

struct ConformanceCheck {
  std::string name;  ///< what is expected: "answers every question"
  bool ok = false;
  std::string detail;  ///< what was seen; of a check that failed also what to do
};

struct ConformanceReport {
  std::vector<ConformanceCheck> checks;  ///< ends early where nothing further can be tried
  Tally tally;                           ///< of all questions
  std::string printed;                   ///< the last the plugin printed when it failed

  [[nodiscard]] bool ok() const;
};

/// Asks about a hundred small questions: slices of a model of eight blocks, one to sixteen A100, microbatches of one to
/// sixteen samples, memory that suffices and memory that does not.
[[nodiscard]] ConformanceReport test_plugin(const PluginSpec& spec, const PluginOptions& options, Launcher& launcher);

}  // namespace tangram::parallelizer
