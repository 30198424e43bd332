#include "tangram/dispatch/code.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/ptx/launches.hpp"

namespace tangram::dispatch {

namespace {

/// What does not fit the graph; empty: nothing.
std::string mismatch(const kernels::KernelGraph& graph, const ptx::Module& module, const ptx::Launch& launch) {
  const ptx::Function* entry = module.find(launch.entry);
  if (entry == nullptr || !entry->is_entry) return fmt::format("there is no entry \"{}\"", launch.entry);
  if (static_cast<std::size_t>(entry->parameters) != launch.arguments.size()) {
    return fmt::format("{} has {} parameters, and the launch {} arguments", launch.entry, entry->parameters,
                       launch.arguments.size());
  }
  for (const ptx::Argument& argument : launch.arguments) {
    const auto* of = std::get_if<ptx::BufferArgument>(&argument);
    if (of == nullptr) continue;
    const auto buffer = std::ranges::find(graph.buffers, of->name, &kernels::Buffer::id);
    if (buffer == graph.buffers.end()) return fmt::format("the kernel graph has no buffer \"{}\"", of->name);
    if (buffer->bytes.value() != of->bytes) {
      return fmt::format("\"{}\" has {} bytes in the kernel graph, and {} here", of->name, buffer->bytes.value(),
                         of->bytes);
    }
  }
  return "";
}

Diagnostic wrong_launch(const std::string& file, int line, std::string message) {
  Diagnostic wrong = problem(ErrorKind::kInput, "other-graph", std::move(message),
                             "one line for each kernel of the graph, in its order, with repeats written out");
  wrong.where.file = file;
  wrong.where.line = line;
  wrong.where.column = 1;
  return wrong;
}

}  // namespace

Expected<Code> code_of(const kernels::KernelGraph& graph, ptx::Module module, const std::string& launches,
                       const std::string& file) {
  auto recorded = ptx::read_launches(launches, file);
  if (!recorded) return fail(std::move(recorded.error()));
  Code code;
  code.module = std::move(module);
  for (const ptx::RecordedLaunch& one : *recorded) {
    if (code.launches.size() == graph.kernels.size()) {
      return fail(wrong_launch(file, one.line, fmt::format("the kernel graph has {} kernels", graph.kernel_count())));
    }
    const std::string wrong = mismatch(graph, code.module, one.launch);
    if (!wrong.empty()) {
      const std::string& kernel = at(graph.kernels, code.launches.size()).id;
      return fail(wrong_launch(file, one.line, fmt::format("kernel {}: {}", kernel, wrong)));
    }
    code.launches.push_back(one.launch);
  }
  if (code.launches.size() == graph.kernels.size()) return code;
  const int last = recorded->back().line;
  return fail(wrong_launch(
      file, last,
      fmt::format("{} launches, and the kernel graph has {} kernels", code.launches.size(), graph.kernel_count())));
}

}  // namespace tangram::dispatch
