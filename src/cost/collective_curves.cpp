#include "tangram/cost/collective_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tangram::cost {
namespace {

std::string gb_text(double bytes_per_second) {
  const double gb = bytes_per_second / 1e9;
  return gb >= 100 ? fmt::format("{:.0f}", gb) : fmt::format("{:.3g}", gb);
}

double log_interpolation(const CurvePoint& low, const CurvePoint& high, double bytes) {
  const double share =
      std::log(bytes / low.bytes.as_double()) / std::log(high.bytes.as_double() / low.bytes.as_double());
  return to_seconds(low.time) * std::pow(high.time.as_double() / low.time.as_double(), share);
}

/// Bytes/s of the last segment; of the last point alone where noise or a single point leaves no slope.
double last_bandwidth(const std::vector<CurvePoint>& points) {
  const CurvePoint& last = points.back();
  const double average = last.bytes.as_double() / to_seconds(last.time);
  if (points.size() < 2) return average;
  const CurvePoint& before = points[points.size() - 2];
  if (last.time <= before.time) return average;
  return (last.bytes - before.bytes).as_double() / to_seconds(last.time - before.time);
}

std::optional<double> on_curve(const std::vector<CurvePoint>& points, double bytes) {
  if (points.empty()) return std::nullopt;
  const double least = points.front().bytes.as_double();
  const double most = points.back().bytes.as_double();
  if (bytes * kMaxExtrapolation < least || bytes > most * kMaxExtrapolation) return std::nullopt;
  if (bytes <= least) return to_seconds(points.front().time);
  if (bytes > most) return to_seconds(points.back().time) + (bytes - most) / last_bandwidth(points);
  const auto high =
      std::find_if(points.begin(), points.end(), [&](const auto& p) { return p.bytes.as_double() >= bytes; });
  return log_interpolation(*(high - 1), *high, bytes);
}

}  // namespace

std::string_view to_string(Exchange operation) {
  switch (operation) {
    case Exchange::kAllReduce: return "all_reduce";
    case Exchange::kAllGather: return "all_gather";
    case Exchange::kReduceScatter: return "reduce_scatter";
    case Exchange::kAllToAll: return "all_to_all";
    case Exchange::kSendRecv: return "send_recv";
  }
  return "all_reduce";
}

Exchange exchange_of(Collective kind) {
  switch (kind) {
    case Collective::kAllReduce: return Exchange::kAllReduce;
    case Collective::kAllGather: return Exchange::kAllGather;
    case Collective::kReduceScatter: return Exchange::kReduceScatter;
    case Collective::kAllToAll: return Exchange::kAllToAll;
  }
  return Exchange::kAllReduce;
}

std::optional<double> measured_seconds(std::span<const CollectiveCurve> curves, Exchange operation, double bytes,
                                       const CurveGroup& group) {
  if (group.ranks() <= 1 || !(bytes > 0)) return 0.0;
  for (const CollectiveCurve& curve : curves) {
    if (curve.operation != operation || curve.group != group) continue;
    if (const auto seconds = on_curve(curve.points, bytes)) return seconds;
  }
  return std::nullopt;
}

CurveGroup curve_group(const Group& group) { return {group.inside, group.members, group.sharing}; }

double collective_seconds(Collective kind, double bytes, const Group& group, const cluster::DeviceShape& shape,
                          std::span<const CollectiveCurve> curves) {
  const auto measured = measured_seconds(curves, exchange_of(kind), bytes, curve_group(group));
  return measured ? *measured : collective_seconds(kind, bytes, group, shape);
}

double bus_share(Exchange operation, int ranks) {
  const double others = ranks > 1 ? static_cast<double>(ranks - 1) / ranks : 0;
  switch (operation) {
    case Exchange::kAllReduce: return 2 * others;
    case Exchange::kAllGather:
    case Exchange::kReduceScatter:
    case Exchange::kAllToAll: return others;
    case Exchange::kSendRecv: break;
  }
  return 1;
}

double bus_bandwidth(const CollectiveCurve& curve, const CurvePoint& point) {
  return bus_share(curve.operation, curve.group.ranks()) * point.bytes.as_double() / to_seconds(point.time);
}

BytesPerSecond fastest_link(const cluster::GpuType& device) {
  return std::max(device.peer_link.bandwidth, device.pcie.bandwidth);
}

std::optional<CurveMistake> find_mistake(const CollectiveCurve& curve, const cluster::GpuType& device) {
  const double link = fastest_link(device).value();
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const CurvePoint& point = curve.points[i];
    const double bus = bus_bandwidth(curve, point);
    if (link > 0 && bus > kLinkMargin * link) {
      return CurveMistake{
          i, "implausible-bandwidth",
          fmt::format("{} bytes in {:.6g} us mean a bus bandwidth of {} GB/s, the fastest link of {} has {}",
                      point.bytes.value(), point.time.as_double() / 1e3, gb_text(bus), device.name, gb_text(link)),
          "milliseconds written as microseconds, or elements as bytes?"};
    }
    if (i > 0 && point.time.as_double() < (1 - kCurveNoise) * curve.points[i - 1].time.as_double()) {
      return CurveMistake{i, "not-monotone",
                          fmt::format("{} bytes take {:.6g} us, the {} bytes before them {:.6g}", point.bytes.value(),
                                      point.time.as_double() / 1e3, curve.points[i - 1].bytes.value(),
                                      curve.points[i - 1].time.as_double() / 1e3),
                          "measure again: one of the two was disturbed"};
    }
  }
  return std::nullopt;
}

}  // namespace tangram::cost
