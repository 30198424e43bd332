#include "graph_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tangram/base/at.hpp"

namespace tangram::kernels {

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  double value = 1;
  for (const std::int64_t factor : factors) value *= static_cast<double>(factor);
  return value < 1e18 ? static_cast<std::int64_t>(value) : std::int64_t{1'000'000'000'000'000'000};
}

GraphBuilder::GraphBuilder(std::span<const cluster::GpuType> gpus, const KernelCosts& costs)
    : gpus_(gpus), costs_(costs) {
  for (const cluster::GpuType& gpu : gpus) graph_.gpus.push_back(gpu.name);
}

void GraphBuilder::begin_phase(Phase phase) {
  phase.first = graph_.kernel_count();
  graph_.phases.push_back(std::move(phase));
}

void GraphBuilder::begin_layer(int layer, std::int64_t copies) {
  layer_ = layer;
  copies_ = copies;
}

void GraphBuilder::begin_repeat(std::int64_t times) {
  graph_.phases.back().repeats.push_back({graph_.kernel_count(), 0, times});
}

void GraphBuilder::end_repeat() {
  Repeat& repeat = graph_.phases.back().repeats.back();
  repeat.kernels = graph_.kernel_count() - repeat.first;
}

std::string GraphBuilder::place(char separator) const {
  return layer_ < 0 ? "" : fmt::format("layer{}{}", layer_, separator);
}

void GraphBuilder::add(const KernelSpec& spec) {
  Phase& phase = graph_.phases.back();
  Kernel kernel;
  kernel.id = fmt::format("{}.{}{}", phase.name, place('.'), spec.name);
  kernel.position = fmt::format("{}{}/{}", place('/'), to_string(spec.part), spec.name);
  kernel.layer = layer_;
  kernel.part = spec.part;
  kernel.op = to_string(spec.op);
  kernel.shape = spec.shape;
  kernel.order = phase.count;
  kernel.reads = accesses(spec.reads);
  kernel.writes = accesses(spec.writes);
  kernel.updates = accesses(spec.updates);
  kernel.evidence = Evidence::kModel;
  kernel.pinned = spec.pinned;
  for (const cluster::GpuType& gpu : gpus_) kernel.times.push_back(costs_.time(spec.op, spec.shape, spec.dtype, gpu));
  graph_.kernels.push_back(std::move(kernel));
  ++phase.count;
}

std::vector<Access> GraphBuilder::accesses(const std::vector<Use>& uses) {
  std::vector<Access> list;
  for (const Use& use : uses) list.push_back({buffer_of(use), use.offset, use.bytes, use.exact});
  return list;
}

int GraphBuilder::buffer_of(const Use& use) {
  const bool kept = use.kind == BufferKind::kWeight || use.kind == BufferKind::kKv;
  // Layers keep weights and cache; what steps compute is one buffer for all layers of a phase.
  const std::string id = kept ? place('.') + use.buffer : fmt::format("{}.{}", graph_.phases.back().name, use.buffer);
  const auto [entry, is_new] = buffers_.emplace(id, static_cast<int>(graph_.buffers.size()));
  if (is_new) {
    Buffer buffer;
    buffer.id = id;
    buffer.kind = use.kind;
    buffer.per = use.per;
    buffer.copies = kept ? copies_ : 1;
    graph_.buffers.push_back(std::move(buffer));
  }
  Buffer& buffer = at(graph_.buffers, entry->second);
  buffer.bytes = std::max(buffer.bytes, Bytes(use.offset + use.bytes));
  return entry->second;
}

KernelGraph GraphBuilder::finished() && { return std::move(graph_); }

}  // namespace tangram::kernels
