#include <cmath>
#include <nlohmann/json.hpp>

#include "tangram/base/at.hpp"
#include "tangram/kernels/operator_table.hpp"

namespace tangram::kernels {
namespace {

using Json = nlohmann::ordered_json;

/// Seconds as a file has them, without the digits that the factor of 1e6 adds.
double microseconds(double seconds) { return std::round(seconds * 1e12) / 1e6; }

Json inference_json(const OperatorTable& table, const Inference& inference) {
  Json out;
  if (!inference.gpu.empty()) out["gpu"] = inference.gpu;
  out["floor_us"] = microseconds(inference.roofline.floor);
  out["compute"] = inference.roofline.compute;
  out["memory"] = inference.roofline.memory;
  Json& errors = out["errors"];
  errors["roofline"] = inference.roofline_error;
  if (inference.beyond_error > 0) errors["beyond"] = inference.beyond_error;
  for (std::size_t axis = 0; axis < inference.axis_errors.size(); ++axis) {
    const double error = inference.axis_errors[axis];
    if (error > 0) errors[std::string(at(shape_names(table.op), table.axes[axis]))] = error;
  }
  return out;
}

Json row_json(const OperatorTable& table, int row) {
  Json out = Json::array();
  for (const std::int64_t number : table.shapes.row(row)) out.push_back(number);
  for (const double seconds : table.seconds.row(row)) {
    out.push_back(seconds > 0 ? Json(microseconds(seconds)) : Json());
  }
  return out;
}

}  // namespace

Json operator_table_json(const OperatorTable& table) {
  Json out;
  out["schema"] = "tangram.operator_times/1";
  out["operator"] = to_string(table.op);
  out["dtype"] = to_string(table.dtype);
  out["source"] = table.source;
  out["interpolated"] = Json::array();
  for (const int axis : table.axes) out["interpolated"].push_back(at(shape_names(table.op), axis));
  out["gpus"] = table.gpus;
  for (const Inference& inference : table.inference) out["inference"].push_back(inference_json(table, inference));
  out["rows"] = Json::array();
  for (int row = 0; row < table.row_count(); ++row) out["rows"].push_back(row_json(table, row));
  return out;
}

}  // namespace tangram::kernels
