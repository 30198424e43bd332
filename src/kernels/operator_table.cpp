#include "tangram/kernels/operator_table.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::kernels {

// Generated from configs/kernels (EmbedFiles.cmake): file names and contents.
std::vector<std::pair<std::string_view, std::string_view>> operator_files();

std::optional<int> OperatorTable::gpu_index(std::string_view gpu) const {
  const auto found = std::ranges::find(gpus, gpu);
  if (found == gpus.end()) return std::nullopt;
  return static_cast<int>(found - gpus.begin());
}

const Inference& OperatorTable::inference_of(std::string_view gpu) const {
  TANGRAM_ASSERT(!inference.empty());
  const auto found = std::ranges::find(inference, gpu, &Inference::gpu);
  return found != inference.end() ? *found : inference.back();
}

std::vector<int> OperatorTable::sorted_columns() const {
  std::vector<int> columns;
  for (int column = 0; column < shapes.columns(); ++column) {
    if (std::ranges::find(axes, column) == axes.end()) columns.push_back(column);
  }
  columns.insert(columns.end(), axes.begin(), axes.end());
  return columns;
}

const std::vector<OperatorTable>& shipped_tables() {
  static const std::vector<OperatorTable> tables = [] {
    std::vector<OperatorTable> read;
    for (const auto& [name, text] : operator_files()) {
      auto table = read_operator_table(std::string(text), std::string(name));
      if (!table) throw std::logic_error("malformed operator times:\n" + render(table.error()));
      read.push_back(std::move(*table));
    }
    return read;
  }();
  return tables;
}

}  // namespace tangram::kernels
