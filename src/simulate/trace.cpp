// Chrome trace event format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tangram/base/at.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate {

namespace {

/// Nanoseconds as microseconds, exactly.
std::string microseconds(Nanoseconds t) { return fmt::format("{}.{:03}", t.value() / 1000, t.value() % 1000); }

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

const char* category(EventKind kind) {
  switch (kind) {
    case EventKind::kForward: return "forward";
    case EventKind::kBackward: return "backward";
    case EventKind::kWeightGradient: return "weight gradient";
    case EventKind::kSendActivation: return "activation";
    case EventKind::kSendGradient: return "gradient";
    case EventKind::kGradientSync: return "gradient sync";
    case EventKind::kOptimizer: return "optimizer";
    case EventKind::kEncoderForward: return "encoder forward";
    case EventKind::kEncoderBackward: return "encoder backward";
  }
  return "";
}

/// How events are called: `stages` of each pipeline, and whether any stage has several model chunks.
struct Naming {
  std::vector<int> stages;
  bool chunks = false;
};

std::string name_of(const Event& event, const Naming& naming) {
  const std::string microbatch =
      naming.chunks ? fmt::format("{} chunk {}", event.microbatch, event.chunk) : fmt::format("{}", event.microbatch);
  const int stages = at(naming.stages, event.pipeline);
  switch (event.kind) {
    case EventKind::kForward: return "F" + microbatch;
    case EventKind::kBackward: return "B" + microbatch;
    case EventKind::kWeightGradient: return "W" + microbatch;
    case EventKind::kSendActivation:
      return fmt::format("activation {}, stage {} to {}", microbatch, event.stage, (event.stage + 1) % stages);
    case EventKind::kSendGradient:
      return fmt::format("gradient {}, stage {} to {}", microbatch, event.stage, (event.stage + stages - 1) % stages);
    default: return category(event.kind);
  }
}

Naming naming_of(const plan::LaunchPlan& plan, const Result& result) {
  Naming naming;
  for (const plan::Pipeline& pipeline : plan.pipelines)
    naming.stages.push_back(static_cast<int>(pipeline.stages.size()));
  naming.chunks = std::any_of(result.events.begin(), result.events.end(), [](const Event& e) { return e.chunk > 0; });
  return naming;
}

/// Threads are numbered through all pipelines: viewers key them by number alone.
class Threads {
 public:
  explicit Threads(const plan::LaunchPlan& plan) {
    int next = 1;
    for (const plan::Pipeline& pipeline : plan.pipelines) {
      numbers_.emplace_back();
      for (const int id : pipeline.stages) {
        numbers_.back().push_back(next);
        next += static_cast<int>(plan.stage(id).parts.size());
      }
    }
  }
  [[nodiscard]] int of(int pipeline, int stage, int part) const { return at(at(numbers_, pipeline), stage) + part; }

 private:
  std::vector<std::vector<int>> numbers_;
};

std::string part_name(const plan::LaunchPlan& plan, int pipeline, int index, int part_index) {
  const plan::Stage& stage = plan.stage(at(at(plan.pipelines, pipeline).stages, index));
  const plan::Part& part = at(stage.parts, part_index);
  std::string layers;
  for (const model::BlockRange& chunk : stage.chunks) layers += " " + to_string(chunk);
  return fmt::format("stage {}: {} x {}, layers{}", index, part.strategy.degrees.gpus(),
                     plan.island(part.island).device.name, layers);
}

void write_names(const plan::LaunchPlan& plan, const Threads& threads, std::vector<std::string>& lines) {
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const int pipeline = static_cast<int>(p);
    lines.push_back(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"pipeline {}"}}}})",
                                pipeline + 1, pipeline));
    for (std::size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const int stage = static_cast<int>(s);
      const int parts = static_cast<int>(plan.stage(plan.pipelines[p].stages[s]).parts.size());
      for (int k = 0; k < parts; ++k) {
        const int thread = threads.of(pipeline, stage, k);
        lines.push_back(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
                                    pipeline + 1, thread, quoted(part_name(plan, pipeline, stage, k))));
        lines.push_back(
            fmt::format(R"({{"ph":"M","pid":{0},"tid":{1},"name":"thread_sort_index","args":{{"sort_index":{1}}}}})",
                        pipeline + 1, thread));
      }
    }
  }
}

void write_event(const Event& event, const Threads& threads, const Naming& naming, std::size_t serial,
                 std::vector<std::string>& lines) {
  if (event.end == event.start) return;
  const std::string common = fmt::format(R"("pid":{},"tid":{},"name":{},"cat":"{}")", event.pipeline + 1,
                                         threads.of(event.pipeline, event.stage, event.part),
                                         quoted(name_of(event, naming)), category(event.kind));
  const bool transfer = event.kind == EventKind::kSendActivation || event.kind == EventKind::kSendGradient;
  if (transfer) {  // several may be on their way at once, which slices of one thread cannot show
    lines.push_back(fmt::format(R"({{"ph":"b","id":{},{},"ts":{}}})", serial, common, microseconds(event.start)));
    lines.push_back(fmt::format(R"({{"ph":"e","id":{},{},"ts":{}}})", serial, common, microseconds(event.end)));
  } else {
    lines.push_back(fmt::format(R"({{"ph":"X",{},"ts":{},"dur":{}}})", common, microseconds(event.start),
                                microseconds(event.end - event.start)));
  }
}

}  // namespace

std::string write_trace(const plan::LaunchPlan& plan, const Result& result) {
  const Threads threads(plan);
  std::vector<std::string> lines;
  write_names(plan, threads, lines);
  const Naming naming = naming_of(plan, result);
  for (std::size_t i = 0; i < result.events.size(); ++i) write_event(result.events[i], threads, naming, i, lines);
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", fmt::join(lines, ",\n"));
}

}  // namespace tangram::simulate
