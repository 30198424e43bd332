#include <nlohmann/json.hpp>

#include "tangram/base/at.hpp"
#include "tangram/kernels/document.hpp"

namespace tangram::kernels {
namespace {

using Json = nlohmann::ordered_json;

Json phase_json(const Phase& phase) {
  Json out;
  out["name"] = phase.name;
  if (phase.requests > 0) out["requests"] = phase.requests;
  if (phase.tokens > 0) out["tokens"] = phase.tokens;
  if (phase.context > 0) out["context"] = phase.context;
  out["first"] = phase.first;
  out["count"] = phase.count;
  for (const Repeat& repeat : phase.repeats) {
    out["repeats"].push_back({{"first", repeat.first}, {"kernels", repeat.kernels}, {"times", repeat.times}});
  }
  return out;
}

Json buffer_json(const Buffer& buffer, const KernelGraph& graph) {
  Json out;
  out["id"] = buffer.id;
  out["bytes"] = buffer.bytes.value();
  out["kind"] = to_string(buffer.kind);
  out["per"] = to_string(buffer.per);
  if (buffer.copies > 1) out["copies"] = buffer.copies;
  if (!buffer.storage.empty()) out["storage"] = buffer.storage;
  if (buffer.epoch > 0) out["epoch"] = buffer.epoch;
  for (std::size_t gpu = 0; gpu < buffer.formats.size(); ++gpu) {
    if (!buffer.formats[gpu].empty()) out["formats"][graph.gpus[gpu]] = buffer.formats[gpu];
  }
  return out;
}

Json accesses_json(const std::vector<Access>& accesses, const KernelGraph& graph) {
  Json list = Json::array();
  for (const Access& access : accesses) {
    Json out;
    out["buffer"] = at(graph.buffers, access.buffer).id;
    if (access.offset > 0) out["offset"] = access.offset;
    out["bytes"] = access.bytes;
    if (!access.exact) out["exact"] = false;
    list.push_back(std::move(out));
  }
  return list;
}

Json launch_json(const Launch& launch) {
  return {{"grid", launch.grid}, {"block", launch.block}, {"shared", launch.shared.value()}};
}

void add_times(const Kernel& kernel, const KernelGraph& graph, Json& out) {
  for (std::size_t gpu = 0; gpu < kernel.times.size(); ++gpu) {
    if (!kernel.times[gpu]) continue;
    const KernelTime& time = *kernel.times[gpu];
    out["times"][graph.gpus[gpu]] = {
        {"us", time.time.as_double() / 1e3}, {"from", to_string(time.from)}, {"error", time.error}};
  }
}

void add_names(const Kernel& kernel, const KernelGraph& graph, Json& out) {
  for (std::size_t gpu = 0; gpu < kernel.names.size(); ++gpu) {
    if (!kernel.names[gpu].empty()) out["names"][graph.gpus[gpu]] = kernel.names[gpu];
  }
}

Json kernel_json(const Kernel& kernel, const KernelGraph& graph) {
  Json out;
  out["id"] = kernel.id;
  out["position"] = kernel.position;
  if (kernel.layer >= 0) out["layer"] = kernel.layer;
  out["part"] = to_string(kernel.part);
  out["operator"] = kernel.op;
  if (!kernel.shape.empty()) out["shape"] = kernel.shape;
  out["stream"] = kernel.stream;
  out["order"] = kernel.order;
  if (!kernel.reads.empty()) out["reads"] = accesses_json(kernel.reads, graph);
  if (!kernel.writes.empty()) out["writes"] = accesses_json(kernel.writes, graph);
  if (!kernel.updates.empty()) out["updates"] = accesses_json(kernel.updates, graph);
  for (const int before : kernel.after) out["after"].push_back(at(graph.kernels, before).id);
  out["evidence"] = to_string(kernel.evidence);
  if (kernel.pinned != Pin::kNone) out["pinned"] = to_string(kernel.pinned);
  if (!kernel.signature.empty()) out["signature"] = kernel.signature;
  add_times(kernel, graph, out);
  if (kernel.launch) out["launch"] = launch_json(*kernel.launch);
  add_names(kernel, graph, out);
  return out;
}

}  // namespace

Json kernel_graph_json(const KernelGraph& graph) {
  Json out;
  out["schema"] = "tangram.kernels/1";
  out["source"] = Json::array();
  for (const Source& source : graph.sources) {
    out["source"].push_back({{"kind", source.kind}, {"file", source.file}, {"digest", source.digest}});
  }
  out["gpus"] = graph.gpus;
  out["phases"] = Json::array();
  for (const Phase& phase : graph.phases) out["phases"].push_back(phase_json(phase));
  out["buffers"] = Json::array();
  for (const Buffer& buffer : graph.buffers) out["buffers"].push_back(buffer_json(buffer, graph));
  out["kernels"] = Json::array();
  for (const Kernel& kernel : graph.kernels) out["kernels"].push_back(kernel_json(kernel, graph));
  return out;
}

}  // namespace tangram::kernels
