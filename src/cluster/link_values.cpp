#include "link_values.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tangram::cluster {

Bytes from_gib(double gib) { return Bytes(std::llround(gib * kGiB)); }

Nanoseconds from_us(double us) { return Nanoseconds(std::llround(us * 1e3)); }

double to_gib(Bytes bytes) { return bytes.as_double() / kGiB; }

double to_us(Nanoseconds time) { return time.as_double() / 1e3; }

double in_units(double value, double unit) {
  const double near = value / unit;
  for (const double x : {near, std::nextafter(near, 0.0), std::nextafter(near, HUGE_VAL)}) {
    if (x * unit == value) return x;
  }
  return near;
}

Link read_link(io::ObjectReader& reader, std::string_view bandwidth_key, double unit) {
  Link link;
  const io::NumberRange range = unit == kGigabit ? kBandwidthGbit : kBandwidthGb;
  link.bandwidth = BytesPerSecond(reader.number(bandwidth_key, range) * unit);
  link.latency = from_us(reader.number("latency_us", kLatencyUs));
  return link;
}

Nanoseconds read_ramp(io::ObjectReader& reader, Nanoseconds usual) {
  return from_us(reader.number_or("ramp_us", to_us(usual), io::number_limit("ramp_us")));
}

nlohmann::ordered_json link_to_json(const Link& link, const std::string& bandwidth_key, double unit,
                                    Nanoseconds usual_ramp) {
  nlohmann::ordered_json record{{bandwidth_key, in_units(link.bandwidth.value(), unit)},
                                {"latency_us", to_us(link.latency)}};
  if (link.ramp != usual_ramp) record["ramp_us"] = to_us(link.ramp);
  return record;
}

}  // namespace tangram::cluster
