#include "profile_lookup.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace tangram::cost {
namespace {

/// What lies between two neighbours, of whatever they both have.
using Mix = std::function<double(double, double)>;

/// Each direction by itself.
Passes mix_passes(const Passes& low, const Passes& high, const Mix& mix) {
  return {mix(low.forward, high.forward), mix(low.backward, high.backward)};
}

/// Both directions together, forward keeping the share it has after mixing each: a sum of geometric means alone could
/// fall below both sums.
Passes mix_total(const Passes& low, const Passes& high, const Mix& mix) {
  const Passes each = mix_passes(low, high, mix);
  const double total = mix(low.forward + low.backward, high.forward + high.backward);
  const double forward = total * each.forward / (each.forward + each.backward);
  return {forward, total - forward};
}

Measured combine(const Measured& low, const Measured& high, const Passes& time, const Mix& mix) {
  Measured out;
  out.provenance = std::max({Provenance::kInterpolated, low.provenance, high.provenance});
  out.time = time;
  if (low.activation > 0 && high.activation > 0) out.activation = mix(low.activation, high.activation);
  std::ranges::set_union(low.rows, high.rows, std::back_inserter(out.rows));
  return out;
}

/// The nearest key below and the nearest above at which `at` knows an answer; the two combined.
template <class Key, class At, class MakeMix, class MixTimes>
std::optional<Measured> between(std::vector<Key> keys, Key wanted, At at, MakeMix make_mix, MixTimes mix_times) {
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const auto above = std::ranges::upper_bound(keys, wanted);
  const auto first_known = [&](auto first, const auto& last) -> std::optional<std::pair<Key, Measured>> {
    for (; first != last; ++first) {
      if (auto found = at(*first)) return std::pair(*first, std::move(*found));
    }
    return std::nullopt;
  };
  const auto below = std::ranges::lower_bound(keys, wanted);
  const auto high = first_known(above, keys.end());
  const auto low = first_known(std::make_reverse_iterator(below), keys.rend());
  if (!low || !high) return std::nullopt;
  const auto number = [](Key key) { return static_cast<double>(key); };
  const Mix mix = make_mix(number(low->first), number(wanted), number(high->first));
  return combine(low->second, high->second, mix_times(low->second.time, high->second.time, mix), mix);
}

/// t0 + (t1 - t0) (b - b0) / (b1 - b0)
Mix linear_mix(double low, double wanted, double high) {
  const double share = (wanted - low) / (high - low);
  return [share](double a, double b) { return a + (b - a) * share; };
}

/// t0 (t1 / t0)^x, x = log(p / p0) / log(p1 / p0)
Mix log_linear(double low, double wanted, double high) {
  const double share = std::log(wanted / low) / std::log(high / low);
  return [share](double a, double b) { return a * std::pow(b / a, share); };
}

/// t(s) / s linear in s
Mix linear_per_token(double low, double wanted, double high) {
  const double share = (wanted - low) / (high - low);
  return [=](double a, double b) { return wanted * (a / low + (b / high - a / low) * share); };
}

/// Expert degrees matter where there are experts; sequence parallelism where there is tensor parallelism.
bool same_degrees(const Degrees& row, const Degrees& wanted, bool experts) {
  const bool dense =
      row.tp == wanted.tp && row.cp == wanted.cp && (row.tp == 1 || row.sequence_parallel == wanted.sequence_parallel);
  return dense && (!experts || (row.ep == wanted.ep && row.etp == wanted.etp));
}

class Lookup {
 public:
  Lookup(const Profile& profile, const std::vector<std::size_t>& units, const Point& point)
      : profile_(profile), units_(units), point_(point) {}

  [[nodiscard]] std::optional<Measured> find() const {
    if (auto found = at_tokens(point_.tokens)) return found;
    std::vector<std::int64_t> lengths;
    lengths.reserve(units_.size());
    for (const std::size_t u : units_) lengths.push_back(profile_.units[u].sequence_length);
    return between(
        lengths, point_.tokens, [&](std::int64_t tokens) { return at_tokens(tokens); }, linear_per_token, mix_passes);
  }

 private:
  [[nodiscard]] std::optional<Measured> at_tokens(std::int64_t tokens) const {
    std::vector<std::size_t> units = units_;
    std::erase_if(units, [&](std::size_t u) { return profile_.units[u].sequence_length != tokens; });
    for (const std::size_t u : units) {
      if (auto found = at_degrees(u, point_.degrees)) return found;
    }
    for (const std::size_t u : units) {
      if (auto found = between_tp(u)) return found;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Measured> between_tp(std::size_t unit) const {
    std::vector<int> tps;
    for (const ProfileRow& row : profile_.units[unit].rows) tps.push_back(row.degrees.tp);
    const auto at = [&](int tp) {
      Degrees degrees = point_.degrees;
      degrees.tp = tp;
      return at_degrees(unit, degrees);
    };
    return between(tps, point_.degrees.tp, at, log_linear, mix_total);
  }

  [[nodiscard]] std::optional<Measured> at_degrees(std::size_t unit, const Degrees& degrees) const {
    const ProfileUnit& of = profile_.units[unit];
    const bool experts = of.kind == ProfileKind::kBlock && of.block.feed_forward.is_moe();
    std::vector<std::int64_t> counts;
    for (const ProfileRow& row : of.rows) {
      if (same_degrees(row.degrees, degrees, experts)) counts.push_back(row.samples);
    }
    const auto at = [&](std::int64_t samples) { return row_of(unit, degrees, experts, samples); };
    if (auto found = at(point_.samples)) return found;
    return between(counts, point_.samples, at, linear_mix, mix_passes);
  }

  [[nodiscard]] std::optional<Measured> row_of(std::size_t unit, const Degrees& degrees, bool experts,
                                               std::int64_t samples) const {
    const std::vector<ProfileRow>& rows = profile_.units[unit].rows;
    const auto row = std::ranges::find_if(
        rows, [&](const ProfileRow& r) { return r.samples == samples && same_degrees(r.degrees, degrees, experts); });
    if (row == rows.end()) return std::nullopt;
    Measured out;
    out.time = {to_seconds(row->forward), to_seconds(row->backward)};
    out.activation = row->activation.as_double();
    if (row->scaled) out.provenance = Provenance::kCorrected;
    out.rows = {RowId{0, unit, static_cast<std::size_t>(row - rows.begin())}};
    return out;
  }

  const Profile& profile_;
  const std::vector<std::size_t>& units_;
  const Point& point_;
};

}  // namespace

std::optional<Measured> look_up(const Profile& profile, const std::vector<std::size_t>& units, const Point& point) {
  return Lookup(profile, units, point).find();
}

}  // namespace tangram::cost
