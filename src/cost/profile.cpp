#include "tangram/cost/profile.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "profile_lookup.hpp"
#include "profile_units.hpp"

namespace tangram::cost {
namespace {

std::optional<Measured> find(const std::vector<Profile>& profiles, const WantedUnit& wanted, const Degrees& degrees,
                             std::int64_t samples, const cluster::GpuType& device) {
  for (std::size_t p = 0; p < profiles.size(); ++p) {
    if (!computes_alike(profiles[p].device, device)) continue;
    auto found = look_up(profiles[p], units_of(profiles[p], wanted, device), {wanted.tokens, degrees, samples});
    if (!found) continue;
    for (RowId& row : found->rows) row.profile = p;
    found->includes_tp_communication = profiles[p].includes_tp_communication;
    return found;
  }
  return std::nullopt;
}

/// The units that a look-up at `tokens` can take rows of: of just that length, or of lengths on both sides.
std::vector<std::size_t> reachable(const Profile& profile, std::vector<std::size_t> units, std::int64_t tokens) {
  const auto length = [&](std::size_t u) { return profile.units[u].sequence_length; };
  const bool below = std::ranges::any_of(units, [&](std::size_t u) { return length(u) < tokens; });
  const bool above = std::ranges::any_of(units, [&](std::size_t u) { return length(u) > tokens; });
  std::erase_if(units, [&](std::size_t u) { return length(u) != tokens && !(below && above); });
  return units;
}

double least(const std::vector<Profile>& profiles, const WantedUnit& wanted, const cluster::GpuType& device) {
  constexpr double kRounding = 1 - 1e-12;  // interpolation may end a few units in the last place below a row
  double least = std::numeric_limits<double>::infinity();
  for (const Profile& profile : profiles) {
    if (!computes_alike(profile.device, device)) continue;
    for (const std::size_t u : reachable(profile, units_of(profile, wanted, device), wanted.tokens)) {
      const ProfileUnit& unit = profile.units[u];
      const double scale = static_cast<double>(wanted.tokens) / static_cast<double>(unit.sequence_length);
      for (const ProfileRow& row : unit.rows) {
        const double seconds = to_seconds(row.forward) + to_seconds(row.backward);
        const double each = scale * seconds * row.degrees.gpus() / static_cast<double>(row.samples);
        least = std::min(least, kRounding * each);
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
    case Provenance::kCorrected: return "corrected";
    case Provenance::kModelled: return "modelled";
  }
  return "modelled";
}

/// Whatever their figures of native attention, fused and unvectorized kernels: plans of jobs that do not run them leave
/// them out.
bool computes_alike(const cluster::GpuType& a, const cluster::GpuType& b) {
  const auto speed = [](const cluster::GpuType& gpu) {
    return std::tie(gpu.name, gpu.peak, gpu.memory_bandwidth, gpu.compute.gemm_efficiency,
                    gpu.compute.attention_forward, gpu.compute.attention_backward, gpu.compute.memory_efficiency,
                    gpu.compute.kernel_launch, gpu.compute.host_issue);
  };
  return speed(a) == speed(b);
}

bool communicates_alike(const cluster::GpuType& a, const cluster::GpuType& b) {
  return computes_alike(a, b) && a.peer_link == b.peer_link && a.peer_reach == b.peer_reach &&
         a.peer_pair == b.peer_pair && a.pcie == b.pcie;
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

std::set<CurveId> ProfileSet::curves_of(const ProcessGroups& groups, const cluster::GpuType& device) const {
  std::set<CurveId> found;
  const Group all[] = {groups.tensor,      groups.context, groups.data,   groups.expert,        groups.expert_tensor,
                       groups.expert_data, groups.shards,  groups.copies, groups.expert_shards, groups.expert_copies};
  for (std::size_t p = 0; p < profiles_.size(); ++p) {
    if (!communicates_alike(profiles_[p].device, device)) continue;
    for (std::size_t c = 0; c < profiles_[p].collectives.size(); ++c) {
      const CurveGroup& measured = profiles_[p].collectives[c].group;
      const bool used = std::ranges::any_of(
          all, [&](const Group& group) { return group.size() > 1 && curve_group(group) == measured; });
      if (used) found.insert({p, c});
    }
  }
  return found;
}

const CollectiveCurve& ProfileSet::curve(const CurveId& id) const {
  return profiles_[id.profile].collectives[id.curve];
}

ProfileSet ProfileSet::select(const Selection& selection) const {
  ProfileSet out;
  for (std::size_t p = 0; p < profiles_.size(); ++p) {
    Profile profile = profiles_[p];
    profile.units.clear();
    profile.collectives.clear();
    for (std::size_t c = 0; c < profiles_[p].collectives.size(); ++c) {
      if (selection.curves.contains({p, c})) profile.collectives.push_back(profiles_[p].collectives[c]);
    }
    for (std::size_t u = 0; u < profiles_[p].units.size(); ++u) {
      ProfileUnit unit = profiles_[p].units[u];
      unit.rows.clear();
      for (std::size_t r = 0; r < profiles_[p].units[u].rows.size(); ++r) {
        if (selection.rows.contains({p, u, r})) unit.rows.push_back(profiles_[p].units[u].rows[r]);
      }
      if (!unit.rows.empty()) profile.units.push_back(std::move(unit));
    }
    if (!profile.units.empty() || !profile.collectives.empty()) out.add(std::move(profile));
  }
  return out;
}

}  // namespace tangram::cost
