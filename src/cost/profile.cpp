#include "tangram/cost/profile.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace tangram::cost {
namespace {

/// What a row must be equal to.
struct Wanted {
  ProfileKind kind;
  const model::BlockType* block;  ///< kBlock
  std::int64_t vocabulary;
  std::int64_t hidden;
  std::int64_t tokens;
  DType precision;
  bool flash_attention;
};

Wanted wanted_block(const model::BlockType& block, const model::Job& job) {
  return {ProfileKind::kBlock, &block, 0, 0, block.tokens, job.precision, job.flash_attention};
}

Wanted wanted_edge(ProfileKind kind, const model::Model& model) {
  return {kind, nullptr, model.vocabulary, model.hidden, model.job.sequence_length, model.job.precision, false};
}

bool equal_dimensions(const model::BlockType& a, const model::BlockType& b) {
  return a.hidden == b.hidden && a.attention == b.attention && a.feed_forward == b.feed_forward && a.norms == b.norms &&
         a.norm_bias == b.norm_bias && a.parallel_attention == b.parallel_attention;
}

bool is_of(const ProfileUnit& unit, const Wanted& wanted, const cluster::GpuType& device) {
  if (unit.kind != wanted.kind || unit.sequence_length != wanted.tokens) return false;
  if (matrix_format(device, unit.dtype) != matrix_format(device, wanted.precision)) return false;
  if (unit.kind != ProfileKind::kBlock) return unit.vocabulary == wanted.vocabulary && unit.hidden == wanted.hidden;
  return unit.flash_attention == wanted.flash_attention && equal_dimensions(unit.block, *wanted.block);
}

/// Expert degrees matter where there are experts.
bool same_degrees(const Degrees& row, const Degrees& wanted, bool experts) {
  const bool dense = row.tp == wanted.tp && row.cp == wanted.cp && row.sequence_parallel == wanted.sequence_parallel;
  return dense && (!experts || (row.ep == wanted.ep && row.etp == wanted.etp));
}

/// The rows around `samples`, if there are rows on both sides or one of just that many.
std::optional<std::pair<std::size_t, std::size_t>> neighbours(const ProfileUnit& unit, const Degrees& degrees,
                                                              std::int64_t samples) {
  const bool experts = unit.kind == ProfileKind::kBlock && unit.block.feed_forward.is_moe();
  std::optional<std::size_t> below;
  std::optional<std::size_t> above;
  for (std::size_t i = 0; i < unit.rows.size(); ++i) {
    const ProfileRow& row = unit.rows[i];
    if (!same_degrees(row.degrees, degrees, experts)) continue;
    if (row.samples <= samples && (!below || unit.rows[*below].samples < row.samples)) below = i;
    if (row.samples >= samples && (!above || unit.rows[*above].samples > row.samples)) above = i;
  }
  if (!below || !above) return std::nullopt;
  return std::pair(*below, *above);
}

double between(double low, double high, double share) { return low + (high - low) * share; }

Measured interpolate(const ProfileRow& low, const ProfileRow& high, std::int64_t samples) {
  Measured out;
  const bool exact = low.samples == high.samples;
  const double share =
      exact ? 0 : static_cast<double>(samples - low.samples) / static_cast<double>(high.samples - low.samples);
  out.provenance = exact ? Provenance::kMeasured : Provenance::kInterpolated;
  out.time.forward = between(to_seconds(low.forward), to_seconds(high.forward), share);
  out.time.backward = between(to_seconds(low.backward), to_seconds(high.backward), share);
  if (low.activation > Bytes(0) && high.activation > Bytes(0)) {
    out.activation = between(low.activation.as_double(), high.activation.as_double(), share);
  }
  return out;
}

std::optional<Measured> find(const std::vector<Profile>& profiles, const Wanted& wanted, const Degrees& degrees,
                             std::int64_t samples, const cluster::GpuType& device) {
  for (std::size_t p = 0; p < profiles.size(); ++p) {
    if (!computes_alike(profiles[p].device, device)) continue;
    for (std::size_t u = 0; u < profiles[p].units.size(); ++u) {
      const ProfileUnit& unit = profiles[p].units[u];
      if (!is_of(unit, wanted, device)) continue;
      const auto rows = neighbours(unit, degrees, samples);
      if (!rows) continue;
      Measured out = interpolate(unit.rows[rows->first], unit.rows[rows->second], samples);
      out.includes_tp_communication = profiles[p].includes_tp_communication;
      out.rows = {RowId{p, u, rows->first}, RowId{p, u, rows->second}};
      return out;
    }
  }
  return std::nullopt;
}

double least(const std::vector<Profile>& profiles, const Wanted& wanted, const cluster::GpuType& device) {
  constexpr double kRounding = 1 - 1e-12;  // interpolation may end a few units in the last place below a row
  double least = std::numeric_limits<double>::infinity();
  for (const Profile& profile : profiles) {
    if (!computes_alike(profile.device, device)) continue;
    for (const ProfileUnit& unit : profile.units) {
      if (!is_of(unit, wanted, device)) continue;
      for (const ProfileRow& row : unit.rows) {
        const double seconds = to_seconds(row.forward) + to_seconds(row.backward);
        least = std::min(least, kRounding * seconds * row.degrees.gpus() / static_cast<double>(row.samples));
      }
    }
  }
  return least;
}

}  // namespace

std::string_view to_string(Provenance provenance) {
  switch (provenance) {
    case Provenance::kMeasured: return "measured";
    case Provenance::kInterpolated: return "interpolated";
    case Provenance::kModelled: return "modelled";
  }
  return "modelled";
}

bool computes_alike(const cluster::GpuType& a, const cluster::GpuType& b) {
  const auto speed = [](const cluster::GpuType& gpu) {
    return std::tie(gpu.name, gpu.peak, gpu.memory_bandwidth, gpu.compute.gemm_efficiency, gpu.compute.gemm_half_size,
                    gpu.compute.memory_efficiency, gpu.compute.kernel_launch);
  };
  return speed(a) == speed(b);
}

std::optional<Measured> ProfileSet::block(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                                          std::int64_t samples, const cluster::GpuType& device) const {
  return find(profiles_, wanted_block(block, job), degrees, samples, device);
}

std::optional<Measured> ProfileSet::edge(ProfileKind kind, const model::Model& model, const Degrees& degrees,
                                         std::int64_t samples, const cluster::GpuType& device) const {
  if (model.embedding_projection > 0) return std::nullopt;
  return find(profiles_, wanted_edge(kind, model), degrees, samples, device);
}

double ProfileSet::least_block_gpu_seconds(const model::BlockType& block, const model::Job& job,
                                           const cluster::GpuType& device) const {
  return least(profiles_, wanted_block(block, job), device);
}

double ProfileSet::least_head_gpu_seconds(const model::Model& model, const cluster::GpuType& device) const {
  return least(profiles_, wanted_edge(ProfileKind::kHead, model), device);
}

ProfileSet ProfileSet::select(const std::set<RowId>& rows) const {
  ProfileSet out;
  for (std::size_t p = 0; p < profiles_.size(); ++p) {
    Profile profile = profiles_[p];
    profile.units.clear();
    for (std::size_t u = 0; u < profiles_[p].units.size(); ++u) {
      ProfileUnit unit = profiles_[p].units[u];
      unit.rows.clear();
      for (std::size_t r = 0; r < profiles_[p].units[u].rows.size(); ++r) {
        if (rows.contains({p, u, r})) unit.rows.push_back(profiles_[p].units[u].rows[r]);
      }
      if (!unit.rows.empty()) profile.units.push_back(std::move(unit));
    }
    if (!profile.units.empty()) out.add(std::move(profile));
  }
  return out;
}

}  // namespace tangram::cost
