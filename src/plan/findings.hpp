// What the judge has found so far, and the steps of its work. Each step takes the plan and adds violations.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tangram/plan/check.hpp"

namespace tangram::plan {

/// Collects violations; of one kind the first few are shown and the rest counted, as one mistake in a large plan
/// shows at thousands of ranks.
class Findings {
 public:
  void add(std::string code, std::string where, std::string message) {
    auto& found = by_code_[code];
    if (++found.count <= kShown) {
      found.last = list_.size();
      list_.push_back({std::move(code), std::move(where), std::move(message)});
    }
  }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::vector<Violation> take() && {
    for (const auto& [code, found] : by_code_) {
      if (found.count > kShown) {
        list_[found.last].message += " (and " + std::to_string(found.count - kShown) + " more like this)";
      }
    }
    return std::move(list_);
  }

 private:
  static constexpr int kShown = 8;
  struct Found {
    int count = 0;
    std::size_t last = 0;
  };
  std::map<std::string, Found> by_code_;
  std::vector<Violation> list_;
};

[[nodiscard]] inline std::string at_stage(int id) { return "stage " + std::to_string(id); }
[[nodiscard]] inline std::string at_part(int stage, std::size_t part) {
  return at_stage(stage) + " part " + std::to_string(part);
}
[[nodiscard]] inline std::string at_rank(int rank) { return "rank " + std::to_string(rank); }
[[nodiscard]] inline std::string at_island(int id) { return "island " + std::to_string(id); }
[[nodiscard]] inline std::string at_pipeline(int id) { return "pipeline " + std::to_string(id); }
[[nodiscard]] inline std::string at_boundary(const Boundary& b) {
  return "boundary " + std::to_string(b.from) + "->" + std::to_string(b.to);
}

/// Identifiers, references and ranges that everything else relies on. False: the other steps cannot run.
[[nodiscard]] bool check_references(const LaunchPlan& plan, Findings& findings);

/// Blocks, embedding and head, degrees, techniques, samples; a schedule that the runtime has.
void check_pipelines(const LaunchPlan& plan, Findings& findings);

/// Islands, hosts and GPUs; ranks and their coordinates.
void check_ranks(const LaunchPlan& plan, Findings& findings);

/// Each sample and position crosses each boundary once, from an owner to an owner.
void check_transfers(const LaunchPlan& plan, Findings& findings);

/// Times and memory of one part, worked out anew.
struct RecomputedPart {
  bool known = false;  ///< false: degrees the cost model refuses; the written figures stand in
  PartPrediction predicted;
  EncoderPrediction encoders = {};   ///< colocated ones
  Bytes gradient_volume = Bytes(0);  ///< of the whole stage, what replicas exchange
};
using Recomputed = std::vector<std::vector<RecomputedPart>>;  ///< [stage][part]

/// What a part's synchronisation takes beside its own: with replicas, other parts, the far end of a tied embedding.
[[nodiscard]] inline std::int64_t crossing_of(const PartPrediction& written, const PartPrediction& computed) {
  return written.gradient_sync.value() - computed.gradient_sync.value();
}

/// The fleet's nodes by the names of hosts.
class NodesByHost {
 public:
  explicit NodesByHost(const cluster::Fleet& fleet) {
    for (std::size_t i = 0; i < fleet.nodes.size(); ++i) nodes_[fleet.nodes[i].name] = i;
  }
  [[nodiscard]] std::optional<std::size_t> find(const std::string& host) const {
    const auto found = nodes_.find(host);
    return found == nodes_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::string, std::size_t> nodes_;
};

/// The shape the part's ranks form on its island; a part that spills over several islands of a class sees the link
/// between them.
[[nodiscard]] cluster::DeviceShape checked_shape(const LaunchPlan& plan, const Part& part);

/// Colocated encoders: their layouts, lanes, turns, and what they hand over.
void check_colocated(const LaunchPlan& plan, Findings& findings);

/// What they take on a part's GPUs, worked out anew and compared.
[[nodiscard]] EncoderPrediction check_encoders(const LaunchPlan& plan, const Stage& stage, const Part& part,
                                               const std::string& where, Findings& findings);

[[nodiscard]] Recomputed check_costs(const LaunchPlan& plan, Findings& findings);

/// In-flight microbatches, warm-up, period and closed form (src/chain/README.md). Returns the closed form.
[[nodiscard]] Nanoseconds check_schedule(const LaunchPlan& plan, const Recomputed& recomputed, Findings& findings);

/// Groups of microbatches that the runtime takes, chunks that hand over alike.
void check_interleaving(const LaunchPlan& plan, Findings& findings);

/// Bytes that the chunks' activations take at their peak, where the microbatches go through them in groups and the
/// stage runs `warmup` forward passes before its first backward pass.
[[nodiscard]] std::int64_t interleaved_activations(const PartPrediction& part, std::int64_t microbatches,
                                                   std::int64_t group, std::int64_t warmup);

/// What the judge needs of a pipeline's stages to say how long an interleaved iteration takes at least. Nanoseconds.
struct InterleavedStage {
  std::vector<std::int64_t> forward;  ///< of each chunk, in its slowest part
  std::vector<std::int64_t> backward;
  std::int64_t compute = 0;  ///< of a microbatch through all chunks, in its slowest part
  std::int64_t exposed = 0;  ///< of gradient synchronisation
  std::int64_t latency = 0;  ///< of the boundary behind it, which leads from the last stage to the first
  std::int64_t occupancy = 0;
};

/// No iteration is shorter until all gradients are synchronised. No stage begins before the first activation has come
/// to it, each runs all its passes and waits for what the runtime makes it wait for, and the last gradient goes back
/// through all stages before it: what none of this explains is not in it.
[[nodiscard]] std::int64_t interleaved_least(const std::vector<InterleavedStage>& stages, std::int64_t microbatches,
                                             runtime::Transfers transfers);

/// Until all gradients are synchronised, by closed form (src/chain/README.md), from the inequalities over all runs of
/// stages. `group`: microbatches that pass a chunk in a row.
[[nodiscard]] std::int64_t interleaved_closed_form(const std::vector<InterleavedStage>& stages,
                                                   std::int64_t microbatches, std::int64_t group,
                                                   runtime::Transfers transfers);

/// Forward passes of stage s of S before its first backward pass, of M microbatches in v chunks.
[[nodiscard]] std::int64_t interleaved_warmup(std::int64_t stage, std::int64_t stages, std::int64_t chunks,
                                              std::int64_t group, std::int64_t microbatches);

/// Bounds and gaps against the plan's times and each other.
void check_provenance(const LaunchPlan& plan, Findings& findings);

/// Verdicts about runtimes.
void check_targets(const LaunchPlan& plan, Findings& findings);

/// Hosts, GPUs, links and the model against what they really are.
void check_against(const LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model* model, Findings& findings);

/// Gradients that replicas exchange across hosts take as long as the fleet's networks need, at least. Pipelines that
/// are cut alike; the network counts as if it were there for these replicas alone. O(parts x hosts^2).
void check_crossing(const LaunchPlan& plan, const Recomputed& recomputed, const cluster::Fleet& fleet,
                    Findings& findings);

}  // namespace tangram::plan
