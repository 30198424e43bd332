#include <nlohmann/json.hpp>

#include "tangram/base/at.hpp"
#include "tangram/dispatch/document.hpp"

namespace tangram::dispatch {

using Json = nlohmann::ordered_json;

Json links_json(const Schedule& schedule) {
  Json links = Json::array();
  for (const Lanes& lanes : schedule.links) {
    links.push_back({{"from", at(schedule.devices, lanes.from).name},
                     {"to", at(schedule.devices, lanes.to).name},
                     {"lanes", lanes.count}});
  }
  return links;
}

Json segments_json(const Schedule& schedule) {
  Json segments = Json::array();
  for (const Segment& segment : schedule.segments) {
    Json out{{"phase", at(schedule.phases, segment.phase).name}, {"gpu", at(schedule.devices, segment.device).name}};
    if (segment.stream != 0) out["stream"] = segment.stream;
    if (!segment.waits.empty()) out["waits"] = segment.waits;
    if (!segment.takes.empty()) out["takes"] = segment.takes;
    if (!segment.kernels.empty()) out["kernels"] = segment.kernels;
    if (!segment.sends.empty()) out["sends"] = segment.sends;
    out["seconds"] = segment.seconds;
    segments.push_back(std::move(out));
  }
  return segments;
}

Json copies_json(const Schedule& schedule) {
  Json copies = Json::array();
  for (const Copy& copy : schedule.copies) {
    Json ranges = Json::array();
    for (const ByteRange& range : copy.ranges) ranges.push_back({{"offset", range.offset}, {"bytes", range.bytes}});
    copies.push_back({{"buffer", copy.buffer},
                      {"ranges", std::move(ranges)},
                      {"from", at(schedule.devices, copy.from).name},
                      {"to", at(schedule.devices, copy.to).name},
                      {"link_seconds", copy.seconds},
                      {"gpu_seconds", copy.gpu_seconds}});
  }
  return copies;
}

}  // namespace tangram::dispatch
