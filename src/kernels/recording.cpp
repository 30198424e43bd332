#include "tangram/kernels/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cuda_graph.hpp"
#include "join_traces.hpp"
#include "nsight.hpp"
#include "place.hpp"
#include "recorded_graph.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::kernels {

std::string_view to_string(RecordingKind kind) {
  switch (kind) {
    case RecordingKind::kKineto: return "kineto";
    case RecordingKind::kExecutionTrace: return "execution_trace";
    case RecordingKind::kCudaGraph: return "cuda_graph";
    case RecordingKind::kNsys: return "nsys";
    case RecordingKind::kNcu: return "ncu";
  }
  return "kineto";
}

namespace {

constexpr std::string_view kGzip = "\x1f\x8b";

bool has(std::string_view text, std::string_view piece) { return text.find(piece) != std::string_view::npos; }

/// Files of one run, at most one of each kind.
struct Recordings {
  const RecordingFile* kineto = nullptr;
  const RecordingFile* execution = nullptr;
  const RecordingFile* other = nullptr;
  RecordingKind other_kind = RecordingKind::kNsys;
};

Diagnostics too_many(const std::vector<RecordingFile>& files) {
  return {problem(ErrorKind::kInput, "several-recordings", fmt::format("{} files are not one recording", files.size()),
                  "one file, or a Kineto trace and the execution trace of the same run; --onto joins further ones")};
}

Expected<Recordings> sorted_out(const std::vector<RecordingFile>& files) {
  Recordings recordings;
  for (const RecordingFile& file : files) {
    const auto kind = kind_of(file);
    if (!kind) return fail(kind.error());
    const RecordingFile*& place = *kind == RecordingKind::kKineto           ? recordings.kineto
                                  : *kind == RecordingKind::kExecutionTrace ? recordings.execution
                                                                            : recordings.other;
    if (place != nullptr) return fail(too_many(files));
    place = &file;
    if (place == recordings.other) recordings.other_kind = *kind;
  }
  if (recordings.other != nullptr && files.size() > 1) return fail(too_many(files));
  if (recordings.kineto == nullptr && recordings.other == nullptr) {
    return fail(problem(ErrorKind::kInput, "missing-recording", "an execution trace alone has no kernels",
                        "give the Kineto trace of the same run, too"));
  }
  return recordings;
}

/// The device of all kernels; several: a mistake.
Expected<int> device_of_trace(const KinetoTrace& trace, const std::string& file) {
  const int device = trace.kernels.front().device;
  const auto elsewhere = std::ranges::find_if(trace.kernels, [&](const auto& k) { return k.device != device; });
  if (elsewhere == trace.kernels.end()) return device;
  return fail(mistake_at(file, 0, 0, "several-gpus",
                         fmt::format("the trace has kernels of devices {} and {}", device, elsewhere->device),
                         "record the ranks one by one: a graph is of one GPU"));
}

Expected<Recording> import_traces(const Recordings& files, const std::string& gpu,
                                  std::span<const cluster::GpuType> devices) {
  auto document = io::parse_json(files.kineto->text, files.kineto->name);
  if (!document) return fail(std::move(document.error()));
  const auto kineto = read_kineto(*document);
  if (!kineto) return fail(kineto.error());
  const auto device = device_of_trace(*kineto, files.kineto->name);
  if (!device) return fail(device.error());
  const bool named = *device >= 0 && *device < static_cast<int>(kineto->gpus.size());
  const auto name = gpu_named(gpu, named ? at(kineto->gpus, *device) : "", files.kineto->name, devices);
  if (!name) return fail(name.error());
  std::optional<ExecutionTrace> execution;
  if (files.execution != nullptr) {
    auto second = io::parse_json(files.execution->text, files.execution->name);
    if (!second) return fail(std::move(second.error()));
    auto trace = read_execution_trace(*second);
    if (!trace) return fail(std::move(trace.error()));
    execution = std::move(*trace);
  }
  Recording recording = join_traces(*kineto, execution ? &*execution : nullptr);
  recording.graph.gpus = {*name};
  recording.graph.sources.push_back(source_of(RecordingKind::kKineto, *files.kineto));
  if (execution) recording.graph.sources.push_back(source_of(RecordingKind::kExecutionTrace, *files.execution));
  return recording;
}

Expected<Recording> import_other(const Recordings& files, const std::string& gpu,
                                 std::span<const cluster::GpuType> devices) {
  const RecordingFile& file = *files.other;
  auto recording = files.other_kind == RecordingKind::kCudaGraph ? read_cuda_graph(file)
                   : files.other_kind == RecordingKind::kNsys    ? read_nsys(file)
                                                                 : read_ncu(file);
  if (!recording) return recording;
  KernelGraph& graph = recording->graph;
  if (files.other_kind != RecordingKind::kCudaGraph) {
    auto name = gpu_named(gpu, graph.gpus.front(), file.name, devices);
    if (!name) return fail(std::move(name.error()));
    graph.gpus = {*name};
  }
  graph.sources.push_back(source_of(files.other_kind, file));
  return recording;
}

}  // namespace

Expected<RecordingKind> kind_of(const RecordingFile& file) {
  const std::string_view text = file.text;
  if (text.starts_with(kGzip)) {
    return fail(mistake_at(file.name, 0, 0, "compressed", "the file is compressed", "gunzip it first"));
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    if (has(text, "\"traceEvents\"")) return RecordingKind::kKineto;
    if (has(text, "\"nodes\"") && has(text, "\"rf_id\"")) return RecordingKind::kExecutionTrace;
  }
  if (first != std::string_view::npos && text.substr(first).starts_with("digraph")) return RecordingKind::kCudaGraph;
  if (has(text, "Kernel Name")) return RecordingKind::kNcu;
  if (has(text, "Start (") && has(text, "Duration (")) return RecordingKind::kNsys;
  return fail(mistake_at(file.name, 1, 1, "unknown-format", "this is no recording that is known",
                         "Kineto and execution traces (JSON), CUDA graphs (DOT), tables of nsys and ncu (CSV)"));
}

Expected<Recording> import_recording(const std::vector<RecordingFile>& files, const std::string& gpu,
                                     std::span<const cluster::GpuType> devices) {
  const auto recordings = sorted_out(files);
  if (!recordings) return fail(recordings.error());
  return recordings->kineto != nullptr ? import_traces(*recordings, gpu, devices)
                                       : import_other(*recordings, gpu, devices);
}

}  // namespace tangram::kernels
