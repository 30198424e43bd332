// Measured times of one operator on several GPUs (tangram.operator_times/1). Goes in: a file of configs/kernels or of
// the user. Comes out: rows sorted for interpolation, and for each GPU the roofline and the errors that follow from
// them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/dtype.hpp"
#include "tangram/base/expected.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/kernels/roofline.hpp"

namespace tangram::kernels {

/// What is known of an operator on one GPU type beside its rows. Errors are relative, the mean over rows held out.
struct Inference {
  std::string gpu;  ///< catalogue name; empty: any that the table has no rows of
  Roofline roofline;
  double roofline_error = 0;
  double beyond_error = 0;          ///< of rows at the end of an axis, by the roofline's slope from their neighbour
  std::vector<double> axis_errors;  ///< by OperatorTable::axes: of rows interpolated from both neighbours

  bool operator==(const Inference&) const = default;
};

struct OperatorTable {
  Operator op = Operator::kGemm;
  DType dtype = DType::kBf16;
  std::string source;             ///< of the rows, with its licence
  std::vector<int> axes;          ///< numbers of the shape that are interpolated, outermost first; the others must be
                                  ///< equal. None: rows are samples of unlike kernels, for the roofline alone
  std::vector<std::string> gpus;  ///< catalogue names
  std::vector<Inference> inference;  ///< by GPU, and one more for any other
  Grid<std::int64_t> shapes;         ///< row by number of the shape; sorted by those that must be equal, then by axes
  Grid<double> seconds;              ///< row by GPU; 0: not measured

  [[nodiscard]] int row_count() const { return shapes.rows(); }
  [[nodiscard]] std::optional<int> gpu_index(std::string_view gpu) const;
  /// Of the GPU, or of any other.
  [[nodiscard]] const Inference& inference_of(std::string_view gpu) const;
  /// Numbers of the shape in the order in which rows are sorted: those that must be equal, then the axes.
  [[nodiscard]] std::vector<int> sorted_columns() const;
};

/// Without an `inference` part where the file has none: inferred() of held_out.hpp finds it.
[[nodiscard]] Expected<OperatorTable> read_operator_table(std::string text, std::string file);

[[nodiscard]] nlohmann::ordered_json operator_table_json(const OperatorTable& table);

/// The tables that come with the program (configs/kernels, embedded at build time), one an operator; none has
/// products by chunks.
[[nodiscard]] const std::vector<OperatorTable>& shipped_tables();

}  // namespace tangram::kernels
