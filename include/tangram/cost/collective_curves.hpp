// Measured collectives. Goes in: curves of bytes over time, one for each operation and group. Comes out: the time of a
// message where it was measured, lies between two measurements or a little beyond them; elsewhere nothing, or what the
// model says.
//
// Between two sizes log t is linear in log S, because both span decades and errors are relative. Beyond the sizes, by
// at most a factor of kMaxExtrapolation:
//   above   t(S) = t_last + (S - S_last) / B,   B = (S_last - S_prev) / (t_last - t_prev), the last segment's bandwidth
//   below   t(S) = t_first                      (latency decides; a shorter message takes no longer)
// Bytes are S of communication.hpp: of the full tensor in all-reduce, all-gather and reduce-scatter, what one rank
// holds in all-to-all, the message in send-recv; nccl-tests' "size" column counts the same way (PERFORMANCE.md there).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/cost/communication.hpp"

namespace tangram::cost {

enum class Exchange : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kSendRecv };
[[nodiscard]] std::string_view to_string(Exchange operation);  ///< "all_reduce", ...
[[nodiscard]] Exchange exchange_of(Collective kind);

/// The ranks that took part: so many in each of the nodes, while `sharing` such groups used a node's cards at a time.
struct CurveGroup {
  int ranks_per_node = 1;
  int nodes = 1;
  int sharing = 1;
  [[nodiscard]] int ranks() const { return ranks_per_node * nodes; }
  auto operator<=>(const CurveGroup&) const = default;
};

struct CurvePoint {
  Bytes bytes;
  Nanoseconds time;
  bool operator==(const CurvePoint&) const = default;
};

struct CollectiveCurve {
  Exchange operation = Exchange::kAllReduce;
  CurveGroup group;
  std::vector<CurvePoint> points;  ///< ascending by bytes, no two equal, all above 0
  bool operator==(const CollectiveCurve&) const = default;
};

inline constexpr double kMaxExtrapolation = 4;

/// Seconds of one operation in exactly this group; 0 in a group of one or without bytes. Of several curves of one
/// operation and group the first that reaches to `bytes` counts. O(points).
[[nodiscard]] std::optional<double> measured_seconds(std::span<const CollectiveCurve> curves, Exchange operation,
                                                     double bytes, const CurveGroup& group);

/// A member of a shape is a node of a curve.
[[nodiscard]] CurveGroup curve_group(const Group& group);

/// Measured where a curve of just this group reaches to `bytes`; else the model of communication.hpp. The caller
/// answers for the curves being of this GPU type and these links.
[[nodiscard]] double collective_seconds(Collective kind, double bytes, const Group& group,
                                        const cluster::DeviceShape& shape, std::span<const CollectiveCurve> curves);

/// Bytes that cross the busiest rank's link per byte of S: 2(n-1)/n in all-reduce, (n-1)/n in all-gather,
/// reduce-scatter and all-to-all, 1 in send-recv. Times S/t it is the bus bandwidth of nccl-tests.
[[nodiscard]] double bus_share(Exchange operation, int ranks);

/// bus_share S / t, bytes/s.
[[nodiscard]] double bus_bandwidth(const CollectiveCurve& curve, const CurvePoint& point);

/// A rank takes in no more than the fastest link of its GPU carries. Reductions inside the switch (NVLink SHARP) show
/// as somewhat more than the link, 480 of 450 GB/s on 8 x H100, so that a margin belongs to it.
inline constexpr double kLinkMargin = 1.25;
[[nodiscard]] BytesPerSecond fastest_link(const cluster::GpuType& device);

/// Repeated measurements scatter: a longer message may seem this much faster before the curve is doubted.
inline constexpr double kCurveNoise = 0.30;

struct CurveMistake {
  std::size_t point = 0;
  std::string code;
  std::string message;
  std::string hint;
};

/// The first point that cannot be true: beyond the fastest link, or faster than a shorter message beyond noise.
[[nodiscard]] std::optional<CurveMistake> find_mistake(const CollectiveCurve& curve, const cluster::GpuType& device);

}  // namespace tangram::cost
