#include "tangram/cost/scaled_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

#include "profile_units.hpp"
#include "tangram/base/median.hpp"
#include "tangram/cost/profile_anomaly.hpp"
#include "tangram/cost/validity.hpp"

namespace tangram::cost {
namespace {

constexpr std::array kUsualDegrees{1, 2, 4, 8};
constexpr double kMostRanks = 1 << 16;  // of a replica that was measured
constexpr double kLongest = 1e6;        // seconds; no profile has longer rows

/// A measured row, and how much longer it took than the model says.
struct Ratio {
  Degrees degrees;
  std::int64_t samples = 1;
  std::int64_t tokens = 1;
  double forward = 1;
  double backward = 1;
};

Passes compute_of(const BlockTime& time, bool with_tensor_exchange) {
  const Passes tensor = with_tensor_exchange ? time.tensor : Passes{};
  return {time.compute.forward + tensor.forward, time.compute.backward + tensor.backward};
}

/// Of a row of a file.
bool has_few_ranks(const Degrees& degrees) {
  return static_cast<double>(degrees.tp) * degrees.cp * degrees.ep * degrees.etp <= kMostRanks;
}

bool is_supported(const model::Model& model, const ProfileUnit& unit, const Degrees& degrees) {
  model::Model alone;
  alone.job = model.job;
  model::SliceSignature slice;
  if (unit.kind == ProfileKind::kBlock) {
    alone.types = {unit.block};
    slice.runs = {{0, 1}};
  }
  return why_unsupported(alone, slice, degrees, degrees.dp).empty();
}

/// The modelled times of a profile's device.
class Modelled {
 public:
  Modelled(const model::Model& model, const Profile& profile) : model_(model), profile_(profile) {}

  [[nodiscard]] Passes at(const ProfileUnit& unit, const Degrees& degrees, std::int64_t samples) const {
    const Degrees whole = with_least_replicas(degrees);
    const cluster::DeviceShape shape = one_host(profile_.device, whole.gpus());
    return compute_of(modelled_time(model_, unit, samples, whole, shape), profile_.includes_tp_communication);
  }

 private:
  const model::Model& model_;
  const Profile& profile_;
};

double distance(double a, double b) { return std::abs(std::log2(a / b)); }

std::tuple<double, double, double, double> distance(const Ratio& row, const Degrees& degrees, std::int64_t samples,
                                                    std::int64_t tokens) {
  const Degrees& d = row.degrees;
  const double others = distance(d.cp, degrees.cp) + distance(d.ep, degrees.ep) + distance(d.etp, degrees.etp);
  return {distance(d.tp, degrees.tp), others, distance(static_cast<double>(row.samples), static_cast<double>(samples)),
          distance(static_cast<double>(row.tokens), static_cast<double>(tokens))};
}

/// Of the nearest measured rows; there is one at least.
Passes nearest_ratio(const std::vector<Ratio>& rows, const Degrees& degrees, std::int64_t samples,
                     std::int64_t tokens) {
  const auto far = [&](const Ratio& row) { return distance(row, degrees, samples, tokens); };
  const auto least = far(*std::ranges::min_element(rows, {}, far));
  std::vector<double> forward;
  std::vector<double> backward;
  for (const Ratio& row : rows) {
    if (far(row) != least) continue;
    forward.push_back(row.forward);
    backward.push_back(row.backward);
  }
  return {median(forward), median(backward)};
}

/// Of what a profile measured of one block type or end.
class Scaler {
 public:
  Scaler(const model::Model& model, const Profile& measured, const WantedUnit& wanted)
      : model_(model), measured_(measured), wanted_(wanted), times_(model, measured) {
    for (const std::size_t u : units_of(measured, wanted, measured.device)) add_ratios(measured.units[u]);
  }

  /// At the model's sequence length; none where nothing was measured.
  [[nodiscard]] std::optional<ProfileUnit> unit() const {
    if (ratios_.empty()) return std::nullopt;
    ProfileUnit unit = measured_.units[units_of(measured_, wanted_, measured_.device).front()];
    unit.sequence_length = unit.block.tokens = wanted_.tokens;
    unit.rows.clear();
    for (const Degrees& degrees : usual_degrees(model_, unit)) {
      for (std::int64_t samples = 1; samples <= kMostScaledSamples; samples *= 2) add(unit, degrees, samples);
    }
    std::ranges::sort(unit.rows, {}, [](const ProfileRow& row) { return std::tuple(row.degrees, row.samples); });
    return unit;
  }

 private:
  void add_ratios(const ProfileUnit& unit) {
    for (const ProfileRow& row : unit.rows) {
      if (row.scaled || !has_few_ranks(row.degrees)) continue;
      if (!is_supported(model_, unit, with_least_replicas(row.degrees))) continue;
      const Passes modelled = times_.at(unit, row.degrees, row.samples);
      if (!(modelled.forward > 0 && modelled.backward > 0)) continue;
      ratios_.push_back({row.degrees, row.samples, unit.sequence_length, to_seconds(row.forward) / modelled.forward,
                         to_seconds(row.backward) / modelled.backward});
    }
  }

  void add(ProfileUnit& unit, const Degrees& degrees, std::int64_t samples) const {
    ProfileRow row;
    row.degrees = degrees;
    row.degrees.dp = 1;
    row.samples = samples;
    row.scaled = true;
    const Passes modelled = times_.at(unit, row.degrees, samples);
    const Passes ratio = nearest_ratio(ratios_, row.degrees, samples, wanted_.tokens);
    const Passes time{ratio.forward * modelled.forward, ratio.backward * modelled.backward};
    if (!(time.forward < kLongest && time.backward < kLongest)) return;
    row.forward = measured_nanoseconds(time.forward);
    row.backward = measured_nanoseconds(time.backward);
    if (!find_anomaly(measured_, unit, row)) unit.rows.push_back(row);
  }

  const model::Model& model_;
  const Profile& measured_;
  WantedUnit wanted_;
  Modelled times_;
  std::vector<Ratio> ratios_;
};

void add_unit(Profile& profile, const Scaler& scaler) {
  auto unit = scaler.unit();
  if (unit && std::ranges::find(profile.units, *unit) == profile.units.end()) profile.units.push_back(*std::move(unit));
}

/// The scaled rows alone.
Profile scaled_profile(const Profile& measured, const model::Model& model) {
  Profile profile;
  profile.device = measured.device;
  profile.source = measured.source;
  profile.date = measured.date;
  profile.includes_tp_communication = measured.includes_tp_communication;
  if (!(matrix_peak(measured.device, model.job.precision).value() > 0)) return profile;
  for (const model::BlockType& type : model.types) {
    add_unit(profile, Scaler(model, measured, wanted_block(type, model.job)));
  }
  for (const ProfileKind end : {ProfileKind::kEmbedding, ProfileKind::kHead}) {
    add_unit(profile, Scaler(model, measured, wanted_edge(end, model)));
  }
  return profile;
}

}  // namespace

Degrees with_least_replicas(Degrees degrees) {
  const int dense = degrees.tp * degrees.cp;
  degrees.dp = std::lcm(dense, degrees.ep * degrees.etp) / dense;
  return degrees;
}

std::vector<Degrees> usual_degrees(const model::Model& model, const ProfileUnit& unit) {
  const bool experts = unit.kind == ProfileKind::kBlock && unit.block.feed_forward.is_moe();
  std::vector<Degrees> found;
  for (const int tp : kUsualDegrees) {
    for (const int cp : kUsualDegrees) {
      for (const int ep : kUsualDegrees) {
        for (const bool sequence_parallel : {false, true}) {
          if (ep > 1 && !experts) continue;
          const Degrees degrees =
              with_least_replicas({.tp = tp, .cp = cp, .ep = ep, .sequence_parallel = sequence_parallel});
          if (is_supported(model, unit, degrees)) found.push_back(degrees);
        }
      }
    }
  }
  return found;
}

cluster::DeviceShape one_host(const cluster::GpuType& device, int gpus) {
  cluster::DeviceShape shape;
  shape.device = device;
  shape.per_node = gpus;
  shape.intra = device.peer_link.bandwidth.value() > 0 ? device.peer_link : device.pcie;
  shape.intra.bandwidth = bandwidth_among(device, shape.intra, gpus);
  return shape;
}

BlockTime modelled_time(const model::Model& model, const ProfileUnit& unit, std::int64_t samples,
                        const Degrees& degrees, const cluster::DeviceShape& shape) {
  const auto count = static_cast<double>(samples);
  if (unit.kind != ProfileKind::kBlock && model.end_gradients() != model::Gradients{}) {
    return modelled_time(unfrozen(model), unit, samples, degrees, shape);
  }
  switch (unit.kind) {
    case ProfileKind::kBlock: return block_time(unit.block, model.job, degrees, count, shape);
    case ProfileKind::kEmbedding: return embedding_time(model, degrees, count, shape);
    case ProfileKind::kHead: return head_time(model, degrees, count, shape);
  }
  return {};
}

ProfileSet with_scaled_rows(const ProfileSet& profiles, const model::Model& model) {
  ProfileSet all = profiles;
  for (const Profile& measured : profiles.profiles()) {
    Profile scaled = scaled_profile(measured, model);
    if (!scaled.units.empty()) all.add(std::move(scaled));
  }
  return all;
}

ProfileSet measured_alone(const ProfileSet& profiles) {
  ProfileSet alone;
  for (Profile profile : profiles.profiles()) {
    for (ProfileUnit& unit : profile.units) std::erase_if(unit.rows, [](const ProfileRow& row) { return row.scaled; });
    std::erase_if(profile.units, [](const ProfileUnit& unit) { return unit.rows.empty(); });
    if (!profile.units.empty() || !profile.collectives.empty()) alone.add(std::move(profile));
  }
  alone.require_measured();
  return alone;
}

}  // namespace tangram::cost
