// Measured times of blocks, embeddings and heads. Goes in: profiles (profile_file.hpp). Comes out: the time of a unit
// at given degrees and samples where it was measured, or lies between two measurements; nothing elsewhere. And the
// curves of collectives that belong to a stage (collective_curves.hpp).
//
// A row counts for a unit when GPU (name, and a device that computes as fast as the one profiled: a throttled node does
// not), dimensions, matrix format, flash attention and degrees are equal. Between measured neighbours, in this order:
//   samples   t(b) = t0 + (t1 - t0) (b - b0) / (b1 - b0),                           b0 < b < b1
//   tp        t(p) = t0 (t1 / t0)^x,   x = log(p / p0) / log(p1 / p0),              p0 < p < p1
//             for forward and backward together (logarithms are linear), shared out as the formula gives each
//   sequence  t(s) = a s + c s^2 through both neighbours: a share per token (products with weights, norms) and an
//             attention term that grows with the sequence; as a formula t(s) / s is linear in s,   s0 < s < s1
// Sequence interpolation takes its two neighbours from the other two, so that up to eight rows decide; activations
// follow the same formulas. Rows of tp 1 are neighbours with and without sequence parallelism, which shards nothing
// there. Outside of the neighbours nothing is said; the model answers. Of several profiles the first that knows wins.
// What a scaled row gives is called corrected (scaled_rows.hpp).
//
// What a row holds: compute of one GPU, and the exchanges of tensor parallelism where the profile says so. Those of
// context and expert parallelism depend on where the ranks are and are always added by the model.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/cluster/gpu.hpp"
#include "tangram/cost/collective_curves.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/cost/strategy.hpp"

namespace tangram::cost {

/// Where a time is from, the nearest to a measurement first.
enum class Provenance : std::uint8_t {
  kMeasured,
  kInterpolated,
  kCorrected,  ///< by a scaled row: the model's time, times what the nearest measured rows took of theirs
  kModelled
};
[[nodiscard]] std::string_view to_string(Provenance provenance);

enum class ProfileKind : std::uint8_t { kBlock, kEmbedding, kHead };

struct ProfileRow {
  Degrees degrees;  ///< dp is 1: samples are those of one replica
  std::int64_t samples = 1;
  Nanoseconds forward;
  Nanoseconds backward;
  Bytes activation;     ///< kept for backward without recompute; 0: not measured
  bool scaled = false;  ///< not measured: the model's time, times what measured rows of the unit took of theirs
  bool operator==(const ProfileRow&) const = default;
};

/// One unit in one precision at one sequence length.
struct ProfileUnit {
  ProfileKind kind = ProfileKind::kBlock;
  model::BlockType block;       ///< kBlock; name empty, tokens the sequence length
  std::int64_t vocabulary = 0;  ///< kEmbedding, kHead
  std::int64_t hidden = 0;      ///< kEmbedding, kHead
  std::int64_t sequence_length = 0;
  DType dtype = DType::kBf16;
  bool flash_attention = true;   ///< kBlock
  std::vector<ProfileRow> rows;  ///< ascending by degrees, then samples; no two equal in both
  bool operator==(const ProfileUnit&) const = default;
};

/// What was measured on one GPU type.
struct Profile {
  cluster::GpuType device;
  std::string source;
  std::string date;  ///< YYYY-MM-DD; empty: not known
  bool includes_tp_communication = false;
  std::vector<ProfileUnit> units;
  std::vector<CollectiveCurve> collectives;
  bool operator==(const Profile&) const = default;
};

/// Whether kernels run equally fast: same name, rates and calibration. Memory size, links and price may differ.
[[nodiscard]] bool computes_alike(const cluster::GpuType& a, const cluster::GpuType& b);

/// The same, and joined by the same links.
[[nodiscard]] bool communicates_alike(const cluster::GpuType& a, const cluster::GpuType& b);

/// A row of a ProfileSet, by position.
struct RowId {
  std::size_t profile = 0;
  std::size_t unit = 0;
  std::size_t row = 0;
  auto operator<=>(const RowId&) const = default;
};

/// A collective curve of a ProfileSet, by position.
struct CurveId {
  std::size_t profile = 0;
  std::size_t curve = 0;
  auto operator<=>(const CurveId&) const = default;
};

/// A part of a ProfileSet.
struct Selection {
  std::set<RowId> rows;
  std::set<CurveId> curves;
};

struct Measured {
  Passes time;            ///< seconds
  double activation = 0;  ///< bytes; 0: not measured
  bool includes_tp_communication = false;
  Provenance provenance = Provenance::kMeasured;
  std::vector<RowId> rows;  ///< what it was worked out from, ascending; one where the point itself was measured
};

class ProfileSet {
 public:
  void add(Profile profile) { profiles_.push_back(std::move(profile)); }
  /// Block types run at the degrees and samples alone at which a profile knows them; ends are modelled elsewhere.
  void require_measured() { measured_only_ = true; }
  [[nodiscard]] bool measured_only() const { return measured_only_; }
  [[nodiscard]] const std::vector<Profile>& profiles() const { return profiles_; }
  [[nodiscard]] bool empty() const { return profiles_.empty(); }

  /// `samples` of one replica. O(rows).
  [[nodiscard]] std::optional<Measured> block(const model::BlockType& block, const model::Job& job,
                                              const Degrees& degrees, std::int64_t samples,
                                              const cluster::GpuType& device) const;
  /// kEmbedding or kHead. An embedding that is projected to the model's width was not measured.
  [[nodiscard]] std::optional<Measured> edge(ProfileKind kind, const model::Model& model, const Degrees& degrees,
                                             std::int64_t samples, const cluster::GpuType& device) const;

  /// The least GPU-seconds that one sample costs in any row that counts for the unit on this device, at any degrees, or
  /// would cost by the row of another sequence length at its time per token; infinite without rows. What interpolation
  /// gives is never less: GPU-seconds per token lie between those of the neighbours in samples ((a + c b) / b is
  /// monotone in b), in tp (log-linear still after times tp) and in sequence (linear).
  [[nodiscard]] double least_block_gpu_seconds(const model::BlockType& block, const model::Job& job,
                                               const cluster::GpuType& device) const;
  [[nodiscard]] double least_head_gpu_seconds(const model::Model& model, const cluster::GpuType& device) const;

  /// The curves of a device that communicates alike, measured in one of these groups of more than one rank. A group of
  /// a curve says how many ranks of how many nodes, not over which network: curves across nodes belong to one fleet.
  [[nodiscard]] std::set<CurveId> curves_of(const ProcessGroups& groups, const cluster::GpuType& device) const;
  [[nodiscard]] const CollectiveCurve& curve(const CurveId& id) const;

  /// These rows and curves alone, in the same order; units and profiles without any are left out.
  [[nodiscard]] ProfileSet select(const Selection& selection) const;

  bool operator==(const ProfileSet&) const = default;

 private:
  std::vector<Profile> profiles_;
  bool measured_only_ = false;
};

}  // namespace tangram::cost
