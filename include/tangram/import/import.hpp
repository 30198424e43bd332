// Jobs as runtimes and other planners write them, read back. Goes in: the files, then the fleet and the model they were
// written for. Comes out: a launch plan that can be checked, simulated and compared like one of our own. What a file
// says is kept even where it is wrong (layers left out, memory that does not suffice): check() tells.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/model/model.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::importing {

enum class Source : std::uint8_t {
  kMegatron,   ///< arguments of Megatron-LM's pretrain_gpt.py, in a script or a file of their own
  kMimo,       ///< components of Megatron-Bridge MIMO, in a script or a file of their own
  kFlagscale,  ///< FlagScale's training YAML
  kSailor,     ///< plan of Sailor's simulator, or what its planner writes
  kGalvatron,  ///< strategy of Galvatron
  kFlashflex,  ///< layout of FlashFlex
  kMetis,      ///< what Metis prints: its ranked list of plans
};

struct SourceName {
  std::string_view name;
  Source source;
};
[[nodiscard]] std::span<const SourceName> source_names();

/// Beside the job itself two kinds of files say which GPU has which rank: a host file ("host slots=N" a line) and a
/// rank map (CSV with rank, host, gpu and pipeline), as the exporters write them. They are told apart by content.
struct SourceFile {
  std::string path;
  std::string text;
};

/// What the files say, before fleet and model are known.
struct Job;
class ReadJob {
 public:
  explicit ReadJob(std::unique_ptr<const Job> job);
  ReadJob(ReadJob&& other) noexcept;
  ReadJob& operator=(ReadJob&& other) noexcept;
  ~ReadJob();

  /// Sequence length and batch, as far as the files say them; they take the place of the model file's own.
  [[nodiscard]] const model::JobOverrides& overrides() const;
  [[nodiscard]] const Job& job() const { return *job_; }

 private:
  std::unique_ptr<const Job> job_;
};

/// Every mistake becomes a diagnostic with its place. `rank`: which plan of files that list several, from 1.
[[nodiscard]] Expected<ReadJob> read_job(Source source, const std::vector<SourceFile>& files, std::int64_t rank = 1);

struct Options {
  double island_tolerance = 0.10;
  const cost::ProfileSet* profiles = nullptr;  ///< must outlive the call
  /// find_islands of the fleet, for callers with many jobs; null: found anew. Must outlive the call.
  const cluster::IslandHierarchy* hierarchy = nullptr;
};

struct Imported {
  plan::LaunchPlan plan;
  model::Model model;              ///< as the job runs it: with the execution options that it says
  std::vector<std::string> notes;  ///< what was assumed
};

/// The plan on the fleet, with times and memory as the planner's own plans have them, warm-ups those of classic 1F1B.
/// Fails where the job cannot be said at all: another model, GPUs that the fleet has not, degrees that no cost exists
/// for, a stage without layers.
[[nodiscard]] Expected<Imported> make_plan(const ReadJob& job, const cluster::Fleet& fleet, const model::Model& model,
                                           const Options& options = {});

}  // namespace tangram::importing
